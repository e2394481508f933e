#!/usr/bin/env python3
"""measure_headers GROUP COUNT [--benchmark_filter=REGEX] [ignored...]: measures the compiler on a file that includes one
header, and on a file with only the standard headers that this header includes. The two alternate; a row is the median of
the compiler's own time. Prints the format of Google Benchmark."""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HEADERS, TURNS = '@jitunwind_headers@', 5
FILTER = ([arg.split('=', 1)[1] for arg in sys.argv if arg.startswith('--benchmark_filter=')] + ['.'])[0]
COMPILE = ['@CMAKE_CXX_COMPILER@', '-std=c++20', '-fsyntax-only', '-I', HEADERS]


def standard_headers(file):
    """Returns the standard headers that the project's headers include."""
    text = subprocess.run(COMPILE + ['-M', file], check=True, capture_output=True, text=True).stdout
    own = [name for name in text.replace('\\\n', ' ').split() if name.startswith(HEADERS)]
    found = set()
    for name in own:
        with open(name, encoding='utf-8') as header:
            found.update(re.findall(r'^#include <([a-z_]+)>$', header.read(), re.MULTILINE))
    return sorted(found)


def compile_time(file):
    """Returns nanoseconds of processor time."""
    child = subprocess.Popen(COMPILE + [file])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError('the compiler failed')
    return int((usage.ru_utime + usage.ru_stime) * 1e9)


if re.search(FILTER, 'compile'):
    with tempfile.TemporaryDirectory() as folder:
        files = {'jitunwind/jitunwind.h': folder + '/umbrella.cpp', 'standard headers alone': folder + '/standard.cpp'}
        for way, lines in ('jitunwind/jitunwind.h', None), ('standard headers alone', standard_headers):
            with open(files[way], 'w', encoding='utf-8') as file:
                names = lines(files['jitunwind/jitunwind.h']) if lines else ['jitunwind/jitunwind.h']
                file.write(''.join('#include <%s>\n' % name for name in names))
        turns = [{way: compile_time(file) for way, file in files.items()} for _ in range(TURNS + 1)][1:]
    names = {'compile/%s/one file' % way.replace('/', ' '): way for way in files}
    found = [{'name': name, 'items_per_second': 1e9 / statistics.median(turn[way] for turn in turns)}
             for name, way in names.items() if re.search(FILTER, name)]
    if found:
        print(json.dumps({'benchmarks': found}))
