"""Registered procedures read out of a process or a core file: see jitunwind-gdb.py beside this folder."""
