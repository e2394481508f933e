#!/usr/bin/env python3
"""check_reference.py DOXYFILE: runs Doxygen and names what of the public interface has no comment.

Not named are data members, enumerators, and types in a class, whose declarations say what they are, and functions of
which the same holds: constructors, destructors, operators, overrides, and accessors. Exit status 1: something is named, or
Doxygen complains of a comment.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # none in the tree
import doxygen_filter

_SOURCE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_MEMBER = re.compile(r'Member (.*?) \((\w+)\) of (?:class|struct|namespace|file) (\S+) is not documented')
_COMPOUND = re.compile(r'Compound (\S+) is not documented')


def speaks_for_itself(signature, kind, scope):
    if kind in ('variable', 'enumvalue', 'friend', 'typedef', 'enumeration'):
        return kind != 'enumeration' or scope != 'jitunwind'
    if kind != 'function':
        return False
    name = signature.split('(')[0].strip()
    is_constructor = name.lstrip('~') == scope.split('::')[-1].split('<')[0]
    is_accessor = re.search(r'\) const\b', signature) is not None
    return is_constructor or is_accessor or 'operator' in name or ' override' in signature


def complaints(warnings):
    for line in warnings.splitlines():
        place, _, text = line.partition(': warning: ')
        member, compound = _MEMBER.search(text), _COMPOUND.search(text)
        if member and not speaks_for_itself(*member.groups()):
            yield '%s: %s::%s has no comment' % (place, member[3], member[1])
        elif compound:
            yield '%s: %s has no comment' % (place, compound[1])
        elif text and not member:
            yield '%s: %s' % (place, text)


def write_filtered(copies):
    """Every header of the tree as the filter prints it: Doxygen starts the filter for each include of each header, and to
    start Python 500 times takes forty times as long as all that Doxygen does itself."""
    for layer in ('unwind_core', 'dyn_info', 'builders', 'sdk', 'adapters'):
        for folder, _, names in os.walk(os.path.join(_SOURCE, layer)):
            os.makedirs(copies + folder)
            for name in names:
                if name.endswith('.h'):
                    with open(os.path.join(folder, name)) as header, open(os.path.join(copies + folder, name), 'w') as copy:
                        copy.write('\n'.join(doxygen_filter.grouped(header.read().split('\n'))))


def main():
    only_to_check = '@INCLUDE = %s\nGENERATE_HTML = NO\nGENERATE_XML = YES\nXML_PROGRAMLISTING = NO\n' % sys.argv[1]
    with tempfile.TemporaryDirectory() as copies:
        write_filtered(copies)
        # A header that has no copy is filtered as before. Doxygen has a shell run this, with the header's name behind
        # it.
        only_to_check += ('INPUT_FILTER = "f() { cat \'%s\'$(realpath $1) 2>/dev/null || %s \'%s\' $1; }; f"\n' %
                          (copies, sys.executable, doxygen_filter.__file__))
        done = subprocess.run(['doxygen', '-'], input=only_to_check, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True)
    found = sorted(set(complaints(done.stderr)))
    if done.returncode != 0 and not found:
        found = [done.stderr]
    print('\n'.join(found) or 'all documented')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
