#!/usr/bin/env python3
"""measure_debuggers GROUP COUNT [--benchmark_filter=REGEX] [ignored...]: what GDB takes where COUNT procedures, 20000 at most, are registered one by
one: not known to it, known by files in memory, known by the script. Prints what Google Benchmark would."""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = str(min(int(sys.argv[2]), 20000))
FILTER = ([arg.split('=', 1)[1] for arg in sys.argv if arg.startswith('--benchmark_filter=')] + ['.'])[0]
WAYS = {  # JITUNWIND_ATTACH, script
    'nothing': ('', ''), 'files': ('gdb', ''), 'script': ('', '@script@')}

WHAT = ['register', 'cancel', 'register_alone', 'attach', 'first_bt', 'bt', 'stepi', 'break_NAME', 'continue']


def wanted(way, what):
    return re.search(FILTER, 'debugger/%s/%s/%s' % (way, what, COUNT))


def measure(way, attach, script):
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, 'results')
        environment = {**os.environ, 'COUNT': COUNT, 'KNOWN': '0' if way == 'nothing' else '1', 'SCRIPT': script,
                       'RESULTS': results, 'JITUNWIND_ATTACH': attach}
        done = subprocess.run(['@gdb_program@', '-nx', '-q', '-batch', '-iex', 'set debuginfod enabled off', '-iex',
                               'set auto-load off', '-x', os.path.join(HERE, 'in_gdb.py'),
                               os.path.join(HERE, 'bench_debugged')], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if b'Traceback' in done.stdout or not os.path.exists(results):
            sys.exit(done.stdout.decode(errors='replace'))
        with open(results) as file:
            for line in file:
                what, seconds = line.split()
                if wanted(way, what):
                    yield {'name': 'debugger/%s/%s/%s' % (way, what, COUNT), 'items_per_second': 1 / float(seconds)}


ways = [way for way in WAYS if any(wanted(way, what) for what in WHAT)]
if ways:
    print(json.dumps({'benchmarks': [each for way in ways for each in measure(way, *WAYS[way])]}))
