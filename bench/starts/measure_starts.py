#!/usr/bin/env python3
"""measure_starts GROUP COUNT [--benchmark_filter=REGEX] [ignored...]: what it costs a program that does nothing to be started
with an unwinder preloaded. Each is started in alternation with the others; a row is the median, and what is added to a start
without any of them the median of differences within a turn. Prints what Google Benchmark would."""
import json
import os
import re
import statistics
import sys
import time

PROGRAM, TURNS = '/bin/true', 60
FILTER = ([arg.split('=', 1)[1] for arg in sys.argv if arg.startswith('--benchmark_filter=')] + ['.'])[0]
NOTHING = 'nothing'
PRELOADED = {NOTHING: '', 'nongnu libunwind.so.8': '@nongnu_library@', 'drop-in libunwind.so.8': '@drop_in@'}
# Not by LD_LIBRARY_PATH, in which the dynamic linker would look for every library.
ENVIRONMENT = {way: {'LD_PRELOAD': library} if library else {} for way, library in PRELOADED.items()
               if way == NOTHING or os.path.exists(library)}


def start(environment):
    """Nanoseconds until it has ended, and its page faults."""
    begin = time.perf_counter_ns()
    child = os.posix_spawn(PROGRAM, [PROGRAM], environment)
    _, status, usage = os.wait4(child, 0)
    end = time.perf_counter_ns()
    if status != 0:
        raise RuntimeError('the program failed')
    return end - begin, usage.ru_minflt + usage.ru_majflt


def rows(turns):
    """Name of each row and what it says, times in nanoseconds, faults as if they were."""
    for which, row in (0, 'start_up'), (1, 'start_up_faults'):
        for way in ENVIRONMENT:
            yield '%s/%s/true' % (row, way), statistics.median(turn[way][which] for turn in turns)
            if way != NOTHING:
                added = statistics.median(turn[way][which] - turn[NOTHING][which] for turn in turns)
                yield '%s_added/%s/true' % (row, way), max(added, 1)


if re.search(FILTER, 'start_up start_up_added start_up_faults start_up_faults_added'):
    measured = [{way: start(environment) for way, environment in ENVIRONMENT.items()} for _ in range(TURNS + 1)]
    found = [{'name': name, 'items_per_second': 1e9 / nanoseconds} for name, nanoseconds in rows(measured[1:])
             if re.search(FILTER, name)]
    if found:
        print(json.dumps({'benchmarks': found}))
