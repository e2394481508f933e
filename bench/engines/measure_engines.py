#!/usr/bin/env python3
"""measure_engines GROUP COUNT [--benchmark_filter=REGEX] [ignored...]: measures the processor time of an engine alone, and
while the silent dialects or all dialects are listened to. The ways take turns, and the least time of each counts, since
nothing makes a program faster than it is. The engine's output and status must be the same each time. Prints the format
of Google Benchmark."""
import json
import os
import re
import shutil
import sys
import tempfile

TURNS = 9
FILTER = ([arg.split('=', 1)[1] for arg in sys.argv if arg.startswith('--benchmark_filter=')] + ['.'])[0]
FOLDER = '@CMAKE_CURRENT_SOURCE_DIR@/engines/'
LISTENING = {'LD_PRELOAD': '@listen_library@', 'INTEL_JIT_PROFILER64': '@itt_library@'}
WAYS = {'alone': {}, 'silent dialects': LISTENING | {'JITUNWIND_LISTEN': 'frames,itt'}, 'every dialect': LISTENING}


def newest(name):
    """Returns the program of this name with the newest release, such as lli-19 or php8.4; otherwise the name itself."""
    there = [file for folder in os.get_exec_path() if os.path.isdir(folder) for file in os.listdir(folder)
             if re.fullmatch(name + r'-?\d+(\.\d+)*', file)]
    return max(there, key=lambda file: [int(part) for part in re.findall(r'\d+', file)], default=name)


LLI = newest('lli')
PHP = [newest('php'), '-d', 'opcache.enable_cli=1', '-d', 'opcache.jit_buffer_size=64M', '-d', 'opcache.jit=1205', '-d',
       'opcache.file_update_protection=0']
ENGINES = {'%s %s' % (LLI, kind): [LLI, '--jit-kind=' + kind, FOLDER + 'work.ll']
           for kind in ('mcjit', 'orc', 'orc-lazy')}
# The status of work.ll: the sum of a generator, whose six lower bits are 1 again after each 64 rounds, and of 100 calls.
RESULT_OF_LLI = (1 + 100) % 64
ENGINES |= {'luajit': ['luajit', FOLDER + 'work.lua'], PHP[0]: PHP + [FOLDER + 'work.php']}


def run(command, environment):
    """Returns nanoseconds of processor time, and output with status. LLVM writes jitdumps unasked, into a folder here."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryDirectory() as dumps:
        child = os.posix_spawn(command[0], command, {'PATH': os.environ['PATH'], 'JITDUMPDIR': dumps} | environment,
                               file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), 1)])
        _, status, usage = os.wait4(child, 0)
        output.seek(0)
        return int((usage.ru_utime + usage.ru_stime) * 1e9), (output.read(), status)


def measure(command, names):
    """Returns Google Benchmark's entry for each way: the least time, or an error when ends are bad or differ."""
    turns = [{way: run(command, environment) for way, environment in WAYS.items()} for _ in range(TURNS + 1)][1:]
    ends = {end for turn in turns for _, end in turn.values()}
    wanted = RESULT_OF_LLI if 'lli' in os.path.basename(command[0]) else 0
    if len(ends) != 1 or any(os.waitstatus_to_exitcode(status) != wanted for _, status in ends):
        message = '%s does not end well, and in one way: %s' % (command[0], ends)
        return [{'name': names['alone'], 'error_occurred': True, 'error_message': message}]
    return [{'name': names[way], 'items_per_second': 1e9 / min(turn[way][0] for turn in turns)} for way in WAYS]


found = []
for engine, command in ENGINES.items():
    path = shutil.which(command[0])
    names = {way: 'engine_time/%s/%s' % (way, engine) for way in WAYS}
    if not path or not any(re.search(FILTER, name) for name in names.values()):
        continue
    found += measure([path] + command[1:], names)
if found:
    print(json.dumps({'benchmarks': found}))
