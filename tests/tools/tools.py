"""The tools that look at the known stack, and how each is made to print it. A tool's `show` returns what it printed; `frame` is a
regular expression of a line that is a frame, whose group has the name if there is one."""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'debuggers'))
import core_files  # noqa: E402

NEWER = os.environ.get('NEWER', '')  # the folder of unpacked packages of a newer release


class NotRun(Exception):
    """A machine's reason why a tool cannot be run."""


class View:
    """The known stack, made in one way: its program, and a folder that lasts as long as it is looked at."""

    def __init__(self, words, folder):
        self.words, self.folder = words, folder
        self._environment = {**os.environ, 'JITUNWIND_CODE_DIR': folder, 'JITUNWIND_CODE_FILES': 'keep'}

    def file(self, name):
        return os.path.join(self.folder, name)

    def program(self, what, build='seen_program'):
        return [os.path.join(os.environ['PROGRAMS'], build), *self.words, what]

    def output(self, command, **environment):
        """Both streams of a command, however it ends."""
        if shutil.which(command[0]) is None:
            raise NotRun('%s was not found' % command[0])
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**self._environment, **environment}, cwd=self.folder, timeout=300).stdout.decode(errors='replace')

    def printed(self, what, build='seen_program'):
        text = self.output(self.program(what, build))
        if 'not built for this' in text:
            raise NotRun('the library was not found when the tests were configured')
        return text

    def beside(self, what, command):
        """The output of a command that is run while the program does something; PID in it is the program's."""
        with subprocess.Popen(self.program(what), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=self._environment) as program:
            program.stdout.readline()
            try:
                text = self.output([word.replace('PID', str(program.pid)) for word in command])
                if program.poll() is not None:
                    raise AssertionError('the program ended: ' + text)
                return text
            finally:
                program.kill()

    def core(self):
        try:
            return core_files.by_kernel(self.program('die'), self.folder, env=self._environment)
        except core_files.NotWritten as reason:
            raise NotRun(reason) from None


NEWER_LIBRARIES = os.path.join(NEWER, 'usr/lib/x86_64-linux-gnu')


def newer(program):
    """The command of a program of the newer release, with its own dynamic linker and libraries."""
    path = os.path.join(NEWER, 'usr/bin', program)
    if not os.path.exists(path):
        raise NotRun('%s of a newer release is not unpacked: ./dev prove does it' % program)
    return [os.path.join(NEWER_LIBRARIES, 'ld-linux-x86-64.so.2'), '--library-path', NEWER_LIBRARIES, path]


GDB = ['-nx', '-q', '-batch', '-iex', 'set debuginfod enabled off', '-iex', 'set auto-load off']
NEWER_GDB = ['--data-directory', os.path.join(NEWER, 'usr/share/gdb')]
LLDB = [os.environ.get('LLDB', 'lldb'), '--no-lldbinit', '--no-use-colors', '--batch', '-o', 'settings set plugin.jit-loader.gdb.enable off']


def gdb(view, command=('gdb',)):
    return view.beside('wait', [*command, *GDB, '-p', 'PID', '-ex', 'backtrace'])


def gdb_core(view):
    return view.output(['gdb', *GDB, view.program('')[0], view.core(), '-ex', 'backtrace'])


def lldb(view):
    return view.beside('wait', [*LLDB, '-p', 'PID', '-o', 'bt'])


def lldb_core(view):
    return view.output([*LLDB, '-c', view.core(), view.program('')[0], '-o', 'bt'])


def eu_stack(view, command=('eu-stack',)):
    return view.beside('wait', [*command, '-p', 'PID'])


def eu_stack_core(view):
    return view.output(['eu-stack', '--core=' + view.core(), '-e', view.program('')[0]])


def strace(view):
    return view.output(['strace', '-k', '-e', 'trace=getppid', *view.program('call')])


def perf(view, how, command=('perf',)):
    said = view.output([*command, 'record', '-e', 'cpu-clock:u', '-F', '199', '--call-graph', how, '-o', view.file('data'),
                        *view.program('work')])
    if not os.path.exists(view.file('data')):
        raise NotRun('perf cannot record here: ' + said.strip().splitlines()[-1])
    return view.output([*command, 'script', '-F', 'ip,sym', '-i', view.file('data')])


def bpftrace(view, how, command=('bpftrace',)):
    """The file system that bpftrace reads is mounted for it alone."""
    script = 'profile:hz:99 /pid == PID/ { @[%s] = count(); } interval:s:1 { exit(); }' % how
    run = ['unshare', '--mount', 'sh', '-c', 'mount -t tracefs none /sys/kernel/tracing; exec "$@"', 'sh', *command, '-p', 'PID', '-e',
           script]
    if os.geteuid() != 0:
        raise NotRun('only root may load programs into the kernel')
    text = view.beside('work_on', run)
    if '@[' not in text:
        raise NotRun('this kernel gives bpftrace no samples: ' + text.strip().splitlines()[-1])
    return text


def eu_stackprof(view):
    """It says where each frame is in its file; the elfutils name that place."""
    text = view.beside('work_on', ['timeout', '2', *newer('eu-stackprof'), '-v', '-v', '-v', '-v', '-p', 'PID'])
    places, names, said = re.compile(r'^\* frame \d+: rel_pc=([0-9a-f]+) '), {}, []
    for line in text.splitlines():
        place, file = places.match(line), re.search(r' mainfile=(\S+)', line)
        if place:
            pc = place.group(1)
            said.append('name ')
        elif file:
            key = (pc, file.group(1))
            if key not in names:
                names[key] = view.output(['eu-addr2line', '-f', '-e', file.group(1), '0x' + pc]).splitlines()[0]
            said[-1] = 'name ' + names[key]
        elif 'NOT FOUND' not in line:
            said.append('')
    return '\n'.join(said)


def cpptrace(view):
    program = view.program('cpptrace', 'seen_program_cpptrace')
    if not os.path.exists(program[0]):
        raise NotRun('cpptrace of a newer release was not unpacked when the tests were configured: ./dev prove does it')
    return view.output(program, LD_LIBRARY_PATH=NEWER_LIBRARIES)


def heaptrack(view):
    view.output(['heaptrack', '-o', view.file('heap'), *view.program('allocate')])
    data = [name for name in os.listdir(view.folder) if name.startswith('heap.')]
    text = view.output(['heaptrack_print', '-f', view.file(data[0])])
    return re.sub(r'^ +(in|at) .*\n', '', text, flags=re.M)  # where a frame is has lines of its own


def library(name):
    path = os.path.join('/usr/lib/x86_64-linux-gnu', name)
    if not os.path.exists(path):
        raise NotRun('%s was not found' % name)
    return path


def pprof(view, profile):
    return view.output(['google-pprof', '--stacks', '--no-auto-signal-frm', view.program('')[0], view.file(profile)])


def gperftools_cpu(view):
    view.output(view.program('work'), LD_PRELOAD=library('libprofiler.so.0'), CPUPROFILE=view.file('cpu'))
    return pprof(view, 'cpu')


def gperftools_heap(view):
    view.output(view.program('allocate'), LD_PRELOAD=library('libtcmalloc.so.4'), HEAPPROFILE=view.file('heap'))
    return pprof(view, 'heap.0001.heap')


def valgrind(view):
    return view.output(['valgrind', '-q', *view.program('read_past_the_end')]).split('Address')[0]


def asan(view):
    return view.printed('read_past_the_end', 'seen_program_asan').split('located')[0]


def postgres(view):
    """A server without clients, which refuses to run as root."""
    programs = subprocess.run(['sh', '-c', 'pg_config --bindir'], stdout=subprocess.PIPE, text=True).stdout.strip()
    module = os.path.join(os.environ['PROGRAMS'], 'seen_by_postgres.so')
    if not programs or not os.path.exists(module):
        raise NotRun('PostgreSQL for servers was not found when the tests were configured')
    user = []
    if os.geteuid() == 0:
        os.chown(view.folder, 65534, 65534)
        user = ['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups']
    view.output([*user, os.path.join(programs, 'initdb'), '-A', 'trust', '-N', '-D', view.file('data')])
    with open(view.file('sql'), 'w') as file:
        file.write("create function known_stack(text, text, text) returns bool as '%s' language c\n" % module)
        file.write("select known_stack('%s', '%s', '%s')\n" % tuple(view.words))
    command = [*user, os.path.join(programs, 'postgres'), '--single', '-c', 'backtrace_functions=look', '-D', view.file('data'), 'postgres']
    return view.output(['sh', '-c', 'exec "$@" <%s' % view.file('sql'), 'sh', *command])


class Tool:
    """`lacks`: ways of making code that it is not shown."""

    def __init__(self, name, package, show, frame, of_newer=False, lacks=()):
        self.name, self.package, self.show, self.frame, self.of_newer, self.lacks = name, package, show, frame, of_newer, lacks

    def version(self):
        """The upstream version of its package; empty if the system has no such package."""
        if self.of_newer:
            with open(os.path.join(NEWER, 'versions')) as file:
                text = dict(line.split() for line in file)[self.package]
        elif shutil.which('dpkg-query'):
            text = subprocess.run(['dpkg-query', '-W', '-f', '${Version}', self.package], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True).stdout
        else:
            return ''
        return re.sub(r'^\d+:|[-+].*', '', text)


NUMBERED = r'^[ *]*(?:frame )?#\d+:? +(.*)$'
PRINTED = r'^name (.*)$'
IN_PARENTHESES = r'^.*?\(([^)]*)\) ?\[0x[0-9a-f]+\]$|^\[0x[0-9a-f]+\]$'
INDENTED = r'^\s+([0-9a-f]+ .*|0x[0-9a-f]+|[^\s@].*)$'

TOOLS = [
    Tool('gdb', 'gdb', gdb, NUMBERED),
    Tool('gdb, core file', 'gdb', gdb_core, NUMBERED),
    Tool('lldb', os.path.basename(LLDB[0]), lldb, NUMBERED),
    Tool('lldb, core file', os.path.basename(LLDB[0]), lldb_core, NUMBERED),
    Tool('eu-stack', 'elfutils', eu_stack, NUMBERED),
    Tool('eu-stack, core file', 'elfutils', eu_stack_core, NUMBERED),
    Tool('strace -k', 'strace', strace, r'^ > (.*)$'),
    Tool('perf --call-graph dwarf', 'linux-perf', lambda view: perf(view, 'dwarf'), INDENTED),
    Tool('perf --call-graph fp', 'linux-perf', lambda view: perf(view, 'fp'), INDENTED),
    Tool('bpftrace ustack', 'bpftrace', lambda view: bpftrace(view, 'ustack'), INDENTED),
    Tool('heaptrack', 'heaptrack', heaptrack, r'^ {4}(?! )(.*)$'),
    Tool('gperftools, processor time', 'google-perftools', gperftools_cpu, r'^\d* +\([0-9a-f]+\) (.*)$'),
    Tool('gperftools, memory', 'google-perftools', gperftools_heap, r'^\d* +\([0-9a-f]+\) (.*)$'),
    Tool('valgrind', 'valgrind', valgrind, r'^==\d+== +(?:at|by) 0x[0-9A-F]+: (.*)$'),
    Tool('AddressSanitizer', 'gcc-12', asan, NUMBERED, lacks=('orc',)),
    Tool('backtrace_symbols()', 'libc6', lambda view: view.printed('backtrace_symbols'), IN_PARENTHESES),
    Tool('dladdr()', 'libc6', lambda view: view.printed('dladdr'), PRINTED),
    Tool("PostgreSQL's log", 'postgresql-15', postgres, r'^\t.*?\(([^)]*)\) \[0x[0-9a-f]+\]$|^\t\[0x[0-9a-f]+\]$',
         lacks=('asmjit', 'orc')),  # Debian's asmjit cannot be linked into modules
    Tool('glog', 'libgoogle-glog-dev', lambda view: view.printed('glog'), r'^ +@ +0x[0-9a-f]+ (.*)$'),
    Tool('absl', 'libabsl-dev', lambda view: view.printed('absl'), PRINTED),
    Tool('Boost.Stacktrace', 'libboost-stacktrace-dev', lambda view: view.printed('boost'), r'^ *\d+# (.*)$'),
    Tool('backward-cpp', 'libbackward-cpp-dev', lambda view: view.printed('backward'), NUMBERED),
    Tool('cpptrace', 'libcpptrace-dev', cpptrace, NUMBERED, of_newer=True, lacks=('orc',)),
    Tool('gdb of sid', 'gdb', lambda view: gdb(view, newer('gdb') + NEWER_GDB), NUMBERED, of_newer=True),
    Tool('eu-stack of sid', 'elfutils', lambda view: eu_stack(view, newer('eu-stack')), NUMBERED, of_newer=True),
    Tool('eu-stackprof', 'elfutils', eu_stackprof, PRINTED, of_newer=True),
    Tool('perf --call-graph dwarf of sid', 'linux-perf', lambda view: perf(view, 'dwarf', newer('perf')), INDENTED, of_newer=True),
    Tool('bpftrace dw_ustack', 'bpftrace', lambda view: bpftrace(view, 'dw_ustack', newer('bpftrace')), INDENTED, of_newer=True),
]
