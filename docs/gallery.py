#!/usr/bin/env python3
"""gallery.py PROGRAMS [--write]: compares the outputs in gallery.md with those of the examples in the folder PROGRAMS, or
writes them there. An output follows a comment that names its example. The frames of the C library below main differ
from system to system, and are left out."""
import os
import re
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.realpath(__file__)), 'gallery.md')
SHOWN = re.compile(r'(<!-- output of (\w+) -->\n```\n)(.*?)(```\n)', re.S)


def output_of(name):
    said = subprocess.run([os.path.join(sys.argv[1], name)], check=True, capture_output=True, text=True, timeout=60).stdout
    return ''.join(line for line in said.splitlines(True) if not re.search(r'\b(__libc_start_|_start\b)', line))


def main():
    with open(PAGE) as file:
        page = file.read()
    made = SHOWN.sub(lambda shown: shown[1] + output_of(shown[2]) + shown[4], page)
    if sys.argv[2:] == ['--write']:
        with open(PAGE, 'w') as file:
            file.write(made)
        return 0
    for was, now in zip(SHOWN.finditer(page), SHOWN.finditer(made)):
        if was[3] != now[3]:
            print('gallery.md: %s prints:\n%s' % (now[2], now[3]), end='')
    print('%d outputs' % len(SHOWN.findall(page)) if made == page else 'gallery.md is not current: gallery.py --write')
    return 0 if made == page else 1


sys.exit(main())
