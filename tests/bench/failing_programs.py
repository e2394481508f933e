"""failing_programs FOLDER: the programs in FOLDER/debuggers and FOLDER/engines with stand-ins for what they measure, of
which some fail. What fails is reported, and the others are measured all the same."""
import json
import os
import re
import subprocess
import sys
import tempfile

BENCH = sys.argv[1]
STAND_INS = {
    # GDB without files takes a second each; with files it says what Python does; with the script it crashes half way.
    'gdb': '''#!/bin/sh
case $JITUNWIND_ATTACH$SCRIPT in
  gdb) echo "Traceback (most recent call last)"; echo "expected main"; exit 1 ;;
  ?*) echo "register 1" >"$RESULTS"; kill -KILL $$ ;;
  *) for what in register bt continue; do echo "$what 1"; done >"$RESULTS" ;;
esac
''',
    'lli-99': '#!/bin/sh\n[ $1 != --jit-kind=mcjit ] || exit 37\n',
    'luajit': '#!/bin/sh\nexit 3\n',
    'php99.9': '#!/bin/sh\necho works\n',
}


def results_of(program, folder):
    """Of each row: what it is measured by, or why it is not."""
    known = {'@gdb_program@': folder + '/gdb', '@lldb_program@': folder + '/none', '@listen_library@': ''}
    copy = os.path.join(folder, os.path.basename(program))
    with open(os.path.join(BENCH, program), encoding='utf-8') as source, open(copy, 'w', encoding='utf-8') as file:
        file.write(re.sub('@[a-z_]+@', lambda name: known.get(name.group(), name.group()), source.read()))
    command = [sys.executable, copy, 'group', '10', '--benchmark_filter=debugger|lli|luajit|php']
    done = subprocess.run(command, check=True,
                          env={'PATH': folder + ':/usr/bin:/bin'}, stdout=subprocess.PIPE, text=True)
    return {row['name']: row.get('error_message', 'measured') for row in json.loads(done.stdout)['benchmarks']}


def expect(what, wanted, is_wanted):
    if not is_wanted:
        sys.exit('%s, not %s' % (what, wanted))


with tempfile.TemporaryDirectory() as folder:
    for name, text in STAND_INS.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(os.path.join(folder, name), 0o755)
    debuggers = results_of('debuggers/measure_debuggers.py', folder)
    engines = results_of('engines/measure_engines.py', folder)

measured = sorted(name for name, result in debuggers.items() if result == 'measured')
expect(measured, 'GDB without files', measured == ['debugger/GDB, nothing/%s/10' % what
                                                   for what in ('bt', 'continue', 'register')])
expect(debuggers, 'what GDB said', 'expected main' in debuggers['debugger/GDB, files/10'])
expect(debuggers, 'how GDB ended', 'status -9' in debuggers['debugger/GDB, script/10'])
expect(engines, 'three ways of php99.9 and of mcjit, whose work ends with 37',
       sorted(name for name, result in engines.items() if result == 'measured') ==
       sorted('engine_time/%s/%s' % (way, engine) for way in ('alone', 'silent dialects', 'every dialect')
              for engine in ('php99.9', 'lli-99 mcjit')))
expect(engines, 'that orc gave another result', 'does not end well' in engines['engine_time/alone/lli-99 orc'])
expect(engines, 'how luajit ended', '768' in engines['engine_time/alone/luajit'])
print('all right')
