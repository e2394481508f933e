# Unwinds and names code made at run time in GDB, by the list of registered procedures in the process or core file. The
# program needs no support for it. GDB loads the script for libjitunwind-core.so if auto-loading is allowed; the command
# is: source PREFIX/share/jitunwind/gdb/jitunwind-gdb.py
# docs/debuggers.md "The script".
import os
import re
import struct
import sys

import gdb
import gdb.printing
import gdb.unwinder
from gdb.FrameDecorator import FrameDecorator


def _find_package():
    """The package beside this file (__file__ may be a file that loads it), and no other: it could be anyone's."""
    folder = os.path.dirname(os.path.realpath(_find_package.__code__.co_filename))
    if os.path.isdir(os.path.join(folder, 'jitunwind_gdb')):
        return folder
    raise gdb.GdbError('jitunwind: the folder jitunwind_gdb is not beside %s' % folder)


if _find_package() not in sys.path:
    sys.path.insert(0, _find_package())

# The folder of an installed package stays unchanged.
_writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
from jitunwind_gdb import cfi, printers, process  # noqa: E402
from jitunwind_gdb.rows import BY_NAME  # noqa: E402
sys.dont_write_bytecode = _writes

_MASK = (1 << 64) - 1


def _read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def _complain(text):
    gdb.write('jitunwind: %s\n' % text, gdb.STDERR)


def _sections(name):
    """The addresses of all sections of this name."""
    text = gdb.execute('maintenance info sections -all-objects ' + name, to_string=True)
    found = re.findall(r'(0x[0-9a-f]+)->0x[0-9a-f]+ at .*: ' + re.escape(name), text)
    return sorted({int(address, 16) for address in found})


class _Lists:
    """All lists of the process: each copy of the library has an ELF note that leads to its list."""

    def __init__(self):
        self._known, self._headers = {}, {}  # by inferior: its lists; its modules' .eh_frame_hdr
        gdb.events.new_objfile.connect(self._changed)
        gdb.events.exited.connect(lambda event: self._forget())
        if hasattr(gdb.events, 'free_objfile'):
            gdb.events.free_objfile.connect(self._changed)

    def _changed(self, event):
        if not (getattr(event, 'new_objfile', None) or event.objfile).filename.startswith('<'):
            self._forget()

    def _forget(self):
        self._known.clear()
        self._headers.clear()

    @staticmethod
    def _inferior():
        return gdb.selected_inferior().num, gdb.selected_inferior().pid

    def all(self):
        key = self._inferior()
        if key not in self._known:
            self._known[key] = [process.ProcedureList(_read, head, _complain) for head in self._heads()]
        return self._known[key]

    @staticmethod
    def _heads():
        heads = set()
        for note in _sections('.note.unwdyn'):
            try:
                # sizes of the name and of the rest, type, name; layout, word size, distance of the head
                if _read(note, 28) == struct.pack('<III8sII', 7, 16, 1, b'UNWDYN', 1, 8):
                    heads.add((note + 28 + int.from_bytes(_read(note + 28, 8), 'little', signed=True)) & _MASK)
            except gdb.error:
                pass
        return sorted(heads)

    def find(self, pc):
        for one in self.all():
            try:
                found = one.find(pc)
            except gdb.error:
                continue
            if found is not None:
                return found
        return None

    def find_code(self, arch, pc):
        """The target of an ALIAS: a procedure, or the row of a module's code, or None."""
        found = self.find(pc)
        if found is not None:
            return found
        key = self._inferior()
        if key not in self._headers:
            self._headers[key] = _sections('.eh_frame_hdr')
        for header in self._headers[key]:
            try:
                fde = cfi.find_fde_by_header(_read, header, pc)
            except (gdb.error, cfi.CfiError):
                continue  # the header of another module
            if fde is not None:
                return fde.row(arch, pc)
        return None


_lists = _Lists()


class _FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = sp, pc


class _Unwinder(gdb.unwinder.Unwinder):
    # The signal trampoline of x86-64: mov rax, SYS_rt_sigreturn; syscall. The frame that it interrupted is not at
    # a call.
    _SIGRETURN = b'\x48\xc7\xc0\x0f\0\0\0\x0f\x05'

    def __init__(self):
        super().__init__('jitunwind')
        self._last = None  # level and pc of the preceding frame

    def __call__(self, frame):
        try:
            return self._unwind(frame)
        except (gdb.error, *process.UNTOLD):
            return None  # GDB continues with its own unwinders

    def _unwind(self, frame):
        arch = BY_NAME.get(frame.architecture().name())
        if arch is None:
            return None
        pc = int(frame.read_register('pc')) & _MASK
        last, self._last = self._last, (frame.level(), pc)
        exact = frame.level() == 0 or last is not None and last[0] == frame.level() - 1 and self._is_sigreturn(last[1])
        at = pc if exact else pc - 1
        procedure = _lists.find(at)
        row = None if procedure is None else \
            procedure.row(arch, at - at % arch.unit, lambda address: _lists.find_code(arch, address))
        return None if row is None else self._apply(frame, arch, procedure, row)

    def _is_sigreturn(self, pc):
        try:
            return _read(pc, len(self._SIGRETURN)) == self._SIGRETURN
        except gdb.error:
            return False

    @staticmethod
    def _apply(frame, arch, procedure, row):
        def register(number):
            return int(frame.read_register(arch.names[number])) & _MASK

        def word(address):
            return int.from_bytes(_read(address & _MASK, 8), 'little')

        def value_of(rule, cfa):
            kind = rule[0]
            if kind in ('at_cfa', 'is_cfa'):
                place = cfa + rule[1]
            elif kind in ('at_reg', 'is_reg'):
                place = register(rule[1]) + rule[2]
            elif kind in ('at_expr', 'is_expr'):
                place = cfi.evaluate(rule[1], [cfa], register, word)
            else:
                return register(rule[1]) if kind == 'in' else rule[1]
            return word(place) if kind.startswith('at_') else place & _MASK

        kind = row.cfa[0]
        if kind == 'expr':
            cfa = cfi.evaluate(row.cfa[1], [], register, word)
        else:
            cfa = register(row.cfa[1]) + row.cfa[2]
            if kind == 'deref':
                cfa = word(cfa) + row.cfa[3]
        cfa &= _MASK

        rules = {reg: ('same',) for reg in arch.preserved}
        rules.update(row.rules)
        if rules.get(arch.ra, ('same',)) == ('undefined',):
            return None
        unwind = frame.create_unwind_info(_FrameId(gdb.Value(cfa), gdb.Value(procedure.begin)))
        long_type = gdb.lookup_type('unsigned long')
        for reg, rule in rules.items():
            if reg in (arch.ra, arch.sp, arch.sign_state) or rule == ('undefined',):
                continue
            name = arch.names[reg]
            value = frame.read_register(name) if rule == ('same',) else gdb.Value(value_of(rule, cfa)).cast(long_type)
            unwind.add_saved_register(name, value)
        pc = value_of(rules[arch.ra], cfa) if arch.ra in rules else register(arch.ra)
        unwind.add_saved_register('pc', gdb.Value(pc).cast(long_type))
        unwind.add_saved_register('sp', gdb.Value(cfa).cast(long_type))
        for name in ('fs_base', 'gs_base'):
            try:
                unwind.add_saved_register(name, frame.read_register(name))
            except ValueError:
                pass  # another CPU, or a core file without the register
        return unwind


class _Named(FrameDecorator):
    def __init__(self, inner, name):
        super().__init__(inner)
        self._name = name

    def function(self):
        return self._name


class _Names:
    """A frame filter that names frames for which GDB has no name. Names of GDB stay as they are."""

    def __init__(self):
        self.name, self.enabled, self.priority = 'jitunwind', True, 100
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        return map(self._named, frames)

    @staticmethod
    def _named(decorated):
        frame = decorated.inferior_frame()
        name = frame.name()
        if name is None:
            interrupted = frame.newer() is None or frame.newer().type() == gdb.SIGTRAMP_FRAME
            procedure = _lists.find(frame.pc() if interrupted else frame.pc() - 1)
            name = None if procedure is None else procedure.name()
        return _Named(decorated, name or '??')


class _InfoProcedures(gdb.Command):
    """Registered procedures of the process: info jitunwind [REGEX]
Addresses are those of breakpoints: break *ADDRESS."""

    def __init__(self):
        super().__init__('info jitunwind', gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        for one in _lists.all():
            one.refresh()
            for procedure in sorted(one.procedures, key=lambda p: p.begin):
                name = procedure.name() or ''
                if re.search(argument, name):
                    print('%#x %#x %s' % (procedure.begin, procedure.end, name))


class _NameFunction(gdb.Function):
    """Name of the registered procedure at an address, or an empty string: $jitunwind_name($pc)"""

    def __init__(self):
        super().__init__('jitunwind_name')

    def invoke(self, address):
        procedure = _lists.find(int(address) & _MASK)
        return (procedure.name() if procedure is not None else None) or ''


gdb.unwinder.register_unwinder(None, _Unwinder(), replace=True)
gdb.printing.register_pretty_printer(None, printers.collection(), replace=True)
_Names()
_InfoProcedures()
_NameFunction()
