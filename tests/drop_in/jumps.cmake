# The expected output of setjmp_program.c and cleanup_program.c, by whatever setjmp(), where the C library's own is not
# compared.
string(CONCAT jumps "\\Ajumped with 1: 1, registers kept\\njumped with 0: 1, registers kept\\n"
                    "jumped with -7: -7, registers kept\\njumped with 2: 2, registers kept\\n"
                    "jumped with 3: 4, registers kept\\nout of itself: 6, registers kept\\n"
                    "out of a handler: 5, signal not blocked\\nout of a handler: 5, signal blocked\\n"
                    "(out of a handler: 5, signal not blocked\\n){2}\\Z")
set(cleanups "\\Acleaned up: cancelled\\ncancelled\\ncleaned up: ended\\nended\\njumped\\n\\Z")
