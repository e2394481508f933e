#!/usr/bin/env python3
"""doxygen_filter.py HEADER: prints the header as Doxygen reads it.

In this project a comment with three slashes speaks of all declarations behind it, up to a blank line or another
comment.
Doxygen takes it for the first one alone, unless they are in a group. A # in a comment is no link.
"""
import re
import sys

_SCOPE = re.compile(r'\s*(template .*)?(class|struct|enum|namespace|union)\b.*\{\s*$')
_END = re.compile(r'\s*(//|#|$|\}|(public|private|protected):)')


def grouped(lines):
    out, i = [], 0
    while i < len(lines):
        comment = i
        while i < len(lines) and re.match(r'\s*///(?!<)', lines[i]):
            i += 1
        if i == comment:
            out.append(lines[i])
            i += 1
            continue
        # Declarations behind it: as far as a line at the same depth ends them.
        begin, depth, declarations = i, 0, 0
        while i < len(lines) and (depth > 0 or not _END.match(lines[i])):
            code = re.sub(r'"[^"]*"|\'[^\']*\'', '', lines[i].split('//')[0])
            depth += code.count('{') + code.count('(') - code.count('}') - code.count(')')
            declarations += depth == 0 and code.rstrip().endswith((';', '}'))
            i += 1
        if any(_SCOPE.match(line) for line in lines[begin:i]):
            i = begin  # what is in it has comments of its own
        is_group = i != begin and declarations > 1
        spoken = [line.replace('#', '\\#') for line in lines[comment:begin]]
        out += ['/// @{'] * is_group + spoken + lines[begin:i] + ['/// @}'] * is_group
    return out


if __name__ == '__main__':
    with open(sys.argv[1]) as header:
        print('\n'.join(grouped(header.read().split('\n'))), end='')
