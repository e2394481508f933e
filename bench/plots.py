#!/usr/bin/env python3
"""Draws plots by gnuplot, each one as an SVG file.

plots.py PLOTS.json FOLDER                      those of a report: its driver writes the file
plots.py --baseline BASELINE.json FOLDER        those of docs/benchmarks.md
plots.py --baseline BASELINE.json --check FOLDER    only says which of them show something else than the file has
"""
import argparse
import json
import os
import re
import subprocess
import sys

# File, title, title of the axis, rows of bench/baseline.json with the number on that axis, and which of their ratios.
OF_BASELINE = [
    ('walk-static', 'Walk of C++ functions', 'frames', r'walk/static/(\d+)', 'jitunwind (backtrace|step) to (nongnu|limit).*'),
    ('walk-jit', 'Walk, every fourth frame made at run time', 'frames', r'walk/jit/(\d+)', 'jitunwind (backtrace|step) to nongnu.*'),
    ('walk-new', 'First walk of functions that are scattered over three modules', 'frames', r'scattered_new/(\d+)',
     'jitunwind backtrace to libgcc.*'),
    ('throw-static', 'Throw through C++ functions', 'frames', r'throw/static/(\d+)/0', '.* to libgcc.*'),
    ('throw-jit', 'Throw, every fourth frame made at run time', 'frames', r'throw/jit/(\d+)/0', '.* to libgcc.*'),
    ('throw-beside', 'Throw through C++ functions beside 1000 registered procedures', 'frames', r'throw/static/(\d+)/1000',
     '.* to libgcc.*'),
    ('register', 'Register in any order', 'procedures', r'register/random/(\d+)', '.*'),
]
RELEASE = re.compile(r'\b[0-9][0-9.]*\b')


def of_baseline(path):
    with open(path) as file:
        ratios = json.load(file)
    for name, title, x_title, row, who in OF_BASELINE:
        lines = {}
        for key, ratio in ratios.items():
            found, pair = re.fullmatch(row, key.split(': ')[0]), key.split(': ')[1]
            if found and re.fullmatch(who, pair):
                lines.setdefault(pair, []).append([int(found[1]), round(ratio, 4)])
        yield {'file': name + '.svg', 'title': title + ': time by that of another', 'x_title': x_title,
               'lines': [{'name': pair, 'points': sorted(points)} for pair, points in sorted(lines.items())]}


def strokes(names):
    """A line's colour and dashes. Lines that differ in numbers of releases alone have one colour, and the newest is solid."""
    kinds = list(dict.fromkeys(RELEASE.sub('', name) for name in names))
    for i, name in enumerate(names):
        kind = kinds.index(RELEASE.sub('', name))
        newer = sum(RELEASE.sub('', other) == kinds[kind] for other in names[i + 1:])
        yield 'lc %d dt %d' % (kind % 8 + 1, min(newer + 1, 3) if kind < 8 else 4)


def shown(plot):
    """The lines with points that have a place on logarithmic axes."""
    lines = [(line['name'], [point for point in line['points'] if min(point) > 0]) for line in plot['lines']]
    return [line for line in lines if line[1]]


def drawing(plot, path):
    lines = shown(plot)
    blocks = ['$line%d << END\n%s\nEND' % (i, '\n'.join('%g %g' % tuple(point) for point in points))
              for i, (_, points) in enumerate(lines)]
    curves = ['$line%d with linespoints pt 7 ps 0.4 lw 2 %s title %s' % (i, stroke, json.dumps(name))
              for i, ((name, _), stroke) in enumerate(zip(lines, strokes([name for name, _ in lines])))]
    return '\n'.join([
        'set terminal svg size 860,380 noenhanced font "sans-serif,12" background rgb "white"', 'set colorsequence podo',
        'set output ' + json.dumps(path), 'set logscale xy', 'set grid', 'set key outside right top Left reverse',
        'set title ' + json.dumps(plot['title']), 'set xlabel ' + json.dumps(plot['x_title']), *blocks,
        'plot ' + ', '.join(curves), ''])


def remark(plot):
    return '<!-- %s -->\n' % json.dumps(shown(plot))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--baseline', action='store_true')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('plots')
    parser.add_argument('folder')
    told = parser.parse_args()
    if told.baseline:
        plots = list(of_baseline(told.plots))
    else:
        with open(told.plots) as file:
            plots = json.load(file)
    wrong = 0
    for plot in filter(shown, plots):
        path = os.path.join(told.folder, plot['file'])
        if told.check:
            with open(path) as file:
                same = file.read().endswith(remark(plot))
            wrong += not same
            print('' if same else '%s: not what %s has\n' % (path, told.plots), end='')
            continue
        subprocess.run(['gnuplot', '-'], input=drawing(plot, path), text=True, check=True)
        with open(path, 'a') as file:
            file.write(remark(plot))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
