"""Loads a plugin as modules of Python's are loaded, and runs it: behind other libraries, if they are given."""
import ctypes
import sys

for library in sys.argv[2:]:
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
sys.exit(ctypes.CDLL(sys.argv[1]).run_through(0, None))
