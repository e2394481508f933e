# Runs inside GDB or LLDB on bench_debugged and measures commands in seconds. The environment has the parameters: PROGRAM;
# COUNT; KNOWN, whether functions are known; SCRIPT to load, or ""; RESULTS, a file that gets lines "what seconds".
import os
import re
import subprocess
import time

PROGRAM, COUNT, KNOWN = os.environ['PROGRAM'], os.environ['COUNT'], os.environ['KNOWN'] == '1'
RESULTS = os.environ['RESULTS']
OF_PROGRAM = RESULTS + '.program'


class Gdb:
    def __init__(self, gdb):
        self._gdb = gdb
        for setting in ['pagination off', 'confirm off', 'width 0', 'startup-with-shell off']:
            self._run('set ' + setting)
        if os.environ['SCRIPT']:
            self._run('source ' + os.environ['SCRIPT'])

    def _run(self, command):
        return self._gdb.execute(command, to_string=True)

    def start(self, *arguments):
        self._run('run ' + ' '.join(arguments))

    def attach(self, pid):
        self._run('attach %d' % pid)

    def backtrace(self):
        return self._run('bt')

    def step(self):
        self._run('stepi')

    def go_on(self):
        self._run('continue')

    def kill(self):
        self._run('kill')

    def has_breakpoint(self, name):
        return not self._gdb.Breakpoint(name).pending


class Lldb:
    def __init__(self, lldb):
        self._lldb = lldb
        lldb.debugger.SetAsync(False)
        self._target = lldb.debugger.GetSelectedTarget()

    def _is_right(self, error):
        if not error.Success():
            raise AssertionError(error.GetCString())

    def start(self, *arguments):
        info = self._lldb.SBLaunchInfo(list(arguments))
        info.SetEnvironmentEntries(['%s=%s' % item for item in os.environ.items()], False)
        info.SetLaunchFlags(info.GetLaunchFlags() & ~self._lldb.eLaunchFlagDisableASLR)  # which containers forbid
        info.AddOpenFileAction(0, os.devnull, True, False)
        error = self._lldb.SBError()
        self._process = self._target.Launch(info, error)
        self._is_right(error)

    def attach(self, pid):
        error = self._lldb.SBError()
        self._process = self._target.AttachToProcessWithID(self._lldb.SBListener(), pid, error)
        self._is_right(error)

    def backtrace(self):
        result = self._lldb.SBCommandReturnObject()
        context = self._lldb.SBExecutionContext(self._process.GetSelectedThread().GetSelectedFrame())
        self._lldb.debugger.GetCommandInterpreter().HandleCommand('bt', context, result, False)
        return result.GetOutput()

    def step(self):
        self._process.GetSelectedThread().StepInstruction(False)

    def go_on(self):
        self._is_right(self._process.Continue())

    def kill(self):
        self._process.Kill()

    def has_breakpoint(self, name):
        return self._target.BreakpointCreateByName(name).GetNumLocations() > 0


def note(what, seconds):
    with open(RESULTS, 'a') as file:
        file.write('%s %s\n' % (what, seconds))


def measure(what, action, *arguments):
    begin = time.monotonic()
    result = action(*arguments)
    note(what, time.monotonic() - begin)
    return result


def expect(what, holds):
    if not holds:
        raise AssertionError(what)


def seconds_of_program():
    with open(OF_PROGRAM) as file:
        return dict(line.split() for line in file if line.endswith('\n'))


def registering_and_cancelling(d):
    d.has_breakpoint('all_cancelled')
    d.start(COUNT, OF_PROGRAM)
    for what, seconds in seconds_of_program().items():
        note(what, seconds)
    d.kill()


def looking(d):
    os.unlink(OF_PROGRAM)
    program = subprocess.Popen([PROGRAM, COUNT, OF_PROGRAM], stdin=subprocess.PIPE)
    while not os.path.exists(OF_PROGRAM) or 'register' not in seconds_of_program():
        time.sleep(0.01)
    note('register_alone', seconds_of_program()['register'])
    measure('attach', d.attach, program.pid)
    d.has_breakpoint('deep_inside')
    program.stdin.write(b'\n\n\n')
    program.stdin.flush()
    d.go_on()
    stack = r'deep_inside.*jit_\d+.*jit_\d+.*main' if KNOWN else ''
    for what in ['first_bt', 'bt']:
        text = measure(what, d.backtrace)
        expect(text, re.search(stack, text, re.S))
    measure('stepi', d.step)
    if KNOWN and not os.environ['SCRIPT']:
        expect('a breakpoint by name', measure('break_NAME', d.has_breakpoint, 'jit_%d' % (int(COUNT) // 2)))
    measure('continue', d.go_on)
    d.kill()


def work(debugger):
    registering_and_cancelling(debugger)
    looking(debugger)


def __lldb_init_module(debugger, _):
    import lldb
    work(Lldb(lldb))


if __name__ == '__main__':
    import gdb
    work(Gdb(gdb))
