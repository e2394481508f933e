# LLDB as cases.py drives it. Runs inside of LLDB.
import os
import re
import sys
import tempfile

import lldb

sys.dont_write_bytecode = True  # into the source tree
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases  # noqa: E402
from cases import expect  # noqa: E402


class _Breakpoint:
    def __init__(self, inner):
        self._inner = inner
        self.is_resolved = inner.GetNumLocations() > 0

    def hits(self):
        return self._inner.GetHitCount()


class Lldb:
    def __init__(self, channel):
        self._debugger = lldb.debugger
        self._debugger.SetAsync(False)
        self._target = self._debugger.GetSelectedTarget()
        self._process = self._target.GetProcess()  # of a core file, or none yet
        for setting in ['target.disable-aslr false', 'stop-line-count-before 0', 'stop-line-count-after 0']:
            self._run('settings set ' + setting)

    def _run(self, command):
        result = lldb.SBCommandReturnObject()
        context = lldb.SBExecutionContext(self._target)  # that of the command that runs this file has no process yet
        if self._process.IsValid():
            context = lldb.SBExecutionContext(self._thread().GetSelectedFrame())
        self._debugger.GetCommandInterpreter().HandleCommand(command, context, result, False)
        if not result.Succeeded():
            raise AssertionError('%s: %s' % (command, result.GetError()))
        return result.GetOutput()

    def _thread(self):
        for thread in self._process:
            if thread.GetStopReason() not in (lldb.eStopReasonNone, lldb.eStopReasonInvalid):
                self._process.SetSelectedThread(thread)
                return thread
        return self._process.GetThreadAtIndex(0)

    def _frame(self, level):
        return self._thread().GetFrameAtIndex(level)

    # Running.

    def program(self):
        return self._target.GetExecutable().fullpath

    def pid(self):
        return self._process.GetProcessID()

    def breakpoint(self, place):
        return _Breakpoint(self._target.BreakpointCreateByName(place))

    def breakpoint_at(self, address):
        self._target.BreakpointCreateByAddress(address).SetOneShot(True)

    def start(self, output=None):
        info = lldb.SBLaunchInfo(os.environ['ARGUMENTS'].split())
        info.SetEnvironmentEntries(['%s=%s' % item for item in os.environ.items()], False)
        info.SetLaunchFlags(info.GetLaunchFlags() & ~lldb.eLaunchFlagDisableASLR)
        if output is not None:
            info.AddOpenFileAction(1, output, False, True)
        error = lldb.SBError()
        self._process = self._target.Launch(info, error)
        if not error.Success():
            raise AssertionError('launch: ' + error.GetCString())

    def output_of_start(self):
        with tempfile.NamedTemporaryFile() as file:
            self.start(file.name)
            return file.read().decode(errors='surrogateescape')

    def resume(self):
        self._process.Continue()

    def step_instruction(self):
        self._thread().StepInstruction(False)

    def finish(self):
        self._thread().SetSelectedFrame(0)
        self._run('finish')

    def attach(self, pid):
        error = lldb.SBError()
        self._process = self._target.AttachToProcessWithID(lldb.SBListener(), pid, error)
        if not error.Success():
            raise AssertionError('attach: ' + error.GetCString())

    def detach(self):
        self._process.Detach()

    def kill(self):
        self._process.Kill()

    def follow_child(self):
        self._run('settings set target.process.follow-fork-mode child')

    def pass_signal(self, name):
        self._run('process handle %s -s false -n false -p true' % name)

    # Looking.

    def names(self):
        found = []
        for frame in self._thread():
            name = frame.GetFunctionName()
            if name is not None and not str(frame.GetModule()).startswith('(x86_64) JIT('):
                name = re.sub(r'\(.*', '', name).removeprefix('::')
            found.append(name)
            if name == 'main':
                break
        return found

    LINE = rb'frame #%d: 0x[0-9a-f]+ [^`]*`(::)?%s( \+ \d|\(| at |$)'

    def backtrace(self):
        return self._run('bt').encode(errors='surrogateescape')

    def pc(self, level=0):
        return self._frame(level).GetPC()

    def cfa(self):
        return self._frame(0).GetCFA()

    def register(self, name, level=0):
        value = self._frame(level).FindRegister(name)
        expect('register ' + name, value.GetError().Success() and value.GetValue() is not None, True)
        return value.GetValueAsUnsigned()

    def select(self, level):
        self._run('frame select %d' % level)

    def up(self):
        self._run('up')
        return self._selected()

    def down(self):
        self._run('down')
        return self._selected()

    def _selected(self):
        return self.names()[self._process.GetSelectedThread().GetSelectedFrame().GetFrameID()]

    def shown_register(self, name):
        return int(re.search(r'= 0x([0-9a-f]+)', self._run('register read ' + name)).group(1), 16)

    def is_signal_frame(self, level):
        return self._frame(level).GetFunctionName() == '__restore_rt'

    def word(self, address):
        return self._process.ReadUnsignedFromMemory(address, 8, lldb.SBError())

    def check_saved(self, wanted):
        pass  # LLDB does not say where

    def times_known(self, name, _):
        return self._target.FindFunctions(name).GetSize()

    def knows(self, name, address):
        return self._target.FindFunctions(name).GetSize() > 0 or \
            self._target.ResolveLoadAddress(address).GetSection().IsValid()


def __lldb_init_module(debugger, _):
    status = 0 if cases.run(Lldb) else 1
    debugger.HandleCommand('settings set auto-confirm true')
    debugger.HandleCommand('quit %d' % status)
