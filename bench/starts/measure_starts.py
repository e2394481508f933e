#!/usr/bin/env python3
"""measure_starts GROUP COUNT [--benchmark_filter=REGEX] [ignored...]: measures the start of a program that does nothing,
with an unwinder preloaded. All unwinders take turns. A row is the median time; a row "added" is the median difference to a
start without any of them in the same turn. For libjitunwind.so there is also the difference to a start with the libraries
that it needs, which other programs have anyway. Prints the format of Google Benchmark."""
import json
import os
import re
import statistics
import subprocess
import sys
import time

PROGRAM, TURNS = '/bin/true', 60
FILTER = ([arg.split('=', 1)[1] for arg in sys.argv if arg.startswith('--benchmark_filter=')] + ['.'])[0]
NOTHING, NEEDED, OWN = 'nothing', 'what libjitunwind.so needs', 'libjitunwind.so'
# The driver passes the releases of other unwinders.
RELEASES = [line.split('\t') for line in os.environ.get('BENCH_RELEASES', '').splitlines()]
PRELOADED = {NOTHING: '', **{title + ' libunwind.so.8': path.split(':')[0] + '/libunwind.so.8'
                             for title, path in RELEASES if title.startswith('nongnu ')},
             'drop-in libunwind.so.8': '@drop_in@', OWN: '@own_library@'}
# Libraries are not named by LD_LIBRARY_PATH, because the dynamic linker would search it for every library.
ENVIRONMENT = {way: {'LD_PRELOAD': library} if library else {} for way, library in PRELOADED.items()
               if way == NOTHING or os.path.exists(library)}


def needed_by(library):
    """Returns the paths of the libraries that it needs, as the dynamic linker finds them."""
    listed = subprocess.run(['ldd', library], capture_output=True, text=True, check=True).stdout
    return re.findall(r'=> (/\S+)', listed)


ENVIRONMENT[NEEDED] = {'LD_PRELOAD': ':'.join(needed_by(PRELOADED[OWN]))}


def start(environment):
    """Returns nanoseconds until the program has ended, and its page faults."""
    begin = time.perf_counter_ns()
    child = os.posix_spawn(PROGRAM, [PROGRAM], environment)
    _, status, usage = os.wait4(child, 0)
    end = time.perf_counter_ns()
    if status != 0:
        raise RuntimeError('the program failed')
    return end - begin, usage.ru_minflt + usage.ru_majflt


def rows(turns):
    """Yields each row's name and value: nanoseconds for times, and numbers for page faults."""
    for which, row in (0, 'start_up'), (1, 'start_up_faults'):
        for way in ENVIRONMENT:
            yield '%s/%s/true' % (row, way), statistics.median(turn[way][which] for turn in turns)
            if way != NOTHING:
                added = statistics.median(turn[way][which] - turn[NOTHING][which] for turn in turns)
                yield '%s_added/%s/true' % (row, way), max(added, 1)
    for which, row in (0, 'start_up_own'), (1, 'start_up_own_faults'):
        own = statistics.median(turn[OWN][which] - turn[NEEDED][which] for turn in turns)
        yield '%s/%s/true' % (row, OWN), max(own, 1)


if re.search(FILTER, 'start_up start_up_added start_up_faults start_up_faults_added start_up_own start_up_own_faults'):
    measured = [{way: start(environment) for way, environment in ENVIRONMENT.items()} for _ in range(TURNS + 1)]
    found = [{'name': name, 'items_per_second': 1e9 / nanoseconds} for name, nanoseconds in rows(measured[1:])
             if re.search(FILTER, name)]
    if found:
        print(json.dumps({'benchmarks': found}))
