"""The list of registered procedures in the memory of a target: docs/registry.md "Finding the list". No GDB in here."""

import bisect
import struct

from . import cfi
from .directives import MAX_OPS, MAX_REGIONS, STOP, DirectiveError, Op, Region, directive_row

# Memory may be damaged, or never have been a list: bounds of what is read of it.
_MAX_PROCEDURES = 1 << 20
_MAX_OPS_OF_PROCEDURE = 1 << 16
# What Procedure.row() raises where it cannot tell, beside what `read` raises.
UNTOLD = (DirectiveError, cfi.CfiError, IndexError, KeyError)


class Procedure:
    """A descriptor. `read(address, size)` gives bytes or raises."""

    def __init__(self, read, address):
        self.read, self.address = read, address
        (self.next, _, self.begin, self.end, self.gp, self.format, _, self.name_address,
         self.segbase, self.words, self.table) = struct.unpack('<QQQQQiiQQQQ', read(address, 80))

    def name(self):
        """Bytes up to a NUL, as text; None: there is none."""
        if self.name_address == 0:
            return None
        found = b''
        while len(found) < 4096 and b'\0' not in found:
            try:
                found += self.read(self.name_address + len(found), 64 - (self.name_address + len(found)) % 64)
            except Exception:
                break
        return found.split(b'\0')[0].decode(errors='backslashreplace') or None

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
        """None: this procedure says nothing of the address. Raises UNTOLD, and what `read` raises."""
        if self.format == 0:
            return directive_row(arch, self, pc, find)
        if self.format not in (1, 2, 4, 5):
            raise DirectiveError('E_FORMAT')
        fde = cfi.find_fde(self.read, self, pc)
        return None if fde is None else fde.row(arch, pc)


class ProcedureList:
    """The procedures of one head, newest first, kept until the head's generation says that they changed. `complain(text)`
    is told once what is wrong with a list."""

    def __init__(self, read, head, complain):
        self.read, self.head, self.complain, self.generation, self.procedures = read, head, complain, None, []

    def refresh(self):
        _, generation, address = struct.unpack('<IIQ', self.read(self.head, 16))
        if generation == self.generation:
            return
        self.generation, self.procedures = generation, []
        seen = set()
        while address:
            what = 'comes back to' if address in seen else 'is too long at' if len(seen) == _MAX_PROCEDURES else None
            try:
                procedure = Procedure(self.read, address)
            except Exception:
                what = what or 'cannot be read at'
            if what:
                self.complain('the list of registered procedures at %#x %s %#x: %d are known' %
                              (self.head, what, address, len(seen)))
                break  # what is in front of it stays known
            seen.add(address)
            self.procedures.append(procedure)
            address = procedure.next
        self._sort()

    def _sort(self):
        order = sorted(range(len(self.procedures)), key=lambda i: (self.procedures[i].begin, i))
        self._order = order
        self._begins = [self.procedures[i].begin for i in order]
        self._ends = []  # the highest end up to each
        for i in order:
            self._ends.append(max(self.procedures[i].end, self._ends[-1] if self._ends else 0))

    def find(self, pc):
        """The newest one that covers `pc`, or None."""
        self.refresh()
        if not self.procedures:
            return None
        found = None
        i = bisect.bisect_right(self._begins, pc) - 1
        while i >= 0 and self._ends[i] > pc:
            age = self._order[i]
            if self.procedures[age].end > pc and (found is None or age < found):
                found = age
            i -= 1
        return None if found is None else self.procedures[found]
