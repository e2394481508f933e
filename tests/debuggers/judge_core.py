#!/usr/bin/env python3
"""judge_core.py gdb|kernel|damage PROGRAM ARGUMENT... -- DEBUGGER ARGUMENT...: has a core file of the program written, by
GDB or by the kernel, and runs the debugger, whose argument CORE is replaced by its path; ends as that does, or with 77 and
"not run: " and why where this machine's kernel gives no core files. damage: one that GDB wrote, once for each way to damage
its list; the environment's DAMAGE says which."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # into the source tree
import core_files  # noqa: E402


def gdb(*arguments, **how):
    return subprocess.run([os.environ['GDB'], '-nx', '-q', '-batch', '-iex', 'set debuginfod enabled off', '-iex',
                           'set auto-load off', *arguments], stdin=subprocess.DEVNULL, check=True, **how)


def by_gdb(command, folder):
    core = os.path.join(folder, 'core')
    gdb('-ex', 'break stop_here', '-ex', 'run', '-ex', 'gcore ' + core, '--args', *command)
    return core


def nodes_of(core, program):
    """Addresses of the list's procedures, newest first."""
    show = 'python print("nodes", *(p.address for each in _lists.all() for p in each.procedures))'
    text = gdb('-ex', 'source ' + os.environ['SCRIPT'], '-ex', 'bt', '-ex', show, program, core,
               stdout=subprocess.PIPE, text=True).stdout
    return [int(word) for word in re.search(r'^nodes (.*)$', text, re.M).group(1).split()]


def write(core, address, value):
    """A word of the process's memory, by the program headers of the file."""
    with open(core, 'r+b') as file:
        header = file.read(64)
        start, size, count = struct.unpack_from('<Q', header, 32)[0], *struct.unpack_from('<HH', header, 54)
        for i in range(count):
            file.seek(start + i * size)
            kind, _, offset, begin, _, in_file = struct.unpack('<IIQQQQ', file.read(40))
            if kind == 1 and begin <= address < begin + in_file:
                file.seek(offset + address - begin)
                file.write(struct.pack('<Q', value))
                return
    sys.exit('the core has no memory at %#x' % address)


NEXT, NAME, REGIONS = 0, 48, 72  # in a descriptor: docs/registry.md "Finding the list"
WILD = 0x4141414141414141


def damages(newest, oldest):
    """What is written where. The newest procedure is the inner function, the oldest the outer one."""
    return {'end': (oldest + NEXT, WILD), 'ring': (oldest + NEXT, newest), 'middle': (newest + NEXT, WILD),
            'name': (oldest + NAME, WILD), 'regions': (newest + REGIONS, WILD), 'self': (newest + REGIONS, newest)}


def judge(debugger, core, **how):
    return subprocess.run([core if word == 'CORE' else word for word in debugger], stdin=subprocess.DEVNULL, **how)


def judge_damaged(debugger, core, program):
    newest, oldest = nodes_of(core, program)
    for what, (address, value) in damages(newest, oldest).items():
        damaged = core + '.' + what
        shutil.copyfile(core, damaged)
        write(damaged, address, value)
        judged = judge(debugger, damaged, env={**os.environ, 'DAMAGE': what}, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
        os.unlink(damaged)
        if judged.returncode != 0 or not judged.stdout.endswith(b'\nall right\n'):
            sys.exit('%s: %s' % (what, judged.stdout.decode(errors='backslashreplace')))
    print('\nall right')


who, *command = sys.argv[1:]
command, debugger = command[:command.index('--')], command[command.index('--') + 1:]
with tempfile.TemporaryDirectory() as folder:
    try:
        core = core_files.by_kernel(command, folder) if who == 'kernel' else by_gdb(command, folder)
    except core_files.NotWritten as reason:
        print('\nnot run: %s' % reason)
        sys.exit(77)
    try:
        if who == 'damage':
            judge_damaged(debugger, core, command[0])
        else:
            sys.exit(judge(debugger, core).returncode)
    finally:
        os.unlink(core)
