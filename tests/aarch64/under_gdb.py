#!/usr/bin/env python3
"""under_gdb.py GDB EMULATOR... PROGRAM: runs the program under qemu-user until it stops, and prints what GDB sees then."""
import os
import subprocess
import sys
import tempfile
import time

gdb, *command = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    stub = os.path.join(folder, 'stub')
    environment = dict(os.environ, JITUNWIND_ATTACH='gdb')
    program = subprocess.Popen([command[0], '-g', stub] + command[1:], env=environment)
    try:
        while not os.path.exists(stub) and program.poll() is None:
            time.sleep(0.01)
        asked = ['set sysroot /usr/aarch64-linux-gnu', 'target remote ' + stub, 'continue', 'backtrace', 'up',
                 'info frame', 'kill']
        subprocess.run([gdb, '-batch', '-nx'] + [part for text in asked for part in ('-ex', text)] + [command[-1]],
                       stderr=subprocess.STDOUT, timeout=100)
    finally:
        program.kill()
        program.wait()
