"""Rows, each of which leads from a frame to its caller at one address, and the CPUs that have rows.

A row has a CFA, one of
    ('reg', register, offset)           register + offset
    ('deref', register, offset, add)    [register + offset] + add
    ('expr', bytes)                     a DWARF expression
and rules {register: rule} of the caller's registers, each one of
    ('same',) ('undefined',) ('in', register) ('const', value)
    ('at_cfa', offset) ('is_cfa', offset) ('at_reg', register, offset) ('is_reg', register, offset)
    ('at_expr', bytes) ('is_expr', bytes)
Registers have DWARF's numbers, which are libunwind's on both CPUs.
"""


class Row:
    def __init__(self, cfa, rules):
        self.cfa, self.rules = cfa, rules


class Arch:
    """docs/directives.md "Per CPU"."""

    def __init__(self, unit, sp, fp, ra, entry_cfa, entry_ra, preserved, savable, general, others, names,
                 sign_state=None):
        self.unit, self.sp, self.fp, self.ra = unit, sp, fp, ra
        self.entry_cfa, self.entry_ra = entry_cfa, entry_ra  # entry_ra None: the return address is in its register
        self.preserved, self.savable, self.general = preserved, savable, general
        self.places = general | others  # registers that can hold another one
        self.names, self.sign_state = names, sign_state
        self.numbers = {name: number for number, name in names.items()}

    def exists(self, number):
        return number in self.names

    def entry_row(self):
        return Row(('reg', self.sp, self.entry_cfa),
                   {} if self.entry_ra is None else {self.ra: ('at_cfa', self.entry_ra)})


_X86_64 = ['rax', 'rdx', 'rcx', 'rbx', 'rsi', 'rdi', 'rbp', 'rsp'] + ['r%d' % i for i in range(8, 16)] + ['rip']
X86_64 = Arch(unit=1, sp=7, fp=6, ra=16, entry_cfa=8, entry_ra=-8, preserved={3, 6, 12, 13, 14, 15},
              savable=set(range(17)) - {7}, general=set(range(16)), others=set(), names=dict(enumerate(_X86_64)))

_AARCH64 = {i: 'x%d' % i for i in range(31)}
_AARCH64.update({31: 'sp', 32: 'pc', 34: 'ra_sign_state'})
_AARCH64.update({64 + i: 'v%d' % i for i in range(32)})
AARCH64 = Arch(unit=4, sp=31, fp=29, ra=30, entry_cfa=0, entry_ra=None,
               preserved=set(range(19, 30)) | set(range(72, 80)),
               savable=set(range(31)) | set(range(72, 80)), general=set(range(32)), others=set(range(64, 96)),
               names=_AARCH64, sign_state=34)

BY_NAME = {'x86-64': X86_64, 'i386:x86-64': X86_64, 'aarch64': AARCH64}
