"""Pretty printers: rows and rules in the notation of unwind_core/rows/row_text.h, errors as sentences, cursors by their
position. An uninitialised value may contain anything: all reads are bounded, and unreadable parts are printed as such.
"""
import gdb
import gdb.printing

from jitunwind_gdb.rows import BY_NAME

_MOST_RULES = 40
_MOST_BYTES = 256


def _kind(value):
    """The name of an enumerator without its scopes, or the number of a value that has no enumerator."""
    return str(value).rsplit('::', 1)[-1]


def _arch():
    """The CPU of the process, because a row does not name its CPU."""
    try:
        name = gdb.selected_inferior().architecture().name()
    except (AttributeError, gdb.error):  # GDB before 12, or no process
        name = 'i386:x86-64'
    return BY_NAME.get(name, BY_NAME['i386:x86-64'])


def _register(number):
    number = int(number)
    return _arch().names.get(number, 'r%d' % number)


def _offset(value):
    return '%+d' % int(value) if int(value) != 0 else ''


def _expression(address, size):
    size = int(size)
    if size > _MOST_BYTES:
        return 'expr(%d bytes)' % size
    try:
        return 'expr(%s)' % bytes(gdb.selected_inferior().read_memory(int(address), size)).hex() if size else 'expr()'
    except gdb.MemoryError:
        return 'expr(unreadable)'


def _span(value):
    """Address and size of a std::span: libstdc++'s and libc++'s members."""
    for pointer, extent in (('_M_ptr', '_M_extent'), ('__data_', '__size_')):
        try:
            size = value[extent]
            return int(value[pointer]), int(size['_M_extent_value'] if size.type.code == gdb.TYPE_CODE_STRUCT else size)
        except gdb.error:
            pass
    return 0, 0


def cfa_text(cfa):
    kind = _kind(cfa['kind'])
    if kind == 'offset':
        return _register(cfa['reg']) + _offset(cfa['offset'])
    if kind == 'deref':
        return '[%s%s]%s' % (_register(cfa['reg']), _offset(cfa['offset']), _offset(cfa['add']))
    if kind == 'expression':
        return _expression(*_span(cfa['expression']))
    return kind


def rule_text(rule):
    kind, offset = _kind(rule['kind']), int(rule['offset'])
    if kind == 'at_cfa':
        return '[cfa%s]' % _offset(offset)
    if kind == 'is_cfa':
        return 'cfa%s' % _offset(offset)
    if kind == 'in_reg':
        return _register(rule['reg'])
    if kind == 'at_reg':
        return '[%s%s]' % (_register(rule['reg']), _offset(offset))
    if kind == 'is_reg':
        return '%s%+d' % (_register(rule['reg']), offset)
    if kind in ('at_expression', 'is_expression'):
        text = _expression(offset & (1 << 64) - 1, rule['expression_size_'])
        return '[%s]' % text if kind == 'at_expression' else text
    return str(offset) if kind == 'constant' else kind


def row_text(row):
    count = int(row['count_'])
    if count > _MOST_RULES:
        return 'no row: %d rules' % count
    return_address = int(row['ra'])
    entries = row['entries_'].address.cast(gdb.lookup_type('jitunwind::FrameRow::Entry').pointer())
    by_place = ([], [], [])
    for i in range(count):
        entry = entries[i]
        number = int(entry['reg'])
        place = 1 if number == return_address else 2 if number == _arch().sign_state else 0
        name = 'ra' if place == 1 else _register(number)
        by_place[place].append(' %s=%s' % (name, rule_text(entry['rule'])))
    text = 'cfa=' + cfa_text(row['cfa']) + ''.join(sum(by_place, []))
    if int(row['args_size']):
        text += ' args=%d' % int(row['args_size'])
    return text + (' signal' if row['signal_frame'] else '')


def error_text(error):
    """"unreadable_memory: return address, at 0x7ffd0"."""
    try:
        what = error['what'].string()[:200]  # no bytes behind its end: a section may end there
    except (gdb.MemoryError, gdb.error, UnicodeDecodeError):
        what = 'unreadable'
    at = int(error['at'])
    return _kind(error['code']) + (': ' + what if what else '') + (', at %#x' % at if at else '')


def address_text(address):
    return '%#x%s' % (int(address['value_']), ' (return address)' if address['return_address_'] else '')


def cursor_text(cursor):
    text = '#%d %s' % (int(cursor['depth_']), address_text(cursor['address_']))
    stop = _kind(cursor['stop_'])
    if stop == 'none':
        return text
    return text + ', ended: ' + stop + ('' if stop == 'outermost' else ' (%s)' % error_text(cursor['error_']))


def caller_rule_text(rule):
    """"cfa=rsp+48 rbp=[cfa-24], lasting, eh_frame": a cached rule. The program's constants define its layout."""
    word = int(rule['word_']) & (1 << 64) - 1

    def bits(name, count):
        return word >> int(rule['k_%s_at' % name]) & (1 << count) - 1

    def enumerator(name, number):
        return gdb.lookup_type('jitunwind::' + name).fields()[number].name.rsplit('::', 1)[-1]

    if not bits('kept', 1):
        return 'no rule'
    kept_by = enumerator('KeptBy', 2 if bits('module', 1) else 1)
    kind = enumerator('CallerRule::Kind', bits('kind', 2))
    sp, fp = _register(_arch().sp), _register(_arch().fp)
    if kind == 'realigned':
        return 'cfa=[%s-%d] %s=[%s], %s' % (fp, bits('shape', 8) * 8, fp, fp, kept_by)
    if kind != 'compact':
        return '%s, %s' % (kind, kept_by)
    text = 'cfa=%s%s' % (fp if bits('base', 1) else sp, _offset((word & 0xffff) * 8))
    if bits('saves_fp', 1):
        text += ' %s=[cfa-%d]' % (fp, bits('fp', 8) * 8)
    return '%s, %s, %s' % (text, kept_by, enumerator('RowOrigin', bits('origin', 3)))


class _Text:
    def __init__(self, text, value):
        self._text, self._value = text, value

    def to_string(self):
        return self._text(self._value)


def collection():
    printers = gdb.printing.RegexpCollectionPrettyPrinter('jitunwind')
    for name, text in (('FrameRow', row_text), ('CfaRule', cfa_text), ('RegRule', rule_text), ('Error', error_text),
                       ('CodeAddress', address_text), ('Cursor', cursor_text), ('CallerRule', caller_rule_text)):
        printers.add_printer(name, '^jitunwind::%s$' % name, lambda value, text=text: _Text(text, value))
    return printers
