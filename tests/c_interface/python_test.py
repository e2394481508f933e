#!/usr/bin/env python3
"""The binding of Python: every function that it names has the type that the headers say, and what it shows is there."""
import ctypes
import mmap
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import jitunwind

HEADERS = sys.argv.pop()


def declared():
    """name -> number of parameters."""
    found = {}
    for name in os.listdir(HEADERS):
        if not name.endswith('.h') or name.endswith(('_p.h', '_internal.h')):
            continue
        with open(os.path.join(HEADERS, name), encoding='utf-8') as header:
            text = re.sub(r'/\*.*?\*/', '', header.read(), flags=re.S)
        for function, parameters in re.findall(r'^(?!static)[\w ]+\*? (ju_\w+)\(([^;{]*)\);', text, re.M):
            found[function] = 0 if parameters.strip() == 'void' else parameters.count(',') + 1
    return found


class Binding(unittest.TestCase):
    def test_functions_are_those_of_the_headers(self):
        c = declared()
        self.assertGreater(len(c), 140)
        bound = [value for value in vars(jitunwind).values() if isinstance(value, ctypes._CFuncPtr)]
        self.assertGreater(len(bound), 20)
        for function in bound:
            self.assertEqual(len(function.argtypes), c[function.__name__], function.__name__)

    def test_functions_of_rust_are_those_of_the_headers(self):
        c = declared()
        path = os.path.join(HEADERS, '../bindings/rust/jitunwind-sys/src/lib.rs')
        with open(path, encoding='utf-8') as source:
            of_rust = re.findall(r'pub fn (ju_\w+)\(([^)]*)\)', source.read())
        self.assertGreater(len(of_rust), 25)
        for function, parameters in of_rust:
            self.assertEqual(parameters.count(',') + 1 if parameters else 0, c[function], function)

    def test_descriptions_and_their_mistakes(self):
        described = jitunwind.Description('f', ('push', 0, 1, 'rbx'), ('pop', -2, -1, 'rbx'), cpu=62)
        self.assertEqual(described.rows(8), ['+0: cfa=rsp+8 ra=[cfa-8]', '+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]',
                                             '+7: cfa=rsp+8 ra=[cfa-8]'])
        with self.assertRaises(jitunwind.Error) as refused:
            jitunwind.Description('f', ('push', 0, 1, 'rbx'), cpu=62)
        self.assertEqual(refused.exception.name, 'w_unbalanced')
        self.assertIn('still allocated', str(refused.exception))
        self.assertNotEqual(refused.exception.remedy, '')

    def test_registered_code_is_seen(self):
        code = bytes.fromhex('53ffd75bc3')  # push rbx; call rdi; pop rbx; ret
        memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        memory.write(code)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        seen = []
        callback = ctypes.CFUNCTYPE(None)(lambda: seen.extend(jitunwind.frames()))
        described = jitunwind.Description('by_python', ('push', 0, 1, 'rbx'), ('pop', 3, 4, 'rbx'))
        with described.register(start, len(code)):
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(start)(ctypes.cast(callback, ctypes.c_void_p))
            self.assertEqual(jitunwind.symbolise(start + 1), ('by_python', 1))
        self.assertIsNone(jitunwind.symbolise(start + 1))
        ours = [frame for frame in seen if frame.name == 'by_python']
        self.assertEqual([frame.origin for frame in ours], ['dyn_directives'])
        self.assertEqual(ours[0].row, 'cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]')
        self.assertGreater(len(seen), ours[0].depth + 3, 'the interpreter is behind it')
        self.assertIn('registrations', jitunwind.statistics())

    def test_a_walk_that_cannot_go_on_keeps_its_frames(self):
        memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        memory.write(bytes.fromhex('53ffd75bc3'))  # as above; its description says that the frame is larger
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        walks = []
        callback = ctypes.CFUNCTYPE(None)(lambda: walks.append(jitunwind.frames()))
        described = jitunwind.Description('lost', ('allocate', 0, 1, 1 << 40), ('deallocate', 3, 4, 1 << 40))
        with described.register(start, 5):
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(start)(ctypes.cast(callback, ctypes.c_void_p))
        self.assertEqual(walks[0][-1].name, 'lost')
        self.assertEqual(walks[0].error.name, 'unreadable_memory')
        self.assertIsNone(jitunwind.frames().error)

    def test_other_processes(self):
        child = subprocess.Popen(['sleep', '100'])
        try:
            names = []
            for _ in range(100):
                with jitunwind.Target.attach(child.pid) as target:
                    self.assertEqual([thread.id for thread in target.threads()], [child.pid])
                    names = [frame.name for frame in target.frames(0)]
                if any('nanosleep' in (name or '') for name in names):
                    break
                time.sleep(0.02)
            self.assertTrue(any('nanosleep' in (name or '') for name in names), names)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()
        with self.assertRaises(jitunwind.Error) as refused:
            jitunwind.Target.attach(child.pid)
        self.assertEqual(refused.exception.name, 'no_process')


if __name__ == '__main__':
    unittest.main()
