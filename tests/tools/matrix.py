#!/usr/bin/env python3
"""matrix.py PAGE [TOOL...]: runs tools on the known stack, and compares what they see with their rows of a table in the page. It ends
with 77 and "not run: " and why if none of them can be run here. matrix.py --write PAGE [TOOL...] writes the rows instead, but for
the last column, which says why a cell is not W. matrix.py --show TOOL WAY FRAME PLACE prints what a tool prints."""
import re
import sys
import tempfile

sys.dont_write_bytecode = True  # into the source tree
from tools import NotRun, TOOLS, View  # noqa: E402

STACK = ['look', 'jit_inner', 'go_on', 'jit_outer', 'enter']
MADE = {'jit_inner', 'jit_outer'}  # at run time
NAME = re.compile(r'(?<![\w/.-])(%s)(?![\w/.-])' % '|'.join(STACK))
COLUMNS = [(place, frame) for place in ('registered', 'segments', 'sealed') for frame in ('held', 'overwritten')]
WAYS = {'registered': ['described'], 'segments': ['c', 'described', 'marked', 'asmjit', 'orc'], 'sealed': ['described']}
WORST = '-nwW'


def known_name(frame):
    """The name of a function of the known stack in what a tool says of a frame; or None."""
    name = NAME.search(frame or '')
    return name and name.group(1)


def stacks(text, frame, name=known_name):
    """The stacks in what a tool printed: for each, how often it was seen, and the name of each frame. They are separated by lines
    that are no frames."""
    found, stack = [], []
    for line in [*text.splitlines(), '']:
        matched = re.match(frame, line)
        if matched:
            stack.append(name(matched.group(1)))
        elif stack:
            count = re.match(r'\]: (\d+)', line)  # bpftrace has it behind the stack
            found.append((int(count.group(1)) if count else 1, stack))
            stack = []
    return found


def judge_stack(stack):
    """W: whole, and named; w: whole; n: jit_inner is named, and frames are missing; -: it ends there, or is wrong."""
    if 'enter' in stack and stack.index('enter') < stack.index('look'):  # some print callers first
        stack = stack[::-1]
    seen = stack[stack.index('look'):][:len(STACK)]
    if seen == STACK:
        return 'W'
    if len(seen) == len(STACK) and all(mine in (theirs, None) if theirs in MADE else mine == theirs
                                       for mine, theirs in zip(seen, STACK)):
        return 'w'
    return 'n' if seen[1:2] == ['jit_inner'] else '-'


def judge(text, frame):
    """The worst of all stacks that a tenth of the samples have."""
    found = [(count, stack) for count, stack in stacks(text, frame) if 'look' in stack]
    total = sum(count for count, _ in found)
    counts = {}
    for count, stack in found:
        verdict = judge_stack(stack)
        counts[verdict] = counts.get(verdict, 0) + count
    seen = [verdict for verdict, count in counts.items() if count * 10 >= total]
    if not seen:
        raise AssertionError('the function that the tool looks from is not in what it prints:\n' + text)
    return min(seen, key=WORST.index)


def show(tool, way, frame, place):
    with tempfile.TemporaryDirectory() as folder:
        return tool.show(View([way, frame, place], folder))


def cell(tool, place, frame):
    """One verdict if all ways of making code have the same; else that of each."""
    verdicts = {way: judge(show(tool, way, frame, place), tool.frame) for way in WAYS[place] if way not in tool.lacks}
    if len(set(verdicts.values())) == 1:
        return verdicts['described']
    return ', '.join('%s %s' % each for each in verdicts.items())


def row_of(page, tool):
    """The line of the tool, and its cells."""
    for line in page.splitlines():
        cells = [each.strip() for each in line.strip('|').split('|')]
        if line.startswith('|') and cells[0] == tool.name:
            return line, cells
    raise AssertionError('%s has no row in the page' % tool.name)


def compare(page, tool):
    _, said = row_of(page, tool)
    seen = [cell(tool, *column) for column in COLUMNS]
    print('%s %s: %s' % (tool.name, tool.version(), ' | '.join(seen)))
    if said[2:8] != seen:
        raise AssertionError('%s: the page has %s, seen is %s: matrix.py --write' % (tool.name, said[2:8], seen))
    if (seen[2:] == ['W'] * 4) != (said[8] == ''):
        raise AssertionError('%s: the reason belongs to cells of segments that are not W: %s' % (tool.name, said[8]))


def write(path, tool):
    with open(path) as file:
        page = file.read()
    line, cells = row_of(page, tool)
    cells[1:8] = [tool.version(), *(cell(tool, *column) for column in COLUMNS)]
    print('| %s |' % ' | '.join(cells))
    with open(path, 'w') as file:
        file.write(page.replace(line, '| %s |' % ' | '.join(cells)))


def each_tool(path, names, do):
    """Ends with 77 if no tool could be run."""
    ran = False
    for tool in TOOLS:
        if names and tool.name not in names:
            continue
        try:
            do(path, tool)
            ran = True
        except NotRun as reason:
            print('not run: %s: %s' % (tool.name, reason))
    return 0 if ran else 77


def main(arguments):
    if arguments[0] == '--show':
        tool = next(each for each in TOOLS if each.name == arguments[1])
        text = show(tool, *arguments[2:])
        print(text, judge(text, tool.frame))
        return 0
    if arguments[0] == '--names':
        print('\n'.join(tool.name for tool in TOOLS))
        return 0
    if arguments[0] == '--write':
        return each_tool(arguments[1], arguments[2:], write)
    with open(arguments[0]) as file:
        page = file.read()
    return each_tool(page, arguments[1:], compare)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
