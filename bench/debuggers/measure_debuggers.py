#!/usr/bin/env python3
"""measure_debuggers GROUP COUNT [--benchmark_filter=REGEX] [ignored...]: measures debuggers on a program that registers
COUNT procedures one by one, at most 20000. The debugger does not know them, or knows them by files in memory or by GDB's
script. Prints the format of Google Benchmark."""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM, INSIDE = os.path.join(HERE, 'bench_debugged'), os.path.join(HERE, 'in_debugger.py')
COUNT = str(min(int(sys.argv[2]), 20000))
FILTER = ([arg.split('=', 1)[1] for arg in sys.argv if arg.startswith('--benchmark_filter=')] + ['.'])[0]
GDB = ['@gdb_program@', '-nx', '-q', '-batch', '-iex', 'set debuginfod enabled off', '-iex', 'set auto-load off', '-x',
       INSIDE, PROGRAM]
LLDB = ['@lldb_program@', '--no-lldbinit', '--no-use-colors', '--batch', '-o', 'command script import ' + INSIDE, PROGRAM]
WAYS = {  # debugger, JITUNWIND_ATTACH, script
    'GDB, nothing': (GDB, '', ''), 'GDB, files': (GDB, 'gdb', ''), 'GDB, script': (GDB, '', '@script@'),
    'LLDB, nothing': (LLDB, '', ''), 'LLDB, files': (LLDB, 'gdb', '')}
WHAT = ['register', 'cancel', 'register_alone', 'attach', 'first_bt', 'bt', 'stepi', 'break_NAME', 'continue']  # in turn


def wanted(way, what):
    return re.search(FILTER, 'debugger/%s/%s/%s' % (way, what, COUNT))


def measure(way, debugger, attach, script):
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, 'results')
        environment = {**os.environ, 'PROGRAM': PROGRAM, 'COUNT': COUNT, 'SCRIPT': script, 'RESULTS': results,
                       'KNOWN': '0' if way.endswith('nothing') else '1', 'JITUNWIND_ATTACH': attach}
        done = subprocess.run(debugger, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        found = {}
        if os.path.exists(results):
            with open(results) as file:
                found = dict(line.split() for line in file)
        if b'Traceback' in done.stdout or WHAT[-1] not in found:
            message = 'status %d\n%s' % (done.returncode, done.stdout.decode(errors='replace'))
            return [{'name': 'debugger/%s/%s' % (way, COUNT), 'error_occurred': True, 'error_message': message}]
    return [{'name': 'debugger/%s/%s/%s' % (way, what, COUNT), 'items_per_second': 1 / float(seconds)}
            for what, seconds in found.items() if wanted(way, what)]


there = [way for way, (debugger, _, _) in WAYS.items() if os.path.exists(debugger[0])]
ways = [way for way in there if any(wanted(way, what) for what in WHAT)]
if ways:
    print(json.dumps({'benchmarks': [each for way in ways for each in measure(way, *WAYS[way])]}))
