"""What debuggers make of registered procedures. A driver (gdb_driver.py, lldb_driver.py) says how it is asked. The
environment says what: CASE, SHAPE (jit_code.h), CHANNEL ("files" in memory, or "script"), ARGUMENTS of the program. The
last line is "all right" where it is, and the debugger's exit status 0."""
import os
import re
import subprocess
import sys
import traceback

MARKS = {  # tests/support/marked_call.S
    'rbx': 0x1b001b001b001b, 'rbp': 0x1b901b901b901b, 'r12': 0xc0c0c0c0c0c0c0c,
    'r13': 0xd0d0d0d0d0d0d0d, 'r14': 0xe0e0e0e0e0e0e0e, 'r15': 0xf0f0f0f0f0f0f0f}
NUMBER = (1 << 64) - 1


def expect(what, found, wanted):
    if found != wanted:
        raise AssertionError('%s: %r instead of %r' % (what, found, wanted))


def start(d, *places):
    for place in places:
        d.breakpoint(place)
    d.start()


def start_late(d, *places):
    """A program that was there before the debugger, which comes when all is registered."""
    program = subprocess.Popen([d.program(), os.environ['SHAPE'], 'late'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdout.readline()
    d.attach(program.pid)
    for place in places:
        d.breakpoint(place)
    program.stdin.close()
    d.resume()
    return program


def stopped_in(d, name):
    expect('stopped in', d.names()[0], name)


def check_printed(d, *wanted):
    """`bt` has these names, which may have any bytes."""
    text = d.backtrace()
    for level, name in enumerate(wanted):
        if not re.search(d.LINE % (level, re.escape(name)), text, re.M):
            raise AssertionError('bt without %a: %a' % (name, text))


def check_stack(d, inner='jit_inner', outer='jit_outer'):
    """The whole stack from stop_here(), and the registers that the frames below saved and destroyed."""
    stack = ['stop_here', inner, 'middle', outer, 'jitunwind_marked_call']
    expect('stack', d.names()[:5], stack)
    expect('end of the stack', d.names()[-1], 'main')
    check_printed(d, *(name.encode() for name in stack))
    d.select(0)
    for name in stack[1:]:
        expect('up', d.up(), name)
        if name == outer:
            expect('rbx in ' + name, d.shown_register('rbx'), 0)
            if 'registers' in os.environ['SHAPE']:
                expect('rbp in ' + name, d.shown_register('rbp'), 0)
            expect('r12 in ' + name, d.shown_register('r12'), MARKS['r12'])
    for name, value in MARKS.items():
        expect(name + ' of the caller', d.register(name, 4), value)
        expect(name + ' shown', d.shown_register(name), value)
    expect('down', d.down(), outer)


def check_all_forgotten(d, address):
    stopped_in(d, 'all_cancelled')
    for name in ['jit_inner', 'jit_outer', 'jit_reused']:
        expect(name + ' is known', d.knows(name, address), False)


def case_breakpoint(d):
    start(d, 'prepared')
    location = d.breakpoint('jit_inner')
    expect('breakpoint has a place', location.is_resolved, True)
    d.resume()
    stopped_in(d, 'jit_inner')
    expect('hits', location.hits(), 1)
    # LLVM's own list has a file of it, too.
    expect('times known', d.times_known('jit_inner', d.pc()), 2 if os.environ['SHAPE'] == 'orc_listener' else 1)
    expect('stack', d.names()[:4], ['jit_inner', 'middle', 'jit_outer', 'jitunwind_marked_call'])
    d.breakpoint('stop_here')
    d.resume()
    check_stack(d)


def case_finish(d):
    start(d, 'stop_here')
    for name in ['jit_inner', 'middle', 'jit_outer', 'jitunwind_marked_call']:
        d.finish()
        stopped_in(d, name)
    for name, value in MARKS.items():
        expect(name + ' restored', d.register(name), value)


def rows_of(text):
    """{offset: (cfa, {register: slot})} of the program's "row +4: cfa=rbp+16 rbx=[cfa-24] ra=[cfa-8]"."""
    rows = {}
    for offset, row in re.findall(r'^row \+([0-9a-f]+): (.*)$', text, re.M):
        cfa = re.search(r'cfa=(\w+)([+-]\d+)?', row)
        slots = {r: int(o) for r, o in re.findall(r'(\w+)=\[cfa([+-]\d+)\]', row)}
        slots.update({r: int(o) - 16 for r, o in re.findall(r'(\w+)=\[rbp([+-]\d+)\]', row)})  # the CFA is rbp+16
        rows[int(offset, 16)] = ((cfa.group(1), int(cfa.group(2) or 0)), slots)
    return rows


def check_row(d, row):
    """The debugger's frame is what the row says."""
    (base, offset), slots = row
    cfa = (d.register(base) + offset) & NUMBER
    expect('CFA', d.cfa(), cfa)
    wanted = {('rip' if r == 'ra' else r): (cfa + o) & NUMBER for r, o in slots.items()}
    d.check_saved(wanted)
    expect('SP of the caller', d.register('rsp', 1), cfa)
    for name in ['rip', *MARKS]:
        value = d.word(wanted[name]) if name in wanted else d.register(name)
        expect(name + ' of the caller', d.register(name, 1), value)


def case_every_instruction(d):
    d.breakpoint('prepared')
    text = d.output_of_start()
    begin = int(re.search(r'inner (0x[0-9a-f]+)', text).group(1), 16)
    rows = rows_of(text)
    d.breakpoint_at(begin)
    d.resume()
    seen = set()
    while d.names()[0] != 'middle':
        here = d.register('rip')
        if d.names()[0] == 'jit_inner':
            check_row(d, rows[here - begin])
            expect('stack', d.names()[:3], ['jit_inner', 'middle', 'jit_outer'])
            seen.add(here - begin)
        d.step_instruction()
    expect('instructions seen', seen, set(rows))


def case_reuse(d):
    start(d, 'stop_here', 'all_cancelled')
    check_stack(d)
    address = d.pc(1)
    d.resume()
    check_stack(d, 'jit_reused')
    expect('same page', d.pc(1) & ~0xfff, address & ~0xfff)
    d.resume()
    check_all_forgotten(d, address)


def case_core(d):
    check_stack(d)


def case_names(d):
    start(d, 'stop_here')
    check_stack(d)
    d.resume()
    check_stack(d, 'jit_reused')
    d.resume()
    # The script says control characters, GDB's own files hold them.
    by_script = not os.environ.get('JITUNWIND_ATTACH')
    odd = b'\\x01' if by_script else b'\x01'
    check_printed(d, b'stop_here', b'odd \xff' + odd + b' "name" %s @@x {(<', b'middle', b'jit_outer',
                  b'jitunwind_marked_call')
    d.resume()
    expect('frame without name', d.names()[2:5], ['middle', 'jit_outer', 'jitunwind_marked_call'])
    d.resume()
    found = d.names()
    expect('long name', len(found[1]) >= 4000 and found[1].startswith('two\\n' if by_script else 'two\n'), True)
    expect('around it', found[2:5], ['middle', 'jit_outer', 'jitunwind_marked_call'])


def case_damaged(d):
    """A list that comes back to itself: what is in front of that is shown, and one message."""
    start(d, 'stop_here')
    check_stack(d)
    d.close_list_to_a_ring()
    for count in [1, 0]:
        expect('messages', d.backtrace().count(b'jitunwind: the list of registered procedures at'), count)
        check_stack(d)


def case_damaged_core(d):
    """What can be shown is; nothing is shown that is not there; one message."""
    damage = os.environ['DAMAGE']
    text = d.backtrace()
    messages = {'end': 1, 'ring': 1, 'middle': 1}
    expect('messages', text.count(b'jitunwind: '), messages.get(damage, 0))
    if damage in ('end', 'ring'):
        check_stack(d)
        return
    found = d.names()
    if damage == 'name':
        expect('stack', found[:5], ['stop_here', 'jit_inner', 'middle', None, 'jitunwind_marked_call'])
        expect('end of the stack', found[-1], 'main')
        return
    known = 3 if damage == 'middle' else 2  # without regions the inner function has a name only
    expect('stack', found[:known], ['stop_here', 'jit_inner', 'middle'][:known])
    expect('the outer function', 'jit_outer' in found, False)


def case_fork(d):
    d.follow_child()
    start(d, 'stop_here')
    expect('in the child', d.names()[:4], ['stop_here', 'jit_child', 'middle', 'jit_parent'])
    d.resume()


def case_detach(d):
    """A debugger that goes in the middle, while code comes and goes: the program runs to its end."""
    program = start_late(d, 'jit_inner', 'prepared')
    stopped_in(d, 'prepared')
    d.detach()
    expect('the rest of its output', program.stdout.read().endswith(b'\ndone\n'), True)
    expect('exit status', program.wait(), 0)


def case_copies(d):
    start(d, 'stop_here')
    check_stack(d, 'jit_plugin')


def case_signal(d):
    d.pass_signal('SIGILL')
    start(d, 'stop_here')
    found = d.names()
    at = found.index('jit_trap')
    expect('signal frame', d.is_signal_frame(at - 1), True)
    expect('interrupted', found[at:at + 4], ['jit_trap', 'middle', 'jit_outer', 'jitunwind_marked_call'])
    expect('end of the stack', found[-1], 'main')
    for name, value in MARKS.items():
        expect(name + ' of the caller', d.register(name, at + 3), value)


def case_late(d):
    """A debugger that comes when everything is registered."""
    start_late(d, 'stop_here', 'all_cancelled')
    check_stack(d)
    address = d.pc(1)
    if os.environ['CHANNEL'] == 'files':
        expect('times known', d.times_known('jit_inner', address), 1)
    d.resume()
    check_stack(d, 'jit_reused')
    d.resume()
    check_all_forgotten(d, address)
    d.kill()


def case_many(d):
    start(d, 'stop_here', 'all_cancelled')
    stops = 0
    while d.names()[0] == 'stop_here':
        stops += 1
        found = d.names()
        expect('stack', [found[0]] + found[2:5], ['stop_here', 'middle', 'jit_outer', 'jitunwind_marked_call'])
        expect('name', bool(re.match(r'jit_many_\d+$', found[1] or '')), True)
        d.resume()
    expect('some were called', stops >= 2, True)
    stopped_in(d, 'all_cancelled')


def run(driver):
    """True: all right, as is printed. What goes wrong is printed, too: a debugger shows no more than its script does."""
    try:
        d = driver(os.environ['CHANNEL'])
        globals()['case_' + os.environ['CASE']](d)
        # One write prints it, because processes that the program has made print meanwhile.
        sys.stdout.flush()
        os.write(1, b'\nall right\n')
        return True
    except Exception as error:
        print('%s: %s: %s' % (os.environ['CASE'], type(error).__name__, error))
        traceback.print_exc(file=sys.stdout)
    sys.stdout.flush()
    return False
