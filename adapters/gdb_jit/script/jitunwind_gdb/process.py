"""The list of registered procedures in a target's memory: docs/registry.md "Finding the list". Independent of GDB."""

import array
import bisect
import struct
import time

from . import cfi
from .directives import MAX_OPS, MAX_REGIONS, STOP, DirectiveError, Op, Region, directive_row

# The memory may be damaged, or may never have been a list; these limits bound the reads.
_MAX_PROCEDURES = 1 << 20
_MAX_SECONDS = 0.7  # time to read a part of a list, and pause before the next part
_MAX_OPS_OF_PROCEDURE = 1 << 16
# Procedure.row() raises these if it has no row, beside the exceptions of `read`.
UNTOLD = (DirectiveError, cfi.CfiError, IndexError, KeyError)


def printable(data):
    """Text without control characters: a terminal would execute them, and a line end would begin another line."""
    text = data.decode(errors='backslashreplace')
    return ''.join(c if c.isprintable() else c.encode('unicode_escape').decode('ascii') for c in text)


class _Pages:
    """A cache of one page: most descriptors are adjacent, and each read by the debugger costs as much as a page."""

    _SIZE = 4096

    def __init__(self, read):
        self._read, self._at, self._page = read, 0, b''

    def read(self, address, size):
        begin = address - self._at
        if 0 <= begin and begin + size <= len(self._page):
            return self._page[begin:begin + size]
        at = address - address % self._SIZE
        if address + size > at + self._SIZE:
            return self._read(address, size)
        try:
            self._at, self._page = at, self._read(at, self._SIZE)
        except Exception:  # any exception of the debugger
            self._at, self._page = 0, b''
            return self._read(address, size)
        return self._page[address - at:address - at + size]


class Procedure:
    """A descriptor. `read(address, size)` returns bytes or raises."""

    def __init__(self, read, address):
        self.read, self.address = read, address
        (self.next, _, self.begin, self.end, self.gp, self.format, _, self.name_address,
         self.segbase, self.words, self.table) = struct.unpack('<QQQQQiiQQQQ', read(address, 80))

    def name(self):
        """The name up to its NUL, as text; None: the procedure has no name."""
        if self.name_address == 0:
            return None
        found = b''
        while len(found) < 4096 and b'\0' not in found:
            try:
                found += self.read(self.name_address + len(found), 64 - (self.name_address + len(found)) % 64)
            except Exception:
                break
        return printable(found.split(b'\0')[0]) or None

    def regions(self):
        found, address, ops = [], self.table, 0  # the union's last word: pi.regions, ti.table_data
        while address:
            if len(found) == MAX_REGIONS:
                raise DirectiveError('E_CYCLE')
            following, count, allocated = struct.unpack('<QiI', self.read(address, 16))
            found.append(Region(count, list(self._ops(address + 16, min(allocated, MAX_OPS)))))
            ops += len(found[-1].ops)
            if ops > _MAX_OPS_OF_PROCEDURE:
                raise DirectiveError('E_CYCLE')
            address = following
        return found

    def _ops(self, address, count):
        while count > 0:
            some = min(count, 64)
            try:
                data = self.read(address, 16 * some)
            except Exception:
                if some == 1:
                    raise
                some, data = 1, self.read(address, 16)
            for tag, _, reg, when, val in struct.iter_unpack('<bbhiq', data):
                yield Op(tag, reg, when, val)
                if tag == STOP:
                    return
            address, count = address + 16 * some, count - some

    def row(self, arch, pc, find):
        """The row at the address; None: this procedure has no row there. Raises UNTOLD and the exceptions of `read`."""
        if self.format == 0:
            return directive_row(arch, self, pc, find)
        if self.format not in (1, 2, 4, 5):
            raise DirectiveError('E_FORMAT')
        fde = cfi.find_fde(self.read, self, pc)
        return None if fde is None else fde.row(arch, pc)


class ProcedureList:
    """The procedures of one head, newest first, cached until the head's generation changes. `complain(text)` is called
    once for a damaged list."""

    def __init__(self, read, head, complain):
        self.read, self.head, self.complain, self.generation = read, head, complain, None
        self._clear()
        self._sort()

    def _clear(self):
        # The arrays are in the order of age. Objects would take 50 times as much memory.
        self._addresses, self._all_begins, self._all_ends = (array.array('Q') for _ in range(3))
        self._seen_last, self._until = 0, 1

    @property
    def procedures(self):
        return [Procedure(self.read, address) for address in self._addresses]

    def refresh(self):
        _, generation, address = struct.unpack('<IIQ', self.read(self.head, 16))
        if generation != self.generation:
            self.generation = generation
            self._clear()
            self._rest, self._is_told = address, False
        elif not self._rest or time.monotonic() < self._rests_until:
            return
        wrong = self._follow()
        if wrong and not self._is_told:
            self._is_told = True
            self.complain('the list of registered procedures at %#x %s %#x: %d are known' %
                          (self.head, *wrong, len(self._addresses)))  # the procedures before it stay known
        self._sort()

    def _follow(self):
        """The defect of the list and its address, or None. A cycle is detected some rounds later, by the address at
        position 2^n (Brent's algorithm), because a set of all addresses would be large. The rest of a long list is read
        later, so that no command takes long."""
        pages, end = _Pages(self.read), time.monotonic() + _MAX_SECONDS
        address, self._rest = self._rest, 0
        while address:
            count = len(self._addresses)
            if address == self._seen_last:
                self._addresses.append(address)
                return 'comes back to', self._keep_first_round(count - self._until // 2)
            if count == self._until:
                self._seen_last, self._until = address, 2 * self._until
            if count == _MAX_PROCEDURES:
                return 'is too long at', address
            if count % 256 == 255 and time.monotonic() > end:
                self._rest, self._rests_until = address, time.monotonic() + _MAX_SECONDS
                return 'is long, and is read on later from', address
            try:
                following, _, begin, stop = struct.unpack('<QQQQ', pages.read(address, 80)[:32])
            except Exception:  # any exception of the debugger
                return 'cannot be read at', address
            self._addresses.append(address)
            self._all_begins.append(begin)
            self._all_ends.append(stop)
            address = following
        return None

    def _keep_first_round(self, length):
        """Drops the repetitions of a cycle and returns the address where the second round begins."""
        begin = next(i for i in range(len(self._addresses)) if self._addresses[i] == self._addresses[i + length])
        address = self._addresses[begin]
        for one in (self._addresses, self._all_begins, self._all_ends):
            del one[begin + length:]
        return address

    def _sort(self):
        order = sorted(range(len(self._addresses)), key=self._all_begins.__getitem__)  # stable: equal ones by age
        self._order = array.array('I', order)
        self._begins = array.array('Q', (self._all_begins[i] for i in order))
        self._ends = array.array('Q')  # the highest end up to each position
        highest = 0
        for i in order:
            highest = max(highest, self._all_ends[i])
            self._ends.append(highest)

    def find(self, pc):
        """The newest procedure that covers `pc`, or None."""
        self.refresh()
        found = None
        i = bisect.bisect_right(self._begins, pc) - 1
        while i >= 0 and self._ends[i] > pc:
            age = self._order[i]
            if self._all_ends[age] > pc and (found is None or age < found):
                found = age
            i -= 1
        return None if found is None else Procedure(self.read, self._addresses[found])
