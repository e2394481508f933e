"""Core files that the kernel writes."""
import glob
import os
import re
import subprocess
import sys


class NotWritten(Exception):
    """Why this machine's kernel gives no core files."""


def by_kernel(command, folder, **how):
    """The path of the core file of a program that a signal ends: core(5)."""
    with open('/proc/sys/kernel/core_pattern') as file:
        pattern = file.read().rstrip('\n')
    if pattern.startswith('|'):
        raise NotWritten('the kernel gives cores to a program: kernel.core_pattern is %r' % pattern)
    program = subprocess.Popen(['sh', '-c', 'ulimit -c "$(ulimit -H -c)" && exec "$@"', 'sh', *command], cwd=folder, **how)
    _, status = os.waitpid(program.pid, 0)
    if not os.WIFSIGNALED(status):
        sys.exit('the program ended with status %#x' % status)
    if not os.WCOREDUMP(status):
        limit = subprocess.run(['sh', '-c', 'ulimit -H -c'], stdout=subprocess.PIPE, text=True).stdout.strip()
        raise NotWritten('the kernel wrote no core: kernel.core_pattern is %r, the hard limit %s' % (pattern, limit))
    name = re.sub('%.', '*', pattern.replace('%p', str(program.pid)))
    found = glob.glob(os.path.join(folder, name)) + glob.glob(os.path.join(folder, '%s.%d' % (name, program.pid)))
    if not found:
        raise NotWritten('there is no file where kernel.core_pattern says, %r' % pattern)
    return max(found, key=os.path.getmtime)
