"""Converts directives to rows, as docs/directives.md specifies. Independent of GDB."""

from .rows import Row

STOP, SAVE_REG, SPILL_FP_REL, SPILL_SP_REL, ADD, POP_FRAMES, LABEL_STATE, COPY_STATE, ALIAS = range(9)
UNKNOWN = -(1 << 63)  # UNW_DYN_ADD_UNKNOWN
MAX_REGIONS = 4096
MAX_OPS = 65536
MAX_ALIASES = 8

_ENTRY = -1  # takes effect at the beginning of its region


class DirectiveError(Exception):
    """An error that ends a lookup: a code of "Validation"."""


class Op:
    def __init__(self, tag, reg, when, val):
        self.tag, self.reg, self.when, self.val = tag, reg, when, val


class Region:
    def __init__(self, count, ops):
        """`count`: insn_count; `ops` as allocated."""
        self.count, self.ops = count, ops


def _wrap(value):
    return ((value + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


class _State:
    """ "Frame state". `places` holds the rules of registers: ('same',) ('undefined',) ('at_cfa', o) ('at_sp', o)
    ('in', register)."""

    def __init__(self, arch):
        self.arch = arch
        self.sp_off, self.fp, self.fp_off, self.slot = arch.entry_cfa, None, None, None
        self.places = {} if arch.entry_ra is None else {arch.ra: ('at_cfa', arch.entry_ra)}
        self.signed, self.alias = False, None

    def copy(self):
        other = _State.__new__(_State)
        other.__dict__.update(self.__dict__)
        other.places = dict(self.places)
        return other

    def end_fp(self):
        self.fp = self.fp_off = None

    def become_alias(self, address):
        self.__init__(self.arch)
        self.places, self.sp_off, self.alias = {}, None, address

    def _ra_at_entry(self):
        ra = self.arch.ra
        if self.arch.entry_ra is None:
            return self.places.get(ra, ('same',)) == ('same',)
        return self.places.get(ra) == ('at_cfa', self.arch.entry_ra)

    def _no_alias(self):
        if self.alias is not None:
            raise DirectiveError('E_ALIAS_STATE')

    # One instruction, in the order of rule G.

    def reload_sp(self, reg):
        self._no_alias()
        if self.fp is not None and reg == self.fp:
            self.sp_off = self.fp_off
            if reg not in self.arch.preserved:
                self.end_fp()
        elif reg == self.arch.sp and self.slot is not None:
            self.sp_off, self.slot = self.slot[1], None
        else:
            raise DirectiveError('E_NO_FP')

    def add_sp(self, value):
        self._no_alias()
        at_sp = {r: p for r, p in self.places.items() if p[0] == 'at_sp'}
        if value == UNKNOWN:
            self.sp_off = self.slot = None
            self.places.update({r: ('undefined',) for r in at_sp})
            return
        if self.slot is not None:
            self.slot = (_wrap(self.slot[0] - value), self.slot[1])
        if self.sp_off is not None:
            self.sp_off = _wrap(self.sp_off - value)
        else:
            self.places.update({r: ('at_sp', _wrap(p[1] - value)) for r, p in at_sp.items()})

    def set_fp(self, reg):
        self._no_alias()
        if self.sp_off is None:
            raise DirectiveError('E_FP_UNKNOWN')
        self.fp, self.fp_off = reg, self.sp_off

    def add(self, reg, value):
        self._no_alias()
        if self.fp is not None and reg == self.fp:
            if value == UNKNOWN:
                self.end_fp()
            else:
                self.fp_off = _wrap(self.fp_off - value)
        elif self.arch.sign_state is not None and reg == self.arch.sign_state:
            self.signed ^= value != UNKNOWN and value & 1 != 0
        else:
            raise DirectiveError('E_ADD_REG')

    def settle(self, old):
        """The deallocation rule; `old`: sp_off before the instruction."""
        if self.alias is not None or self.sp_off is None or (old is not None and self.sp_off >= old):
            return
        for reg, place in list(self.places.items()):
            freed = place[0] == 'at_cfa' and place[1] < -self.sp_off and (old is None or place[1] >= -old)
            if not freed and place[0] != 'at_sp' or reg == self.arch.ra and self._ra_at_entry():
                continue
            self.places[reg] = ('same',)
            if reg == self.fp:
                self.end_fp()

    def save(self, op, sp_off, fp, fp_off):
        """Applies a save; the other arguments are SP and frame pointer after the instruction."""
        if op.tag == SAVE_REG:
            self.places[op.reg] = ('same',) if op.reg == op.val else ('in', op.val)
            if op.reg == op.val == fp:
                self.end_fp()
            return
        self._no_alias()
        if op.tag == SPILL_FP_REL:
            if fp is None:
                raise DirectiveError('E_NO_FP')
            self.places[op.reg] = ('at_cfa', _wrap(op.val - fp_off))
        elif op.reg == self.arch.sp:
            copied = fp_off if fp is not None else sp_off
            self.slot = None if copied is None else (op.val, copied)
            self.end_fp()
        elif sp_off is not None:
            self.places[op.reg] = ('at_cfa', _wrap(op.val - sp_off))
        else:
            self.places[op.reg] = ('at_sp', op.val)

    def pop_frames(self):
        self._no_alias()
        old, self.sp_off, self.slot = self.sp_off, self.arch.entry_cfa, None
        self.end_fp()
        self.settle(old)

    def judge(self, fp_set):
        if self.alias is not None:
            return
        if fp_set is not None and fp_set == self.fp and self.places.get(fp_set, ('same',)) == ('same',) and \
           (fp_set == self.arch.ra or fp_set in self.arch.preserved):
            self.places[fp_set] = ('undefined',)
            if fp_set == self.arch.ra:
                raise DirectiveError('E_FP_CLOBBER')
        if self.sp_off is not None and self.sp_off < self.arch.entry_cfa and self._ra_at_entry():
            raise DirectiveError('E_SP_HIGH')

    # The row.

    def rules(self):
        sp = self.arch.sp
        rules = {r: ('at_reg', sp, p[1]) if p[0] == 'at_sp' else p for r, p in self.places.items() if p != ('same',)}
        if self.signed:
            rules[self.arch.sign_state] = ('const', 1)
        return rules

    def row(self):
        if self.fp is not None:
            cfa = ('reg', self.fp, self.fp_off)
        elif self.slot is not None:
            cfa = ('deref', self.arch.sp) + self.slot
        elif self.sp_off is not None:
            cfa = ('reg', self.arch.sp, self.sp_off)
        else:
            raise DirectiveError('E_SP_LOST')
        return Row(cfa, self.rules())

    def take_over(self, row):
        """This procedure's row, derived from the row at the alias's address."""
        if row.cfa[0] == 'reg' and row.cfa[1] in self.places or row.cfa[0] == 'deref' and row.cfa[1] in self.places:
            raise DirectiveError('E_ALIAS_STATE')
        rules = {r: rule for r, rule in row.rules.items() if r not in self.places}
        rules.update(self.rules())
        return Row(row.cfa, rules)


def _check_register(op, arch):
    """Raises E_REG for a directive that the register does not allow."""
    if not arch.exists(op.reg):
        raise DirectiveError('E_REG')
    if op.tag == ADD:
        return
    savable = op.reg in arch.savable
    if op.tag == SPILL_SP_REL:
        right = savable or op.reg == arch.sp
    elif op.tag == SPILL_FP_REL:
        right = savable
    elif op.val not in arch.places:
        right = False
    elif op.val == arch.sp:
        right = op.reg == arch.sp or savable
    elif op.reg == arch.sp:
        right = op.val in arch.general
    else:
        right = savable
    if not right:
        raise DirectiveError('E_REG')


def _by_time(region):
    """[(when, directives)]: groups of rule G in their order, and the `when` of the region's ALIAS, or None."""
    length, latest, groups, alias = abs(region.count), _ENTRY, {}, None
    for op in region.ops:
        if op.tag == STOP:
            break
        if not 0 <= op.tag <= ALIAS:
            raise DirectiveError('E_TAG')
        if op.tag == LABEL_STATE and op.when < 0:
            when = latest
        else:
            when = _ENTRY if op.when < 0 or length == 0 else min(op.when, length - 1)
        latest = max(latest, when)
        groups.setdefault(when, []).append(op)
        if op.tag == ALIAS:
            alias = when if alias is None else min(alias, when)
    return sorted(groups.items()), alias


class _Machine:
    """`stack`: (state, stack below, depth) or None. Its states never change, so that labels can share it."""

    def __init__(self, arch):
        self.arch, self.state, self.stack, self.labels = arch, _State(arch), None, {}

    def _push(self):
        self.stack = self.state.copy(), self.stack, self._depth() + 1

    def _pop(self, count):
        if count > self._depth():
            raise DirectiveError('E_POP')
        for _ in range(count):
            state, self.stack, _ = self.stack
        self.state = state.copy()

    def _depth(self):
        return 0 if self.stack is None else self.stack[2]

    def run(self, regions, units, x):
        """The state before unit x."""
        if len(regions) > MAX_REGIONS:
            raise DirectiveError('E_CYCLE')
        end = 0
        for i, region in enumerate(regions):
            begin, length = end, abs(region.count)
            if region.count < 0:
                if i + 1 != len(regions):
                    raise DirectiveError('E_NEG')
                begin = units - length
                if begin < end:
                    raise DirectiveError('E_OVERLAP')
            if x < begin:
                break
            self._push()
            pops = self._region(region, x - begin)
            end = begin + length
            if x < end:
                break
            if pops:
                self._pop(pops)
        return self.state

    def _region(self, region, x):
        groups, alias_when = _by_time(region)
        pops = 0
        for when, ops in groups:
            if x <= when:
                break
            if when == alias_when:
                behind = min(x, abs(region.count)) - (when + 1)
                for op in ops:
                    if op.tag == ALIAS:
                        self.state.become_alias((op.val + behind * self.arch.unit) & ((1 << 64) - 1))
                return 0
            for op in ops:
                if op.tag == COPY_STATE:
                    if op.val not in self.labels:
                        raise DirectiveError('E_LABEL')
                    state, self.stack = self.labels[op.val]
                    self.state, pops = state.copy(), 0
            pops = self._instruction([op for op in ops if op.tag not in (COPY_STATE, LABEL_STATE)]) or pops
            for op in ops:
                if op.tag == LABEL_STATE:
                    self.labels[op.val] = self.state.copy(), self.stack
        return pops

    def _instruction(self, ops):
        """Number of states that POP_FRAMES pops, or 0."""
        state, sp = self.state, self.arch.sp
        if not ops:
            return 0
        old, fp_set, pops = state.sp_off, None, 0
        reloads = [op for op in ops if op.tag == SAVE_REG and op.val == sp]
        sets = [op for op in ops if op.tag == SAVE_REG and op.reg == sp and op.val != sp]
        for op in reloads:
            _check_register(op, self.arch)
            state.reload_sp(op.reg)
        for op in ops:
            if op.tag == ADD and op.reg == sp:
                state.add_sp(op.val)
        for op in sets:
            _check_register(op, self.arch)
            state.set_fp(op.val)
            fp_set = op.val
        for op in ops:
            if op.tag == ADD and op.reg != sp:
                _check_register(op, self.arch)
                state.add(op.reg, op.val)
        fp_set = state.fp if sets else None
        state.settle(old)
        left = state.sp_off, state.fp, state.fp_off
        for op in ops:
            if op.tag in (SPILL_FP_REL, SPILL_SP_REL) or op.tag == SAVE_REG and op not in reloads and op not in sets:
                _check_register(op, self.arch)
                state.save(op, *left)
        for op in ops:
            if op.tag == POP_FRAMES:
                if op.val < 1:
                    raise DirectiveError('E_POP')
                pops = op.val
                state.pop_frames()
        state.judge(fp_set)
        return pops


def directive_row(arch, procedure, address, find):
    """The row at `address`. `procedure` has begin, end, and regions() as a list of Region. `find(address)` looks up the
    code that ALIAS names: a procedure, or a Row, or None."""
    alias, depth = None, 0
    if procedure.begin >= procedure.end or (procedure.end - procedure.begin) % arch.unit != 0:
        raise DirectiveError('E_RANGE')
    while True:
        if depth > MAX_ALIASES:
            raise DirectiveError('E_ALIAS_DEPTH')
        units = (procedure.end - procedure.begin) // arch.unit
        state = _Machine(arch).run(procedure.regions(), units, (address - procedure.begin) // arch.unit)
        if alias is not None and state.alias is not None:
            merged = state.copy()
            merged.places.update(alias.places)
            state = merged
        if state.alias is None:
            return state.row() if alias is None else alias.take_over(state.row())
        alias, address, depth = state, state.alias, depth + 1
        procedure = find(address)
        if procedure is None:
            raise DirectiveError('NO_INFO')
        if isinstance(procedure, Row):
            return alias.take_over(procedure)
