# Inside of GDB, on bench_debugged: what commands take, in seconds. The environment says what: COUNT; KNOWN, whether
# functions are known; SCRIPT to load, or ""; RESULTS, a file to write "what seconds" to.
import os
import re
import subprocess
import time

import gdb

COUNT, KNOWN, RESULTS = os.environ['COUNT'], os.environ['KNOWN'] == '1', os.environ['RESULTS']
OF_PROGRAM = RESULTS + '.program'


def run(command):
    return gdb.execute(command, to_string=True)


def note(what, seconds):
    with open(RESULTS, 'a') as file:
        file.write('%s %s\n' % (what, seconds))


def measure(what, command, wanted=''):
    begin = time.monotonic()
    text = run(command)
    note(what, time.monotonic() - begin)
    if not re.search(wanted, text, re.S):
        raise gdb.GdbError('%s: %s' % (command, text))


def seconds_of_program():
    with open(OF_PROGRAM) as file:
        return dict(line.split() for line in file if line.endswith('\n'))


def registering_and_cancelling():
    gdb.Breakpoint('all_cancelled')
    run('run %s %s' % (COUNT, OF_PROGRAM))
    for what, seconds in seconds_of_program().items():
        note(what, seconds)
    run('kill')


def looking():
    os.unlink(OF_PROGRAM)
    program = subprocess.Popen([gdb.current_progspace().filename, COUNT, OF_PROGRAM], stdin=subprocess.PIPE)
    while not os.path.exists(OF_PROGRAM) or 'register' not in seconds_of_program():
        time.sleep(0.01)
    note('register_alone', seconds_of_program()['register'])
    measure('attach', 'attach %d' % program.pid)
    gdb.Breakpoint('deep_inside')
    program.stdin.write(b'\n\n\n')
    program.stdin.flush()
    run('continue')
    stack = r'deep_inside.*jit_\d+ .*jit_\d+ .*main' if KNOWN else ''
    measure('first_bt', 'bt', stack)
    measure('bt', 'bt', stack)
    measure('stepi', 'stepi')
    if KNOWN and not os.environ['SCRIPT']:
        measure('break_NAME', 'tbreak jit_%d' % (int(COUNT) // 2), 'Temporary breakpoint')
    measure('continue', 'continue')
    run('kill')


for setting in ['pagination off', 'confirm off', 'width 0', 'startup-with-shell off']:
    run('set ' + setting)
if os.environ['SCRIPT']:
    run('source ' + os.environ['SCRIPT'])
registering_and_cancelling()
looking()
