#!/usr/bin/env python3
"""write_stub.py [--of LIBRARY] HEADER...: a C program text that defines every function which the headers declare, or
those of them that a shared library exports.

Compiled with debug information it says of the C interface what a program in C sees, without the library's own types. That
the library's functions are those that are declared the compiler has checked.
"""
import argparse
import re
import subprocess

_PROTOTYPE = re.compile(r'^(?!static)((?:const )?\w+\*? (ju_\w+)\([^;{]*\));', re.M)


def exported_by(library):
    names = subprocess.run(['nm', '-D', '--defined-only', library], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r' T (ju_\w+)@', names))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--of')
    parser.add_argument('headers', nargs='+')
    arguments = parser.parse_args()
    exported = arguments.of and exported_by(arguments.of)
    print('#include <jitunwind/c.h>\n')
    for path in arguments.headers:
        with open(path, encoding='utf-8') as header:
            text = re.sub(r'/\*.*?\*/', '', header.read(), flags=re.S)
        for prototype, name in _PROTOTYPE.findall(text):
            if exported is None or name in exported:
                print(prototype + ' { __builtin_trap(); }')


if __name__ == '__main__':
    main()
