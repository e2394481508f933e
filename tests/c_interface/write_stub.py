#!/usr/bin/env python3
"""write_stub.py HEADER...: a C program text that defines every function which the headers declare.

Compiled with debug information it says of the C interface what a program in C sees, without the library's own types. That
the library's functions are those that are declared the compiler has checked.
"""
import re
import sys

_PROTOTYPE = re.compile(r'^(?!static)((?:const )?\w+\*? ju_\w+\([^;{]*\));', re.M)


def main():
    print('#include <jitunwind/c.h>\n')
    for path in sys.argv[1:]:
        with open(path, encoding='utf-8') as header:
            text = re.sub(r'/\*.*?\*/', '', header.read(), flags=re.S)
        for prototype in _PROTOTYPE.findall(text):
            print(prototype + ' { __builtin_trap(); }')


if __name__ == '__main__':
    main()
