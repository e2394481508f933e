#!/usr/bin/env python3
"""damaged_lists.py FOLDER_OF_THE_SCRIPT: lists of procedures in memory that is not what it should be. Whatever is asked of
them ends, and with what the script expects."""
import random
import struct
import sys
import time
import tracemalloc

sys.dont_write_bytecode = True  # into the source tree
sys.path.insert(0, sys.argv[1])
from jitunwind_gdb import cfi, process  # noqa: E402
from jitunwind_gdb import directives as d  # noqa: E402
from jitunwind_gdb.rows import X86_64  # noqa: E402

HEAD, NODES, CODE = 0x1000, 0x2000, 0x10000


class Unmapped(Exception):
    pass


class Memory:
    def __init__(self):
        self.bytes = bytearray(0x4000)

    def put(self, address, form, *values):
        struct.pack_into(form, self.bytes, address, *values)

    def read(self, address, size):
        if address < 0 or address + size > len(self.bytes):
            raise Unmapped()
        return bytes(self.bytes[address:address + size])


def a_list(count):
    """`count` procedures: directives in three regions, or a table with one FDE."""
    memory = Memory()
    memory.put(HEAD, '<IIQ', 1, 7, NODES)
    for i in range(count):
        node, regions = NODES + 0x400 * i, NODES + 0x400 * i + 0x80
        code, following = CODE + 0x100 * i, NODES + 0x400 * (i + 1) if i + 1 < count else 0
        name, form = node + 0x60, 0 if i % 2 == 0 else 2
        memory.bytes[name:name + 4] = b'abc\0'
        table = [regions] if form == 0 else [regions]
        memory.put(node, '<QQQQQiiQQQQ', following, 0, code, code + 0x40, 0, form, 0, name,
                   0 if form == 0 else code, 0 if form == 0 else 1, table[0])
        if form == 0:
            ops = [[(d.ADD, 0, 7, 0, -8), (d.SPILL_SP_REL, 0, 3, 0, 0), (d.LABEL_STATE, 0, 0, -1, 1)],
                   [(d.ADD, 0, 7, 4, -16), (d.POP_FRAMES, 0, 0, -1, 1), (d.STOP, 0, 0, -1, 0)],
                   [(d.COPY_STATE, 0, 0, -1, 1), (d.ALIAS, 0, 0, 8, CODE)]]
            at = regions
            for r, some in enumerate(ops):
                memory.put(at, '<QiI', at + 16 + 16 * len(some) if r < 2 else 0, 0x10, len(some))
                for o, op in enumerate(some):
                    memory.put(at + 16 + 16 * o, '<bbhiq', *op)
                at += 16 + 16 * len(some)
        else:
            cie, fde = regions + 0x20, regions + 0x40
            memory.put(regions, '<ii', 0, fde - code)
            memory.put(cie, '<IIB3sBBBBBBBB', 20, 0, 1, b'zR\0', 1, 0x78, 16, 1, 0, 0x0c, 7, 8)
            memory.put(fde, '<IIQQB', 28, fde + 4 - cie, code, 0x40, 0)
            memory.bytes[fde + 25:fde + 32] = bytes([0x41, 0x0e, 16, 0x0f, 2, 0x77, 8])
    return memory


def ask_everything(memory, complaints):
    """Number of rows."""
    found = 0
    procedures = process.ProcedureList(memory.read, HEAD, complaints.append)
    for pc in range(CODE, CODE + 0x400, 5):
        try:
            procedure = procedures.find(pc)
            if procedure is None:
                continue
            procedure.name()
            row = procedure.row(X86_64, pc, procedures.find)
            found += row is not None
            if row is not None and row.cfa[0] == 'expr':
                cfi.evaluate(row.cfa[1], [], lambda number: 8, lambda address: 8)
        except (Unmapped, *process.UNTOLD):
            pass
    procedures.refresh()
    return found


def expect(what, found, wanted):
    if found != wanted:
        sys.exit('%s: %r instead of %r' % (what, found, wanted))


complaints = []
expect('whole list', ask_everything(a_list(4), complaints) > 30, True)
expect('complaints', complaints, [])

cyclic = a_list(4)
cyclic.put(NODES + 0x800, '<Q', NODES + 0x400)
ask_everything(cyclic, complaints)
expect('cyclic', complaints, ['the list of registered procedures at 0x1000 comes back to 0x2400: 3 are known'])

for back in range(4):
    complaints = []
    cyclic = a_list(4)
    cyclic.put(NODES + 0xc00, '<Q', NODES + 0x400 * back)
    ask_everything(cyclic, complaints)
    expect('cyclic', complaints, ['the list of registered procedures at 0x1000 comes back to %#x: 4 are known' %
                                  (NODES + 0x400 * back)])

complaints = []
wild = a_list(4)
wild.put(NODES + 0x400, '<Q', 0xdeadbeef)
ask_everything(wild, complaints)
expect('wild', complaints, ['the list of registered procedures at 0x1000 cannot be read at 0xdeadbeef: 2 are known'])

endless = a_list(1)
endless.put(NODES + 0x80, '<QiI', NODES + 0x80, 0, 0xffffffff)  # a region that is its own successor
expect('endless', ask_everything(endless, []), 0)

# Control characters are shown as escapes: terminals would obey them.
named = a_list(1)
name = NODES + 0x60
named.bytes[name:name + 16] = b'a\x1b[2J\n\xff\xc2\x9b\xe2\x80\xae!\0'
expect('name', process.Procedure(named.read, NODES).name(), 'a\\x1b[2J\\n\\xff\\x9b\\u202e!')


class Long:
    """As many as are followed and more, `apart` bytes from each other, read as a debugger would: not for nothing."""

    def __init__(self, apart):
        self.apart, self.reads = apart, 0

    def read(self, address, size):
        self.reads += 1
        until = time.perf_counter() + 2e-6
        while time.perf_counter() < until:
            pass
        if (address, size) == (HEAD, 16):
            return struct.pack('<IIQ', 1, 7, self.apart)
        first = -address % self.apart
        data = bytearray(size)
        for at in range(first, size - 31, self.apart):
            node = address + at
            struct.pack_into('<QQQQ', data, at, node + self.apart, 0, node, node + 1)
        return bytes(data)


for apart in (88, 1 << 20):
    complaints = []
    tracemalloc.start()
    begin = time.monotonic()
    procedures = process.ProcedureList(Long(apart).read, HEAD, complaints.append)
    expect('long', procedures.find(1), None)
    took, peak = time.monotonic() - begin, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expect('complaints of a long list', len(complaints), 1)
    expect('memory of a long list', peak < 50e6, True)
    known = len(procedures._addresses)
    expect('some of a long list are known', known > 1000, True)
    procedures.refresh()
    expect('it rests', len(procedures._addresses), known)
    time.sleep(process._MAX_SECONDS)
    procedures.refresh()
    expect('it is read on', len(procedures._addresses) > known, True)
    expect('complaints of a long list', len(complaints), 1)
    print('%d of a long list in %.1f s, %d MB' % (known, took, peak / 1e6))

# The longest list that is followed, 2^20, takes less than 150 MB, while it is sorted.
complaints, process._MAX_SECONDS, process._MAX_PROCEDURES = [], 600, 1 << 14
tracemalloc.start()


def one_by_one(address, size):
    if size > 80:
        raise Unmapped()
    return struct.pack('<IIQ', 1, 7, 88) if size == 16 else \
        struct.pack('<QQQQ', address + 88, 0, address, address + 1) + bytes(48)


procedures = process.ProcedureList(one_by_one, HEAD, complaints.append)
procedures.refresh()
peak = tracemalloc.get_traced_memory()[1]
tracemalloc.stop()
expect('too long', (len(procedures._addresses), 'is too long at' in complaints[0]), (process._MAX_PROCEDURES, True))
expect('memory of the longest list', peak < 150 * process._MAX_PROCEDURES, True)
print('%d bytes of memory for each of the longest list' % (peak / process._MAX_PROCEDURES))

random.seed(1)
rows = 0
for step in range(1000):
    memory = a_list(4)
    for _ in range(random.choice([1, 1, 2, 8, 64])):
        address = random.choice([HEAD, NODES, NODES + 0x400, NODES + 0x800, NODES + 0xc00]) + random.randrange(0x140)
        if random.random() < 0.3:
            memory.put(address & ~7, '<Q', random.choice([0, NODES, NODES + 0x480, address, (1 << 64) - 1, CODE]))
        else:
            memory.bytes[address] = random.choice([0, 1, 0x7f, 0x80, 0xff, random.randrange(256)])
    rows += ask_everything(memory, [])
print('%d rows of 1000 damaged lists, all right' % rows)
