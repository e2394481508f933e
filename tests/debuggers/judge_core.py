#!/usr/bin/env python3
"""judge_core.py gdb|kernel PROGRAM ARGUMENT... -- DEBUGGER ARGUMENT...: has a core file of the program written, by GDB
or by the kernel, and runs the debugger, whose argument CORE is replaced by its path. "not run: " and why where this
machine's kernel gives no core files."""
import glob
import os
import re
import subprocess
import sys
import tempfile


def by_gdb(command, folder):
    core = os.path.join(folder, 'core')
    subprocess.run([os.environ['GDB'], '-nx', '-q', '-batch', '-iex', 'set debuginfod enabled off', '-iex',
                    'set auto-load off', '-ex', 'break stop_here', '-ex', 'run', '-ex', 'gcore ' + core, '--args',
                    *command], stdin=subprocess.DEVNULL, check=True)
    return core


def not_run(reason):
    print('\nnot run: ' + reason)
    sys.exit(1)


def by_kernel(command, folder):
    """core(5)."""
    with open('/proc/sys/kernel/core_pattern') as file:
        pattern = file.read().rstrip('\n')
    if pattern.startswith('|'):
        not_run('the kernel gives cores to a program: kernel.core_pattern is %r' % pattern)
    program = subprocess.Popen(['sh', '-c', 'ulimit -c "$(ulimit -H -c)" && exec "$@"', 'sh', *command], cwd=folder)
    _, status = os.waitpid(program.pid, 0)
    if not os.WIFSIGNALED(status):
        sys.exit('the program ended with status %#x' % status)
    if not os.WCOREDUMP(status):
        limit = subprocess.run(['sh', '-c', 'ulimit -H -c'], stdout=subprocess.PIPE, text=True).stdout.strip()
        not_run('the kernel wrote no core: kernel.core_pattern is %r, the hard limit %s' % (pattern, limit))
    name = re.sub('%.', '*', pattern.replace('%p', str(program.pid)))
    found = glob.glob(os.path.join(folder, name)) + glob.glob(os.path.join(folder, '%s.%d' % (name, program.pid)))
    if not found:
        not_run('there is no file where kernel.core_pattern says, %r' % pattern)
    return max(found, key=os.path.getmtime)


who, *command = sys.argv[1:]
command, debugger = command[:command.index('--')], command[command.index('--') + 1:]
with tempfile.TemporaryDirectory() as folder:
    core = by_gdb(command, folder) if who == 'gdb' else by_kernel(command, folder)
    try:
        subprocess.run([core if word == 'CORE' else word for word in debugger], stdin=subprocess.DEVNULL)
    finally:
        os.unlink(core)
