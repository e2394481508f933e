#!/usr/bin/env python3
"""step_by_step.py SEED COUNT INSTRUCTIONS LIES EMULATOR... PROGRAM: rows are right at every instruction of AArch64 code.

Runs tests/aarch64/stepped_program.cpp under qemu-user one instruction at a time, by its GDB stub. What is true is known
from the calls and returns that happen: at a call the caller's SP, the return address, and the registers that calls
preserve are noted; at each instruction of the function the row that the library says is evaluated, here, and must lead
to these. Goes on with further seeds until so many instructions were judged. Then LIES times: with one number of a
description changed something must be wrong.
"""
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

PRESERVED = list(range(19, 30)) + list(range(72, 80))  # by DWARF number: x19-x29, the low halves of v8-v15
SP, PC = 31, 32
ADDRESS = (1 << 48) - 1
MOST_VISITS = 8  # of one place: loops show nothing new
RULE = re.compile(r'(\w+)=(same|undefined|\[cfa([+-]\d+)?\]|cfa([+-]\d+)?|[xv]\d+|sp|\d+)(?: |$)')
CFA = re.compile(r'cfa=(sp|x\d+)([+-]\d+)?(?: |$)')


def number(name):
    return {'sp': SP, 'ra': 30, 'ra_sign_state': 34}.get(name) if not name[1:].isdigit() else \
        int(name[1:]) + (64 if name[0] == 'v' else 0)


class Row:
    def __init__(self, text):
        cfa = CFA.match(text)
        if not cfa:
            raise ValueError('cannot read the row "%s"' % text)
        self.text = text
        self.base, self.offset = number(cfa[1]), int(cfa[2] or 0)
        self.rules = {}
        at = cfa.end()
        while at < len(text):
            rule = RULE.match(text, at)
            if not rule:
                raise ValueError('cannot read the row "%s"' % text)
            self.rules[number(rule[1])] = rule[2]
            at = rule.end()
        saved = [int(r[4:-1] or 0) for r in self.rules.values() if r.startswith('[cfa')]
        self.lowest = min(saved, default=0)


class Stub:
    """The remote protocol, GDB manual, "Remote Protocol": as much as is needed."""

    def __init__(self, command):
        self.folder = tempfile.mkdtemp()
        path = os.path.join(self.folder, 'stub')
        self.process = subprocess.Popen([command[0], '-g', path] + command[1:])
        self.socket = socket.socket(socket.AF_UNIX)
        for _ in range(2000):
            try:
                self.socket.connect(path)
                break
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError('the emulator ended: %d' % self.process.returncode)
                time.sleep(0.005)
        self.buffer = b''
        self.ask('qSupported:xmlRegisters=aarch64')
        self.ask('qXfer:features:read:target.xml:0,ffb')  # from then on there are vector registers, v0 by number 34
        self.vectors = {}

    @staticmethod
    def packet(text):
        """Behind the acknowledgement of the last answer, without which it comes again."""
        data = text.encode()
        return b'+$%s#%02x' % (data, sum(data) % 256)

    def ask(self, text):
        self.socket.sendall(self.packet(text))
        return self.answer()

    def answer(self):
        while True:
            begin = self.buffer.find(b'$')
            end = self.buffer.find(b'#', begin)
            if begin >= 0 and end >= 0 and len(self.buffer) >= end + 3:
                answer, self.buffer = self.buffer[begin + 1:end], self.buffer[end + 3:]
                return answer.decode('latin-1')
            got = self.socket.recv(65536)
            if not got:
                return ''
            self.buffer += got

    def registers(self, vectors_changed=True):
        """By DWARF number: those that a row can name."""
        if vectors_changed:
            low = (bytes.fromhex(self.ask('p%x' % (34 + n)))[:8] for n in range(8, 16))
            self.vectors = {72 + n: struct.unpack('<Q', value)[0] for n, value in enumerate(low)}
        values = dict(enumerate(struct.unpack_from('<33Q', bytes.fromhex(self.ask('g')))))
        values.update(self.vectors)
        return values

    def memory(self, at, size):
        """By pieces: an answer has 4 KiB at most."""
        most = 1024
        return b''.join(bytes.fromhex(self.ask('m%x,%x' % (piece, min(most, at + size - piece))))
                        for piece in range(at, at + size, most))

    def end(self):
        self.process.kill()
        self.process.wait()
        self.socket.close()
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        os.rmdir(self.folder)


class Frame:
    def __init__(self, sp, ra, kept):
        self.sp, self.ra, self.kept = sp, ra, kept


class Judge:
    def __init__(self, path):
        with open(path) as file:
            ranges, rows = file.read().split('\n\n', 1)
        self.ranges = [tuple(int(a, 16) for a in line.split()) for line in ranges.splitlines()]
        self.rows = {}
        for line in rows.splitlines():
            at, text = line.split(' ', 1)
            self.rows[int(at, 16)] = text
        self.read = {}
        self.judged, self.wrong, self.visits = 0, [], {}

    def row(self, at):
        text = self.rows[at]
        if text not in self.read:
            self.read[text] = Row(text)
        return self.read[text]

    def judge(self, stub, here, frame):
        at = here[PC]
        self.visits[at] = self.visits.get(at, 0) + 1
        if self.visits[at] > MOST_VISITS:
            return
        self.judged += 1
        row = self.row(at)
        cfa = (here[row.base] + row.offset) & (2 ** 64 - 1)
        if cfa != frame.sp:
            return self.note(at, row, 'CFA is %x, not %x' % (frame.sp, cfa))
        saved = stub.memory(cfa + row.lowest, -row.lowest) if row.lowest < 0 else b''

        def caller(register):
            rule = row.rules.get(register, 'same')
            if rule == 'same':
                return here[register]
            if rule.startswith('[cfa'):
                offset = int(rule[4:-1] or 0)
                word = saved[offset - row.lowest:][:8] if offset <= -8 else stub.memory(cfa + offset, 8)
                return struct.unpack('<Q', word)[0]
            if rule[0] in 'xv':
                return here[number(rule)]
            return None

        if caller(30) is None or caller(30) & ADDRESS != frame.ra:
            return self.note(at, row, 'the return address is %x' % frame.ra)
        for register, value in frame.kept.items():
            if caller(register) != value:
                return self.note(at, row, 'register %d was %x' % (register, value))

    def note(self, at, row, what):
        self.wrong.append('%x: %s: %s' % (at, row.text, what))


def is_call(word):
    return word & 0xfc000000 == 0x94000000 or word & 0xfffffc1f == 0xd63f0000


def may_write_vectors(word):
    """The encoding's first table: data processing and loads and stores of SIMD and floating-point registers, SVE."""
    group = word >> 25 & 15
    return group in (2, 7, 15) or group & 5 == 4 and word >> 26 & 1


def is_return(word):
    return word & 0xfffffc1f == 0xd65f0000 or word in (0xd65f0bff, 0xd65f0fff)


def run(command, seed, count, most, lie=None):
    """Judges one run: (Judge or None, exit status)."""
    with tempfile.NamedTemporaryFile() as rows:
        stub = Stub(command + [rows.name, str(seed), str(count)] + ([] if lie is None else [str(lie)]))
        try:
            stop = stub.ask('c')
            if not stop.startswith('T05'):
                return None, int(stop[1:3], 16) if stop[:1] == 'W' else stop
            judge = Judge(rows.name)
            stub.ask('P20=' + struct.pack('<Q', stub.registers()[PC] + 4).hex())
            values = stub.registers()
            words, frames = {}, []

            def is_judged(at):
                return at in judge.rows

            while judge.judged < most:
                at = values[PC]
                if at not in words:
                    words[at] = struct.unpack('<I', stub.memory(at, 4))[0]
                word = words[at]
                if word == 0xd4200020:  # brk #1
                    break
                if is_judged(at) and frames:
                    judge.judge(stub, values, frames[-1])
                stub.ask('s')
                values = stub.registers(may_write_vectors(word))
                if is_call(word) and is_judged(values[PC]):
                    frames.append(Frame(values[SP], at + 4, {n: values[n] for n in PRESERVED}))
                elif is_return(word) and frames and values[PC] == frames[-1].ra and values[SP] == frames[-1].sp:
                    frames.pop()
            return judge, 0
        finally:
            stub.end()


def main():
    seed, count, wanted, lies = (int(a) for a in sys.argv[1:5])
    command = sys.argv[5:]
    judged, places, bad = 0, 0, []
    while judged < wanted and not bad:
        judge, status = run(command, seed, count, wanted - judged)
        if judge is None:
            sys.exit('the program ended with %s' % status)
        if judge.judged == 0:
            sys.exit('nothing was judged')
        judged, places, bad = judged + judge.judged, places + len(judge.visits), judge.wrong
        seed += 1
    print('%d instructions judged, %d places in code, %d wrong' % (judged, places, len(bad)))
    for line in bad[:20]:
        print('  ' + line)
    noticed, refused, missed, lie = 0, 0, [], 0
    while not bad and noticed + refused + len(missed) < lies:
        judge, status = run(command, seed, 1, 10 ** 6, lie)
        if judge is None and status == 4:
            seed, lie = seed + 1, 0
            continue
        if judge is None and status != 3:
            sys.exit('the program ended with %s' % status)
        if judge is None:
            refused += 1
        elif judge.wrong:
            noticed += 1
        else:
            missed.append('seed %d, number %d' % (seed, lie))
        lie += 1
    if lies:
        print('%d wrong numbers: %d noticed, %d refused, %d missed %s' %
              (lies, noticed, refused, len(missed), '; '.join(missed)))
    sys.exit(1 if bad or missed else 0)


main()
