#!/usr/bin/env python3
"""not_tested.py BUILD-FOLDER [CTEST-ARGUMENT...]: lists what the last run of ctest did not test, with the reasons: what was
left out when the build was configured, and the tests that could not be run on this machine. The last lines of tests that
failed follow, because a log of all tests has them far from its end."""
import os
import re
import sys
import xml.etree.ElementTree

MOST_LINES = 40  # of a test that failed
# GoogleTest's words, and those of commands that end with 77 (tests/support/check_output).
REASON = re.compile(r': Skipped\n(.+)|^not run: (.+)', re.M)


def lines(path):
    with open(path) as file:
        return file.read().splitlines()


def skipped(results):
    """{reason: [test]}."""
    found = {}
    for test in results:
        if test.get('status') == 'notrun':
            said = REASON.search(test.findtext('system-out') or '')
            reason = (said.group(1) or said.group(2)).strip() if said else 'it does not say why'
            found.setdefault(reason, []).append(test.get('name'))
    return found


folder, *arguments = sys.argv[1:]
results = xml.etree.ElementTree.parse(os.path.join(folder, 'tests.xml')).findall('testcase')
left_out = lines(os.path.join(folder, 'not_tested.txt'))
if 'gate' in arguments:
    left_out += lines(os.path.join(folder, 'not_in_gate.txt'))
left_out += ['%s: %s' % (', '.join(tests), reason)
             for reason, tests in skipped(results).items()]
print('\nNot tested:' if left_out else '\nNothing was left out.')
for line in left_out:
    print('  ' + line)
for test in results:
    if test.get('status') == 'fail':
        print('\n%s failed:' % test.get('name'))
        for line in (test.findtext('system-out') or '').splitlines()[-MOST_LINES:]:
            print('  ' + line)
