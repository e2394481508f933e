#!/usr/bin/env python3
"""flame_graph.py: samples the known stack by bpftrace, first when its code is only registered and then in segments, and writes the two
flame graphs as a description for docs/draw.py to standard output. Frames that less than a tenth of the samples have are left out."""
import re
import sys

sys.dont_write_bytecode = True  # into the source tree
from matrix import show, stacks  # noqa: E402
from tools import TOOLS  # noqa: E402

WIDTH, HEIGHT = 36, 2.6


def tree(text):
    """{name: [samples, callees]} from the root."""
    root = {}
    for count, stack in stacks(text, r'^\s+(\S.*)$', lambda frame: re.sub(r'\+\d+$|^\(anonymous namespace\)::', '', frame)):
        level = root
        for name in reversed(stack):
            entry = level.setdefault(re.sub(r'\+\d+$', '', name), [0, {}])
            entry[0] += count
            level = entry[1]
    return root


def style(name):
    return {'j': 'good', '0': 'bad', '<': 'bad'}.get(name[0], 'plain')


def boxes(level, x, y, per_sample, most, said):
    for name, (count, callees) in sorted(level.items()):
        if count * per_sample * 10 < WIDTH:
            continue
        said.append('box b%d %.2f %.1f %.2f %.1f %s "~%s"' % (len(said), x, y, count * per_sample, HEIGHT, style(name), name))
        boxes(callees, x, y - HEIGHT, per_sample, most, said)
        x += count * per_sample


def main():
    tool = next(each for each in TOOLS if each.name == 'bpftrace dw_ustack')
    said, bottom = [], 40
    for x, place, title in (2, 'registered', 'only registered'), (42, 'segments', 'in code segments'):
        root = tree(show(tool, 'described', 'overwritten', place))
        total = sum(count for count, _ in root.values())
        said.append('text %d %.1f left "*%s, %d samples"' % (x, bottom + 3, title, total))
        boxes(root, x, bottom, WIDTH / total, WIDTH, said)
    print('title "Flame graphs by bpftrace %s, dw_ustack, of the same program"' % tool.version())
    print('size 80 46')
    print('\n'.join(said))


if __name__ == '__main__':
    main()
