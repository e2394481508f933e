"""jitunwind by ctypes: descriptions, walks of this process and of others, names, counters. It serves tests and the
inspection of processes:

    import jitunwind
    for frame in jitunwind.Target.attach(pid).frames(0):
        print(hex(frame.pc), frame.name)

The library is libjitunwind.so.1, or the file that JITUNWIND_LIBRARY in the environment names. Every error is a
jitunwind.Error with code, text and remedy. Only one thread at a time may use an object.
"""
import ctypes
import os
from collections import namedtuple

_lib = ctypes.CDLL(os.environ.get('JITUNWIND_LIBRARY', 'libjitunwind.so.1'), use_errno=True)

_U64 = ctypes.c_uint64
_I64 = ctypes.c_int64
_SIZE = ctypes.c_size_t
_PTR = ctypes.c_void_p
_STATUS = ctypes.c_int32

OK, END = 0, 1


class _ErrorStruct(ctypes.Structure):
    _fields_ = [('struct_size', _SIZE), ('code', _STATUS), ('at', _U64), ('remedy', ctypes.c_char_p),
                ('place', ctypes.c_char * 64), ('text', ctypes.c_char * 512)]


class _Cursor(ctypes.Structure):
    _fields_ = [('words', _U64 * 160)]


class _Frame(ctypes.Structure):
    _fields_ = [('struct_size', _SIZE), ('pc', _U64), ('sp', _U64), ('depth', ctypes.c_uint32), ('origin', _STATUS),
                ('is_guess', ctypes.c_int32), ('is_signal_frame', ctypes.c_int32),
                ('is_return_address', ctypes.c_int32)]


class _Code(ctypes.Structure):
    _fields_ = [('struct_size', _SIZE), ('start', _U64), ('size', _U64), ('name', ctypes.c_char_p), ('lsda', _U64),
                ('landing_pad_base', _U64), ('user', _PTR)]


class _Thread(ctypes.Structure):
    _fields_ = [('struct_size', _SIZE), ('id', ctypes.c_int32), ('signal', ctypes.c_int32),
                ('is_stopped', ctypes.c_int32), ('name', ctypes.c_char * 64)]


def _function(name, result, *arguments):
    function = getattr(_lib, name)
    function.restype = result
    function.argtypes = arguments
    return function


_E = ctypes.POINTER(_ErrorStruct)
_C = ctypes.POINTER(_Cursor)
_OUT = ctypes.POINTER(_PTR)
_name_of = _function('ju_status_name', ctypes.c_char_p, _STATUS)
_text_of = _function('ju_status_text', ctypes.c_char_p, _STATUS)
_remedy_of = _function('ju_status_remedy', ctypes.c_char_p, _STATUS)
_version = _function('ju_version', ctypes.c_uint)
_describe = _function('ju_describe', _STATUS, ctypes.c_int32, ctypes.c_char_p, _OUT, _E)
_builder_free = _function('ju_builder_free', _STATUS, _PTR)
_build = _function('ju_build', _STATUS, _PTR, _OUT, _E)
_findings = _function('ju_builder_findings', ctypes.c_char_p, _PTR)
_description_free = _function('ju_description_free', _STATUS, _PTR)
_rows = _function('ju_description_rows', _STATUS, _PTR, _U64, ctypes.c_char_p, _SIZE, ctypes.POINTER(_SIZE))
_by_name = _function('ju_register_by_name', ctypes.c_uint32, ctypes.c_int32, ctypes.c_char_p)
_register = _function('ju_register', _STATUS, _PTR, ctypes.POINTER(_Code), _OUT, _E)
_cancel = _function('ju_cancel', _STATUS, _PTR, _E)
_step = _function('ju_cursor_step', _STATUS, _C, _E)
_frame_get = _function('ju_frame_get', _STATUS, _C, ctypes.POINTER(_Frame), _E)
_frame_name = _function('ju_frame_demangled_name', _STATUS, _C, ctypes.c_char_p, _SIZE, ctypes.POINTER(_U64))
_frame_row = _function('ju_frame_row', _STATUS, _C, ctypes.c_char_p, _SIZE, ctypes.POINTER(_SIZE))
_why = _function('ju_cursor_why', _STATUS, _C, ctypes.c_char_p, _SIZE, ctypes.POINTER(_SIZE))
_ON_FRAME = ctypes.CFUNCTYPE(ctypes.c_int, _C, _PTR)
_walk_here = _function('ju_walk_here', _STATUS, _ON_FRAME, _PTR, _E)
_attach = _function('ju_target_attach', _STATUS, ctypes.c_int32, ctypes.c_int32, _OUT, _E)
_open_core = _function('ju_target_open_core', _STATUS, ctypes.c_char_p, _PTR, _OUT, _E)
_target_free = _function('ju_target_free', _STATUS, _PTR)
_threads = _function('ju_target_threads', _SIZE, _PTR)
_thread = _function('ju_target_thread', _STATUS, _PTR, _SIZE, ctypes.POINTER(_Thread), _E)
_target_cursor = _function('ju_target_cursor', _STATUS, _PTR, _SIZE, _C, _E)
_symbolise = _function('ju_symbolise', _STATUS, _U64, ctypes.c_int, ctypes.c_char_p, _SIZE, ctypes.POINTER(_U64))
_statistics = _function('ju_statistics_text', _STATUS, ctypes.c_char_p, _SIZE, ctypes.POINTER(_SIZE))
_origin_name = _function('ju_origin_name', ctypes.c_char_p, _STATUS)

Frame = namedtuple('Frame', 'pc sp depth name offset origin is_guess is_signal_frame row')
Thread = namedtuple('Thread', 'id name signal is_stopped')


class Error(Exception):
    """A refusal of the library: `name`, `code`, `at`, `place`, `remedy`, and the text."""

    def __init__(self, code, error=None):
        self.code = code
        self.name = _name_of(code).decode()
        filled = error is not None and error.code == code
        self.at = error.at if filled else 0
        self.place = error.place.decode(errors='replace') if filled else ''
        self.remedy = (error.remedy if filled else _remedy_of(code)).decode()
        super().__init__((error.text if filled else _text_of(code)).decode(errors='replace'))


def _call(function, *arguments):
    """Calls a function whose last argument is a ju_error."""
    error = _ErrorStruct(struct_size=ctypes.sizeof(_ErrorStruct))
    status = function(*arguments, ctypes.byref(error))
    if status not in (OK, END):
        raise Error(status, error)
    return status


def _text(function, *arguments):
    """Returns the text, of any length, that a function writes."""
    length = _SIZE()
    status = function(*arguments, None, 0, ctypes.byref(length))
    if status == OK:
        room = ctypes.create_string_buffer(length.value + 1)
        status = function(*arguments, room, len(room), ctypes.byref(length))
    if status != OK:
        raise Error(status)
    return room.value.decode(errors='replace')


def version():
    """10000 * major + 100 * minor + patch."""
    return _version()


def statistics():
    """The counters of the library, by name: {'registrations': '1', ...}."""
    return dict(line.split(': ', 1) for line in _text(_statistics).splitlines() if ': ' in line)


def symbolise(pc, is_return_address=False):
    """(name, offset) of code of this process; None if there is no name."""
    room, offset = ctypes.create_string_buffer(1024), _U64()
    if _symbolise(pc, int(is_return_address), room, len(room), ctypes.byref(offset)) != OK:
        return None
    return room.value.decode(errors='replace'), offset.value


def _frame_at(cursor):
    frame = _Frame(struct_size=ctypes.sizeof(_Frame))
    _call(_frame_get, cursor, ctypes.byref(frame))
    name, row, offset = ctypes.create_string_buffer(1024), ctypes.create_string_buffer(1024), _U64()
    has_name = _frame_name(cursor, name, len(name), ctypes.byref(offset)) == OK
    has_row = _frame_row(cursor, row, len(row), None) == OK
    return Frame(frame.pc, frame.sp, frame.depth, name.value.decode(errors='replace') if has_name else None,
                 offset.value, _origin_name(frame.origin).decode(), bool(frame.is_guess), bool(frame.is_signal_frame),
                 row.value.decode() if has_row else None)


class Frames(list):
    """Frames, innermost first. `error` says why the walk ended before the outermost one; None: it did not."""

    def __init__(self, walk):
        super().__init__()
        self.error = None
        try:
            walk(self)
        except Error as error:
            self.error = error


def frames():
    """The Frames of the calling thread, including the interpreter's. They are copies, because the thread goes on."""
    return Frames(lambda found: _call(
        _walk_here, _ON_FRAME(lambda cursor, _: found.append(_frame_at(cursor)) or 0), None))


class _Closed:
    """A context manager that closes itself."""

    def __init__(self, handle):
        self._handle = handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()


class Target(_Closed):
    """Another process, or a core file. It is a context manager; the process goes on when it ends."""

    @classmethod
    def attach(cls, pid, to_copy=False):
        """Stops a process until close(), or, with `to_copy`, only until its stacks are copied."""
        handle = _PTR()
        _call(_attach, pid, int(to_copy), ctypes.byref(handle))
        return cls(handle)

    @classmethod
    def open_core(cls, path):
        """Opens a core file."""
        handle = _PTR()
        _call(_open_core, os.fsencode(path), None, ctypes.byref(handle))
        return cls(handle)

    def threads(self):
        """A Thread for each thread of the target."""
        found = []
        for i in range(_threads(self._handle)):
            thread = _Thread(struct_size=ctypes.sizeof(_Thread))
            _call(_thread, self._handle, i, ctypes.byref(thread))
            found.append(Thread(thread.id, thread.name.decode(errors='replace'), thread.signal,
                                bool(thread.is_stopped)))
        return found

    def frames(self, i=0):
        """The Frames of thread number `i`."""
        cursor = _Cursor()
        _call(_target_cursor, self._handle, i, ctypes.byref(cursor))

        def walk(found):
            status = OK
            while status != END:
                found.append(_frame_at(ctypes.byref(cursor)))
                status = _call(_step, ctypes.byref(cursor))

        return Frames(walk)

    def close(self):
        """Lets the process go on."""
        handle, self._handle = self._handle, None
        if handle:
            _target_free(handle)


class Description:
    """How to unwind a procedure: Description('f', ('push', 0, 1, 'rbx'), ('pop', -2, -1, 'rbx')).

    Each instruction is the name of a C function without ju_, its integers, and registers by their names.
    """

    def __init__(self, name, *instructions, cpu=0):
        builder = _PTR()
        _call(_describe, cpu, name.encode() if name else None, ctypes.byref(builder))
        try:
            for instruction, *arguments in instructions:
                self._say(builder, cpu, instruction, arguments)
            self._handle = _PTR()
            _call(_build, builder, ctypes.byref(self._handle))
        finally:
            _builder_free(builder)

    @staticmethod
    def _say(builder, cpu, instruction, arguments):
        function = getattr(_lib, 'ju_' + instruction)
        function.restype = _STATUS
        passed = []
        for argument in arguments:
            if isinstance(argument, bytes):
                passed.append(ctypes.c_char_p(argument))
            elif isinstance(argument, str):
                passed.append(ctypes.c_uint32(_by_name(cpu, argument.encode())))
            else:
                passed.append(_I64(argument))
        function(builder, *passed)  # ju_build() reports mistakes

    def rows(self, size=0):
        """All rows of a procedure of that size."""
        return _text(_rows, self._handle, size).splitlines()

    def register(self, start, size, name=None):
        """Makes code at `start` known until the Registration is cancelled."""
        code = _Code(struct_size=ctypes.sizeof(_Code), start=start, size=size, name=name.encode() if name else None)
        handle = _PTR()
        _call(_register, self._handle, ctypes.byref(code), ctypes.byref(handle))
        return Registration(handle)

    def __del__(self):
        if getattr(self, '_handle', None):
            _description_free(self._handle)


class Registration(_Closed):
    """Registered code. It is a context manager."""

    def cancel(self):
        """Cancels the registration. On return nothing reads its description any more."""
        handle, self._handle = self._handle, None
        if handle:
            _call(_cancel, handle)

    close = cancel
