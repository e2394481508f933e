#!/usr/bin/env python3
"""measure_links GROUP COUNT [--benchmark_filter=REGEX] [ignored...]: measures registration for each form in which the
library can come into a process, with up to COUNT procedures. Each measurement has a process of its own. Prints the format
of Google Benchmark."""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__)) + '/'
FILTER = ([arg.split('=', 1)[1] for arg in sys.argv if arg.startswith('--benchmark_filter=')] + ['.'])[0]
HOST, BETWEEN, MODULE = HERE + 'bench_link_host', HERE + 'libbench_link_between.so', HERE + 'libbench_link_module.so'
# The driver passes the releases of other unwinders.
RELEASES = [line.split('\t') for line in os.environ.get('BENCH_RELEASES', '').splitlines()]
FORMS = {  # command, library to preload, most procedures
    'linked': ([HERE + 'bench_link_linked'], '', 1000000),
    'behind libgcc_s': ([HERE + 'bench_link_behind'], '', 1000000),
    'preloaded': ([HOST, HERE + 'libbench_link_module_unlinked.so'], '@drop_in@', 1000000),
    'dlopened': ([HOST, MODULE], '', 1000000),
    'plugin of a plugin': ([HOST, BETWEEN, MODULE], '', 1000000),
    'archive in a plugin': ([HOST, HERE + 'libbench_link_module_static.so'], '', 1000000),
    'told: static libgcc @gcc_version@': ([HERE + 'bench_link_sections'], '', 10000),
    **{'told: ' + title: (['env', 'LD_LIBRARY_PATH=' + path, HERE + 'bench_link_fdes'], '', 10000)
       for title, path in RELEASES if title.startswith('LLVM ')}}
COUNTS = [count for count in (10000, 100000, 1000000) if count <= int(sys.argv[2])]
WHAT = ['register', 'cancel_in_order', 'cancel_random', 'first_throw', 'bytes']


def measure(form, what, count):
    command, preload, most = FORMS[form]
    name = 'link_%s/%s/%d' % (what, form, count)
    if count > most or not os.path.exists(command[-1]) or not re.search(FILTER, name):
        return None
    done = subprocess.run(command + [what, str(count)], env={**os.environ, 'LD_PRELOAD': preload},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    try:
        measured = float(done.stdout)
    except ValueError:
        return {'name': name, 'error_occurred': True, 'error_message': done.stdout.decode(errors='replace')}
    # Bytes are shown as if they were nanoseconds.
    return {'name': name, 'items_per_second': 1 / (measured * 1e-9 if what == 'bytes' else measured)}


every = [measure(form, what, count) for count in COUNTS for what in WHAT for form in FORMS]
found = [each for each in every if each]
if found:
    print(json.dumps({'benchmarks': found}))
