# What GDB makes of registered procedures. Runs inside of GDB, with `case`, `shape`, `channel` and `gdb_path` set; prints
# "all right" as its last line where it is. `channel`: how GDB knows of them, "files" in memory, or the path of the script.
import os
import re
import subprocess
import tempfile

import gdb

MARKS = {  # tests/support/marked_call.S
    'rbx': 0x1b001b001b001b, 'rbp': 0x1b901b901b901b, 'r12': 0xc0c0c0c0c0c0c0c,
    'r13': 0xd0d0d0d0d0d0d0d, 'r14': 0xe0e0e0e0e0e0e0e, 'r15': 0xf0f0f0f0f0f0f0f}
NUMBER = (1 << 64) - 1


def run(command):
    return gdb.execute(command, to_string=True)


def expect(what, found, wanted):
    if found != wanted:
        raise AssertionError('%s: %r instead of %r' % (what, found, wanted))


def frames():
    found, frame = [], gdb.newest_frame()
    while frame is not None:
        found.append(frame)
        frame = frame.older()
    return found


def name_of(frame):
    """As `bt` shows it."""
    name = frame.name()
    if name is None and channel != 'files':
        exact = frame.newer() is None or frame.newer().type() == gdb.SIGTRAMP_FRAME
        name = gdb.parse_and_eval('$jitunwind_name(%d)' % (frame.pc() if exact else frame.pc() - 1)).string() or None
    return name


def names():
    """Of the whole stack, up to main, which GDB takes for its end."""
    return [name_of(frame) for frame in frames()]


def register(name, frame=None):
    return int((frame or gdb.selected_frame()).read_register(name)) & NUMBER


def break_at(place):
    return gdb.Breakpoint(place)


def stopped_in(name):
    expect('stopped in', name_of(gdb.newest_frame()), name)


def start(*places):
    for place in places:
        break_at(place)
    run('run')


def gdb_output(command):
    """What GDB writes, which may be no text."""
    with tempfile.NamedTemporaryFile() as file:
        for setting in ['file ' + file.name, 'redirect on', 'enabled on']:
            gdb.execute('set logging ' + setting)
        try:
            gdb.execute(command)
        finally:
            gdb.execute('set logging enabled off')
        return file.read()


def inferior_output(command):
    """What the program writes while `command` runs."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            run(command)
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return file.read().decode(errors='surrogateescape')


def check_stack(inner='jit_inner', outer='jit_outer', shape=None):
    """The whole stack from stop_here(), and the registers that the frames below saved and destroyed."""
    shape = shape or globals()['shape']
    expect('stack', names()[:5], ['stop_here', inner, 'middle', outer, 'jitunwind_marked_call'])
    expect('end of the stack', names()[-1], 'main')
    text = run('bt')
    for i, name in enumerate([inner, 'middle', outer]):
        if not re.search(r'^#%d .* in %s \(' % (i + 1, re.escape(name)), text, re.M):
            raise AssertionError('bt without %s: %s' % (name, text))
    run('frame 0')
    for name in [inner, 'middle', outer, 'jitunwind_marked_call']:
        run('up')
        expect('up', name_of(gdb.selected_frame()), name)
        if name == outer:
            expect('rbx in ' + name, register('rbx'), 0)
            if 'registers' in shape:
                expect('rbp in ' + name, register('rbp'), 0)
            expect('r12 in ' + name, register('r12'), MARKS['r12'])
    for name, value in MARKS.items():
        expect(name + ' of the caller', register(name), value)
        expect('p $' + name, int(gdb.parse_and_eval('(unsigned long)$' + name)), value)
        if '%#x' % value not in run('info registers ' + name):
            raise AssertionError(run('info registers ' + name))
    run('down')
    expect('down', name_of(gdb.selected_frame()), outer)


def case_stack():
    start('stop_here')
    check_stack()


def case_breakpoint():
    start('prepared')
    location = break_at('jit_inner')
    if location.pending:
        raise AssertionError('breakpoint is pending')
    run('continue')
    stopped_in('jit_inner')
    expect('hits', location.hit_count, 1)
    expect('stack', names()[:4], ['jit_inner', 'middle', 'jit_outer', 'jitunwind_marked_call'])
    break_at('stop_here')
    run('continue')
    check_stack()


def case_finish():
    start('stop_here')
    for name in ['jit_inner', 'middle', 'jit_outer', 'jitunwind_marked_call']:
        run('finish')
        stopped_in(name)
    for name, value in MARKS.items():
        expect(name + ' restored', register(name), value)


def rows_of(text):
    """{offset: (cfa, {register: slot})} of the program's "row +4: cfa=rbp+16 rbx=[cfa-24] ra=[cfa-8]"."""
    rows = {}
    for offset, row in re.findall(r'^row \+([0-9a-f]+): (.*)$', text, re.M):
        cfa = re.search(r'cfa=(\w+)([+-]\d+)?', row)
        slots = {r: int(o) for r, o in re.findall(r'(\w+)=\[cfa([+-]\d+)\]', row)}
        slots.update({r: int(o) - 16 for r, o in re.findall(r'(\w+)=\[rbp([+-]\d+)\]', row)})  # the CFA is rbp+16
        rows[int(offset, 16)] = ((cfa.group(1), int(cfa.group(2) or 0)), slots)
    return rows


def check_row(row):
    """`info frame` says what the row says."""
    (base, offset), slots = row
    text = run('info frame')
    cfa = (register(base) + offset) & NUMBER
    expect('CFA', int(re.search(r'frame at (0x[0-9a-f]+)', text).group(1), 16), cfa)
    wanted = {('rip' if r == 'ra' else r): (cfa + o) & NUMBER for r, o in slots.items()}
    if channel == 'files':
        saved = {r: int(a, 16) for r, a in re.findall(r'(r\w+) at (0x[0-9a-f]+)', text.split('Saved registers:')[1])}
        expect('saved registers', saved, wanted)
    caller = gdb.newest_frame().older()
    expect('SP of the caller', register('rsp', caller), cfa)
    for name, place in wanted.items():
        value = int.from_bytes(bytes(gdb.selected_inferior().read_memory(place, 8)), 'little')
        expect(name + ' of the caller', register(name, caller), value)


def case_every_instruction():
    break_at('prepared')
    text = inferior_output('run')
    begin = int(re.search(r'inner (0x[0-9a-f]+)', text).group(1), 16)
    rows = rows_of(text)
    gdb.execute('tbreak *%#x' % begin)
    run('continue')
    seen = set()
    while name_of(gdb.newest_frame()) != 'middle':
        here = register('rip')
        if name_of(gdb.newest_frame()) == 'jit_inner':
            check_row(rows[here - begin])
            expect('stack', names()[:3], ['jit_inner', 'middle', 'jit_outer'])
            seen.add(here - begin)
        run('stepi')
    expect('instructions seen', seen, set(rows))


def case_reuse():
    start('stop_here', 'all_cancelled')
    check_stack()
    address = gdb.newest_frame().older().pc()
    run('continue')
    check_stack('jit_reused')
    expect('same page', gdb.newest_frame().older().pc() & ~0xfff, address & ~0xfff)
    run('continue')
    stopped_in('all_cancelled')
    for name in ['jit_inner', 'jit_outer', 'jit_reused']:
        expect(name + ' is not known', 'No symbol' in error_of('info address ' + name), True)
    expect('symbol', run('info symbol %#x' % address).startswith('No symbol'), True)


def error_of(command):
    try:
        return run(command)
    except gdb.error as error:
        return str(error)


def case_core():
    start('stop_here')
    with tempfile.TemporaryDirectory() as folder:
        core = os.path.join(folder, 'core')
        run('gcore ' + core)
        program = gdb.current_progspace().filename
        done = subprocess.run(
            [gdb_path, '-nx', '-q', '-batch', '-iex', 'set debuginfod enabled off', '-iex', 'set auto-load off',
             '-ex', "python case, shape, channel, gdb_path = 'stack_of_core', '%s', '%s', '%s'" %
             (shape, channel, gdb_path), '-x', os.path.abspath(__file__), program, core],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        expect('core: ' + done.stdout.decode(), done.stdout.decode().endswith('all right\n'), True)


def case_stack_of_core():
    check_stack()


def case_names():
    start('stop_here')
    check_stack()
    run('continue')
    check_stack('jit_reused')
    run('continue')
    text = gdb_output('bt')
    if channel != 'files':
        text = text.replace(b'\\xff', b'\xff').replace(b'\\001', b'\x01')
    for i, name in enumerate([b'odd \xff\x01 "name" %s @@x {(<', b'middle', b'jit_outer', b'jitunwind_marked_call']):
        if not re.search(rb'^#%d .* in %s \(' % (i + 1, re.escape(name)), text, re.M):
            raise AssertionError('bt without %a: %a' % (name, text))
    run('continue')
    expect('frame without name', names()[1:5], [None, 'middle', 'jit_outer', 'jitunwind_marked_call'])


def case_fork():
    run('set follow-fork-mode child')
    run('set detach-on-fork on')
    start('stop_here')
    expect('in the child', names()[:4], ['stop_here', 'jit_child', 'middle', 'jit_parent'])
    run('continue')


def case_detach():
    """A debugger that goes in the middle, while code comes and goes: the program runs to its end."""
    start('prepared')
    pid = gdb.selected_inferior().pid
    gdb.execute('break jit_inner')
    run('detach')
    _, status = os.waitpid(pid, 0)
    expect('exit status', status, 0)


def case_copies():
    start('stop_here')
    check_stack('jit_plugin')


def case_signal():
    run('handle SIGILL nostop noprint pass')
    start('stop_here')
    found = names()
    at = found.index('jit_trap')
    expect('type', frames()[at - 1].type(), gdb.SIGTRAMP_FRAME)
    expect('interrupted', found[at:at + 4], ['jit_trap', 'middle', 'jit_outer', 'jitunwind_marked_call'])
    expect('end of the stack', found[-1], 'main')
    run('frame %d' % (at + 3))
    for name, value in MARKS.items():
        expect(name + ' of the caller', register(name), value)


def case_late():
    """A debugger that comes when everything is registered."""
    program = gdb.current_progspace().filename
    process = subprocess.Popen([program, shape, 'late'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    run('attach %d' % process.pid)
    break_at('stop_here')
    process.stdin.write(b'\n')
    process.stdin.close()
    run('continue')
    check_stack()
    run('kill')


def case_many():
    start('stop_here', 'all_cancelled')
    stops = 0
    while gdb.newest_frame().name() == 'stop_here':
        stops += 1
        found = names()
        expect('stack', [found[0]] + found[2:5], ['stop_here', 'middle', 'jit_outer', 'jitunwind_marked_call'])
        expect('name', bool(re.match(r'jit_many_\d+$', found[1])), True)
        run('continue')
    expect('some were called', stops >= 2, True)


run('set pagination off')
run('set confirm off')
run('set width 0')
run('set startup-with-shell off')
if channel != 'files':
    gdb.execute('source ' + channel)
try:
    globals()['case_' + case]()
    print('\nall right')
except Exception as error:  # the exit status of GDB does not tell
    print('%s: %s: %s' % (case, type(error).__name__, error))
    gdb.execute('bt')
