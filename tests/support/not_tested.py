#!/usr/bin/env python3
"""not_tested.py BUILD-FOLDER [CTEST-ARGUMENT...]: lists what the last run of ctest did not test, with the reasons: what was
left out when the build was configured, and the tests that could not be run on this machine."""
import os
import re
import sys
import xml.etree.ElementTree

# GoogleTest's words, and those of commands that end with 77 (tests/support/check_output).
REASON = re.compile(r': Skipped\n(.+)|^not run: (.+)', re.M)


def lines(path):
    with open(path) as file:
        return file.read().splitlines()


def skipped(results):
    """Of ctest's JUnit file: {reason: [test]}."""
    found = {}
    for test in xml.etree.ElementTree.parse(results).iter('testcase'):
        if test.get('status') == 'notrun':
            said = REASON.search(test.findtext('system-out') or '')
            reason = (said.group(1) or said.group(2)).strip() if said else 'it does not say why'
            found.setdefault(reason, []).append(test.get('name'))
    return found


folder, *arguments = sys.argv[1:]
left_out = lines(os.path.join(folder, 'not_tested.txt'))
if 'gate' in arguments:
    left_out += lines(os.path.join(folder, 'not_in_gate.txt'))
left_out += ['%s: %s' % (', '.join(tests), reason)
             for reason, tests in skipped(os.path.join(folder, 'tests.xml')).items()]
print('\nNot tested:' if left_out else '\nNothing was left out.')
for line in left_out:
    print('  ' + line)
