#!/usr/bin/env python3
"""tests/rows/*.case against the Python implementation of directives: row_cases.py FOLDER_OF_THE_SCRIPT FILE...
The format of the files is in tests/rows/README.md. Prints the number of rows compared."""
import re
import sys

sys.dont_write_bytecode = True  # into the source tree
sys.path.insert(0, sys.argv[1])
from jitunwind_gdb import directives as d  # noqa: E402
from jitunwind_gdb.rows import BY_NAME, Row  # noqa: E402

TAGS = {name: getattr(d, name) for name in ['STOP', 'SAVE_REG', 'SPILL_FP_REL', 'SPILL_SP_REL', 'ADD', 'POP_FRAMES',
                                            'LABEL_STATE', 'COPY_STATE', 'ALIAS']}


def signed(text, base=10):
    value = int(text, 16 if '0x' in text else base)
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


class Case:
    def __init__(self, name):
        self.name, self.arch, self.begin, self.end = name, None, 0, 0
        self.list, self.again, self.static, self.expected = [], {}, [], []

    def regions(self):
        """Followed as a reader does, as far as one looks."""
        found, i = [], 0
        while i < len(self.list) and len(found) <= d.MAX_REGIONS:
            found.append(self.list[i])
            i = self.again.get(i, i + 1)
        return found


def register(arch, name):
    if name == 'ra':
        return arch.ra
    return arch.numbers[name] if name in arch.numbers else int(name[1:])


def offset_of(text):
    return int(text, 0) if text else 0


def cfa_of(arch, text):
    if text.startswith('expr('):
        return ('expr', bytes.fromhex(text[5:-1]))
    place = re.fullmatch(r'\[(\w+)([+-]\w+)?\]([+-]\w+)?', text)
    if place:
        return ('deref', register(arch, place[1]), offset_of(place[2]), offset_of(place[3]))
    place = re.fullmatch(r'(\w+)([+-]\w+)?', text)
    return ('reg', register(arch, place[1]), offset_of(place[2]))


def rule_of(arch, text):
    if text in ('same', 'undefined'):
        return (text,)
    if text.startswith('[expr('):
        return ('at_expr', bytes.fromhex(text[6:-2]))
    place = re.fullmatch(r'\[cfa([+-]\w+)?\]', text)
    if place:
        return ('at_cfa', offset_of(place[1]))
    place = re.fullmatch(r'\[(\w+)([+-]\w+)?\]', text)
    if place:
        return ('at_reg', register(arch, place[1]), offset_of(place[2]))
    if re.fullmatch(r'-?\d.*', text):
        return ('const', int(text, 0))
    return ('in', register(arch, text))


def row_of(arch, text):
    parts = dict(part.split('=', 1) for part in text.split())
    cfa = cfa_of(arch, parts.pop('cfa'))
    return Row(cfa, {register(arch, r): rule_of(arch, rule) for r, rule in parts.items()})


class Reader:
    def __init__(self, path):
        self.path, self.cases, self.place, self.block, self.left_out = path, [], 0x100000, None, False
        for number, line in enumerate(open(path), 1):
            text = line.split('#')[0].rstrip()
            if text.strip():
                try:
                    self.take(text.strip())
                except Exception as error:
                    sys.exit('%s:%d: %s: %s' % (path, number, type(error).__name__, error))

    def room(self, size):
        begin = self.place
        self.place += (size + 0x1ffff) & ~0xffff
        return begin, begin + size

    def take(self, text):
        words = text.split()
        key = words[0]
        # Registered procedures are of processes, and these of CPUs for which the library is built. Other cases are
        # left out.
        if key == 'case':
            self.left_out = False
        elif key == 'arch' and words[1] not in BY_NAME:
            self.left_out = True
            self.cases.pop()
        if self.left_out:
            return None
        if key.startswith('+'):
            return self.rows(*text.split(': ', 1))
        case = self.cases[-1] if self.cases else None
        if key == 'case':
            self.cases.append(Case(words[1]))
        elif key == 'arch':
            case.arch = BY_NAME[words[1]]
        elif key == 'size':
            case.begin, case.end = self.room(int(words[1], 0))
        elif key == 'region':
            region = d.Region(int(words[1], 0), [])
            for option, value in zip(words[2::2], words[3::2]):
                if option == 'again':
                    case.again[len(case.list)] = int(value, 0)
            case.list.append(region)
        elif key == 'static':
            case.static.append((words[1], self.room(int(words[2], 0)), {}))
            self.block = 'static'
        elif key == 'rows' and len(words) == 3:
            case.expected = next(c for c in self.cases if c.name == words[2]).expected
        elif key in ('rows', 'calls'):
            self.block = key
        elif key not in ('findings', 'call_ends', 'ends_without_return', 'flags'):
            self.directive(case, words)

    def address(self, case, text):
        name, _, offset = text.partition('+')
        if not offset:
            return int(text, 0)
        for static, (begin, _), _ in case.static:
            if static == name:
                return begin + int(offset, 16)
        return next(c for c in self.cases if c.name == name).begin + int(offset, 16)

    def directive(self, case, words):
        tag = TAGS[words[0]] if words[0] in TAGS else int(words[0][4:])
        reg, when, value = 0, -1, 0
        for word in words[1:]:
            if word[0] == '@':
                when = signed(word[1:], 16)
            elif word[0] == '?':
                pass  # predicates are ignored
            elif ',' in word:
                name, operand = word.split(',')
                reg = register(case.arch, name)
                if operand == 'unknown':
                    value = d.UNKNOWN
                else:
                    value = register(case.arch, operand) if tag == d.SAVE_REG else signed(operand)
            else:
                value = self.address(case, word) if tag == d.ALIAS else signed(word)
        case.list[-1].ops.append(d.Op(tag, reg, when, value))

    def rows(self, offsets, text):
        case = self.cases[-1]
        for word in offsets.split():
            first, _, last = word.partition('..')
            for offset in range(int(first, 16), int(last or first, 16) + 1, case.arch.unit):
                if self.block == 'static':
                    case.static[-1][2][offset] = row_of(case.arch, text)
                else:
                    case.expected.append((offset - (self.block == 'calls'), text.strip()))

    def find(self, address):
        for case in self.cases:
            if case.begin <= address < case.end:
                return case
            for _, (begin, end), rows in case.static:
                if begin <= address < end:
                    return rows.get(address - begin)
        return None

    def compare(self):
        compared = 0
        for case in self.cases:
            for offset, text in case.expected:
                compared += 1
                try:
                    row = d.directive_row(case.arch, case, case.begin + offset, self.find)
                    got = row.cfa, row.rules
                except d.DirectiveError as error:
                    got = 'error %s' % error
                wanted = ' '.join(text.split()[:2])
                if not text.startswith('error'):
                    row = row_of(case.arch, text)
                    wanted = row.cfa, row.rules
                if got != wanted:
                    sys.exit('%s: %s +%x: %s instead of %s (%s)' % (self.path, case.name, offset, got, wanted, text))
        return compared


total = sum(Reader(path).compare() for path in sys.argv[2:])
if total == 0:
    sys.exit('no rows')
print('%d rows, all right' % total)
