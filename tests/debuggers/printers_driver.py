# Compares what GDB prints with what the program says: run by `gdb -x`.
import os
import re

import gdb

gdb.execute('source ' + os.environ['SCRIPT'])
said = os.environ['SAID']
gdb.execute('set breakpoint pending on')
gdb.execute('break all_is_set')
gdb.execute('run > ' + said)
gdb.execute('up')
expected = dict(re.findall(r'^(\w+) is (.*)$', open(said).read(), re.M))
assert set(expected) == {'plain', 'odd', 'by_expression'}, expected
expected['error'] = 'unreadable_memory: return address, at 0x7ffd0'
expected['plain.cfa'] = 'rbp+16'
for name, text in (('none', 'no rule'), ('by_sp', 'cfa=rsp+48 rbp=[cfa-24], module, eh_frame'),
                   ('by_fp', 'cfa=rbp+16, lasting, eh_frame'), ('realigned', 'cfa=[rbp-80] rbp=[rbp], lasting'),
                   ('signal', 'signal, module'), ('outermost', 'outermost, lasting')):
    expected['rules.' + name] = text


def printed(expression):
    return gdb.execute('print ' + expression, to_string=True).split(' = ', 1)[1].strip()


wrong = 0
for name, text in expected.items():
    if printed(name) != text:
        wrong += 1
        print('%s: printed %s, not %s' % (name, printed(name), text))
entries = '((jitunwind::FrameRow::Entry*)&plain.entries_)[1].rule'
for name, pattern in (('first', r'#0 0x[0-9a-f]+ \(return address\)'), (entries, re.escape('[cfa-16]')),
                      ('last', r'#\d+ 0x[0-9a-f]+ \(return address\), ended: outermost')):
    if not re.fullmatch(pattern, printed(name)):
        wrong += 1
        print('%s: printed %s' % (name, printed(name)))
# A row that nobody made.
gdb.execute('set var plain.count_ = 65535')
if printed('plain') != 'no row: 65535 rules':
    wrong += 1
    print('printed', printed('plain'))
gdb.execute('kill')
print('all right' if wrong == 0 else '%d wrong' % wrong)
