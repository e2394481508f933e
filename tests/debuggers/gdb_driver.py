# GDB as cases.py drives it. Runs inside of GDB.
import os
import re
import sys
import tempfile

import gdb

sys.dont_write_bytecode = True  # into the source tree
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
from cases import NUMBER, expect  # noqa: E402


def run(command):
    return gdb.execute(command, to_string=True)


def frames():
    found, frame = [], gdb.newest_frame()
    while frame is not None:
        found.append(frame)
        frame = frame.older()
    return found


class _Breakpoint:
    def __init__(self, place):
        self._inner = gdb.Breakpoint(place)
        self.is_resolved = not self._inner.pending

    def hits(self):
        return self._inner.hit_count


class Gdb:
    def __init__(self, channel):
        self._by_script = channel != 'files'
        for setting in ['pagination off', 'confirm off', 'width 0', 'startup-with-shell off']:
            run('set ' + setting)
        if self._by_script:
            gdb.execute('source ' + os.environ['SCRIPT'])

    # Running.

    def program(self):
        return gdb.current_progspace().filename

    def pid(self):
        return gdb.selected_inferior().pid

    def breakpoint(self, place):
        return _Breakpoint(place)

    def breakpoint_at(self, address):
        gdb.execute('tbreak *%#x' % address)

    def start(self):
        run('run')

    def output_of_start(self):
        """What the program writes until it stops."""
        with tempfile.TemporaryFile() as file:
            kept = os.dup(1)
            os.dup2(file.fileno(), 1)
            try:
                run('run')
            finally:
                os.dup2(kept, 1)
                os.close(kept)
            file.seek(0)
            return file.read().decode(errors='surrogateescape')

    def resume(self):
        run('continue')

    def step_instruction(self):
        run('stepi')

    def finish(self):
        run('finish')

    def attach(self, pid):
        run('attach %d' % pid)

    def detach(self):
        run('detach')

    def kill(self):
        run('kill')

    def follow_child(self):
        run('set follow-fork-mode child')
        run('set detach-on-fork on')

    def pass_signal(self, name):
        run('handle %s nostop noprint pass' % name)

    # Looking.

    def names(self):
        """As `bt` shows them, up to main, which GDB takes for the end of the stack."""
        return [self._name_of(frame) for frame in frames()]

    def _name_of(self, frame):
        name = frame.name()
        if name is None and self._by_script:
            exact = frame.newer() is None or frame.newer().type() == gdb.SIGTRAMP_FRAME
            name = gdb.parse_and_eval('$jitunwind_name(%d)' % (frame.pc() if exact else frame.pc() - 1)).string() or None
        return name

    LINE = rb'^#%d +(0x[0-9a-f]+ in )?%s \('

    def backtrace(self):
        with tempfile.NamedTemporaryFile() as file:
            for setting in ['file ' + file.name, 'redirect on', 'enabled on']:
                gdb.execute('set logging ' + setting)
            try:
                gdb.execute('bt')
            finally:
                gdb.execute('set logging enabled off')
            text = file.read()
        if self._by_script:  # Python's text has these escaped
            text = text.replace(b'\\xff', b'\xff').replace(b'\\001', b'\x01')
        return text

    def pc(self, level=0):
        return frames()[level].pc()

    def cfa(self):
        return int(re.search(r'frame at (0x[0-9a-f]+)', run('info frame')).group(1), 16)

    def register(self, name, level=0):
        return int(frames()[level].read_register(name)) & NUMBER

    def select(self, level):
        run('frame %d' % level)

    def up(self):
        run('up')
        return self._name_of(gdb.selected_frame())

    def down(self):
        run('down')
        return self._name_of(gdb.selected_frame())

    def shown_register(self, name):
        """Of the selected frame, by the commands that print it."""
        value = int(gdb.parse_and_eval('(unsigned long)$' + name))
        text = run('info registers ' + name)
        expect('info registers', '%#x' % value in text, True)
        expect('$' + name, value, int(gdb.selected_frame().read_register(name)) & NUMBER)
        return value

    def is_signal_frame(self, level):
        return frames()[level].type() == gdb.SIGTRAMP_FRAME

    def word(self, address):
        return int.from_bytes(bytes(gdb.selected_inferior().read_memory(address, 8)), 'little')

    def check_saved(self, wanted):
        """Where frame 0 keeps registers of its caller: {register: address}. The script tells GDB values alone."""
        if self._by_script:
            return
        if int(gdb.VERSION.split('.')[0]) < 16 and self.word(int(gdb.selected_frame().pc())) & 0xff == 0xc3:
            # GDB before 16 asks no CFI at a ret: its epilogue unwinder (gdb, amd64-tdep.c) says that only rip is left
            # to take back. LLVM's CFI goes on to say where the others were, which is as right.
            wanted = {'rip': wanted['rip']}
        text = run('info frame').split('Saved registers:')[1]
        expect('saved registers', {r: int(a, 16) for r, a in re.findall(r'(r\w+) at (0x[0-9a-f]+)', text)}, wanted)

    def close_list_to_a_ring(self):
        """In the memory of the program, as if a procedure had been registered meanwhile."""
        script = __import__('__main__')._lists.all()[0]
        memory = gdb.selected_inferior()
        memory.write_memory(script.procedures[-1].address, script.procedures[0].address.to_bytes(8, 'little'))
        memory.write_memory(script.head + 4, (script.generation + 1).to_bytes(4, 'little'))
        run('maintenance flush register-cache')

    def times_known(self, name, address):
        return len(re.findall(r'^%s( \+ \d+)? in section ' % name, run('info symbol %#x' % address), re.M))

    def knows(self, name, address):
        """Is there a function of this name, or anything at the address?"""
        try:
            named = 'No symbol' not in run('info address ' + name)
        except gdb.error:
            named = False
        return named or not run('info symbol %#x' % address).startswith('No symbol')


status = 0 if cases.run(Gdb) else 1
run('set confirm off')
run('quit %d' % status)
