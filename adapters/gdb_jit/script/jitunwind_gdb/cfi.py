"""Converts FDEs to rows: .eh_frame of LSB 5.0 core, 10.6; instructions of DWARF 5, 6.4.2. Independent of GDB."""

from .rows import Row


# The memory may be no CFI at all; these limits bound the time.
_MAX_LEB_BYTES = 16
_MAX_AUGMENTATION = 16


class CfiError(Exception):
    pass


class _Bytes:
    """A reader of the target's memory; `read(address, size)` returns its bytes."""

    def __init__(self, read, address, size):
        self.data, self.base, self.at = read(address, size), address, 0

    def done(self):
        return self.at >= len(self.data)

    def here(self):
        return self.base + self.at

    def take(self, size):
        if self.at + size > len(self.data):
            raise CfiError('entry ends too early')
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self, size, signed=False):
        return int.from_bytes(self.take(size), 'little', signed=signed)

    def uleb(self):
        value = 0
        for shift in range(0, 7 * _MAX_LEB_BYTES, 7):
            byte = self.number(1)
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                return value
        raise CfiError('number is too long')

    def sleb(self):
        at = self.at
        value = self.uleb()
        bits = 7 * (self.at - at)
        return value - (1 << bits) if self.data[self.at - 1] & 0x40 else value

    def pointer(self, encoding, data_base=0):
        here, form = self.here(), encoding & 0x0f
        if form == 1:
            value = self.uleb()
        elif form == 9:
            value = self.sleb()
        else:
            size = {0: 8, 2: 2, 3: 4, 4: 8}[form & 7]
            value = self.number(size, form >= 8)
        relative = {0: 0, 0x10: here, 0x30: data_base}.get(encoding & 0x70)
        if relative is None:
            raise CfiError('pointer encoding')
        return (value + relative if value else 0) & ((1 << 64) - 1)


def _entry(read, address):
    """The entry's bytes after its length field, and whether it has the 64-bit format."""
    length = int.from_bytes(read(address, 4), 'little')
    if length == 0xffffffff:
        length = int.from_bytes(read(address + 4, 8), 'little')
        address += 8
        wide = True
    else:
        wide = False
    if not 0 < length <= 1 << 20:
        raise CfiError('length of an entry')
    return _Bytes(read, address + 4, length), wide


class _Cie:
    def __init__(self, read, address, data_base):
        entry, wide = _entry(read, address)
        entry.take(8 if wide else 4)
        version = entry.number(1)
        augmentation = b''
        while True:
            byte = entry.take(1)
            if byte == b'\0':
                break
            if len(augmentation) == _MAX_AUGMENTATION:
                raise CfiError('augmentation')
            augmentation += byte
        if version == 4:
            entry.take(2)
        self.code, self.data = entry.uleb(), entry.sleb()
        self.ra = entry.number(1) if version == 1 else entry.uleb()
        self.pointers, self.lsda, self.sized = 0, 0xff, augmentation.startswith(b'z')
        if self.sized:
            end = entry.uleb() + entry.at
            for letter in augmentation[1:]:
                if letter == ord('P'):
                    entry.pointer(entry.number(1) & 0x7f, data_base)
                elif letter == ord('L'):
                    self.lsda = entry.number(1)
                elif letter == ord('R'):
                    self.pointers = entry.number(1)
            entry.at = end
        elif augmentation:
            raise CfiError('augmentation')
        self.instructions = entry


class Fde:
    def __init__(self, read, address, data_base=0):
        entry, wide = _entry(read, address)
        at = entry.here()
        self.cie = _Cie(read, at - entry.number(8 if wide else 4), data_base)
        self.begin = entry.pointer(self.cie.pointers, data_base)
        self.end = self.begin + entry.pointer(self.cie.pointers & 0x0f)
        if self.cie.sized:
            entry.at += entry.uleb()
        self.instructions = entry

    def row(self, arch, pc):
        machine = _Machine(arch, self.cie)
        machine.run(self.cie.instructions, self.begin, pc)
        machine.initial = dict(machine.rules)
        machine.run(self.instructions, self.begin, pc)
        rules = machine.rules
        if self.cie.ra != arch.ra and self.cie.ra in rules:
            rules[arch.ra] = rules.pop(self.cie.ra)
        if machine.cfa is None:
            raise CfiError('row without CFA')
        return Row(machine.cfa, rules)


class _Machine:
    def __init__(self, arch, cie):
        self.arch, self.cie, self.cfa, self.rules, self.initial, self.kept = arch, cie, None, {}, {}, []

    def run(self, code, location, pc):
        code.at = code.at  # each set of instructions runs once
        while not code.done():
            byte = code.number(1)
            high, low = byte & 0xc0, byte & 0x3f
            if high == 0x40:
                location += low * self.cie.code
            elif high == 0x80:
                self.rules[low] = ('at_cfa', code.uleb() * self.cie.data)
            elif high == 0xc0:
                self._restore(low)
            elif low in (1, 2, 3, 4):
                location = code.pointer(self.cie.pointers) if low == 1 else \
                    location + code.number(1 << (low - 2)) * self.cie.code
            else:
                self._other(low, code)
            if location > pc:
                return

    def _restore(self, reg):
        if reg in self.initial:
            self.rules[reg] = self.initial[reg]
        else:
            self.rules.pop(reg, None)

    def _set_cfa(self, reg=None, offset=None):
        if reg is None or offset is None:
            if self.cfa is None or self.cfa[0] != 'reg':
                raise CfiError('CFA is not of a register')
        self.cfa = ('reg', self.cfa[1] if reg is None else reg, self.cfa[2] if offset is None else offset)

    def _other(self, op, code):
        data = self.cie.data
        if op == 0x00:
            return
        if op in (0x05, 0x11, 0x14, 0x15, 0x2f):  # a register, and a factored offset
            reg = code.uleb()
            offset = (code.sleb() if op in (0x11, 0x15) else code.uleb()) * data
            self.rules[reg] = ('is_cfa' if op in (0x14, 0x15) else 'at_cfa', -offset if op == 0x2f else offset)
        elif op == 0x06:
            self._restore(code.uleb())
        elif op in (0x07, 0x08):
            self.rules[code.uleb()] = ('undefined',) if op == 0x07 else ('same',)
        elif op == 0x09:
            reg = code.uleb()
            self.rules[reg] = ('in', code.uleb())
        elif op == 0x0a:
            self.kept.append((self.cfa, dict(self.rules)))
        elif op == 0x0b:
            if not self.kept:
                raise CfiError('no state to restore')
            self.cfa, self.rules = self.kept.pop()
        elif op in (0x0c, 0x12):
            reg = code.uleb()
            self._set_cfa(reg, code.uleb() if op == 0x0c else code.sleb() * data)
        elif op == 0x0d:
            self._set_cfa(reg=code.uleb())
        elif op in (0x0e, 0x13):
            self._set_cfa(offset=code.uleb() if op == 0x0e else code.sleb() * data)
        elif op == 0x0f:
            self.cfa = ('expr', code.take(code.uleb()))
        elif op in (0x10, 0x16):
            reg = code.uleb()
            self.rules[reg] = ('at_expr' if op == 0x10 else 'is_expr', code.take(code.uleb()))
        elif op == 0x2e:
            code.uleb()  # bytes of arguments
        else:
            raise CfiError('unknown instruction %#x' % op)


def find_fde(read, procedure, pc):
    """The FDE, or None: docs/directives.md "Table formats". `procedure`: format, begin, segbase, words, table, gp."""
    width = 8 if procedure.format == 5 else 4
    start_base = procedure.begin if procedure.format == 4 else procedure.segbase
    low, high = 0, min(procedure.words // (2 * width // 8), 1 << 24)

    def member(i):
        return int.from_bytes(read(procedure.table + i * width, width), 'little', signed=True)

    while low < high:
        middle = (low + high) // 2
        if (start_base + member(2 * middle)) & ((1 << 64) - 1) <= pc:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return None
    fde = Fde(read, (procedure.segbase + member(2 * low - 1)) & ((1 << 64) - 1), procedure.gp)
    return fde if fde.begin <= pc < fde.end else None


def find_fde_by_header(read, header, pc):
    """The FDE by a module's .eh_frame_hdr at this address, a linker's table of 32-bit distances, or None."""
    version, frames, counts, table = read(header, 4)
    if (version, counts, table) != (1, 0x03, 0x3b) or frames & 0x0f not in (0x03, 0x0b):
        raise CfiError('.eh_frame_hdr')
    count = int.from_bytes(read(header + 8, 4), 'little')

    class Table:  # the attributes of a procedure in table format
        format, begin, segbase, words, table, gp = 2, None, header, count, header + 12, 0

    return find_fde(read, Table, pc)


_MASK = (1 << 64) - 1


def evaluate(expression, stack, register, word):
    """The value of an expression; DWARF 5, 2.5. `register(number)` and `word(address)` return values of the target."""
    code = _Bytes(lambda address, size: expression, 0, len(expression))
    binary = {
        0x1a: lambda a, b: a & b, 0x1c: lambda a, b: a - b, 0x1e: lambda a, b: a * b, 0x21: lambda a, b: a | b,
        0x22: lambda a, b: a + b, 0x24: lambda a, b: a << b if b < 64 else 0, 0x25: lambda a, b: a >> b,
        0x27: lambda a, b: a ^ b, 0x29: lambda a, b: a == b, 0x2e: lambda a, b: a != b}
    ordered = {0x2a: lambda a, b: a >= b, 0x2b: lambda a, b: a > b, 0x2c: lambda a, b: a <= b, 0x2d: lambda a, b: a < b}
    constants = {0x08: (1, False), 0x09: (1, True), 0x0a: (2, False), 0x0b: (2, True), 0x0c: (4, False),
                 0x0d: (4, True), 0x0e: (8, False), 0x0f: (8, True), 0x03: (8, False)}

    def signed(value):
        return value - (1 << 64) if value >> 63 else value

    while not code.done():
        op = code.number(1)
        if 0x30 <= op < 0x50:
            stack.append(op - 0x30)
        elif 0x70 <= op < 0x90:
            stack.append(register(op - 0x70) + code.sleb())
        elif op == 0x92:
            number = code.uleb()
            stack.append(register(number) + code.sleb())
        elif op in constants:
            stack.append(code.number(*constants[op]))
        elif op in (0x10, 0x11):
            stack.append(code.uleb() if op == 0x10 else code.sleb())
        elif op == 0x06:
            stack.append(word(stack.pop()))
        elif op == 0x23:
            stack.append(stack.pop() + code.uleb())
        elif op in (0x12, 0x14):
            stack.append(stack[-1 if op == 0x12 else -2])
        elif op == 0x13:
            stack.pop()
        elif op == 0x16:
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif op in binary or op in ordered:
            b, a = stack.pop(), stack.pop()
            stack.append(binary[op](a, b) if op in binary else ordered[op](signed(a), signed(b)))
        elif op != 0x96:
            raise CfiError('operation %#x' % op)
        stack[-1:] = [int(value) & _MASK for value in stack[-1:]]
    return stack[-1]
