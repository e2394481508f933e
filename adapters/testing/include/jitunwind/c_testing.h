/* Checks of descriptions against their code in C, for unit tests of JIT compilers. Library jitunwind-testing, CMake
   target jitunwind::testing. C99, C++11. docs/testing.md. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "jitunwind/sdk/c/base.h"
#include "jitunwind/sdk/c/register.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** Runs `run(data)` in a forked child, one instruction at a time, and compares the caller by the registered description
    with the real one at each instruction of `code`, as C++'s check_by_stepping(), which has all conditions. `run` calls
    the code, and returns 0 if its results are right. `into` gets the report, cut to room - 1 bytes. `not_run` gets the
    number of instructions that never ran and are not checked; it may be null. JU_OK: all that ran were right, and at
    least one ran. Errors: null_pointer; bad_frame: a row was wrong; invalid_argument: the report says why the check is
    incomplete; out_of_memory. Not signal-safe; one check at a time in a process. x86-64 only. */
ju_status ju_check_by_stepping(const ju_range* code, size_t count, int (*run)(void* data), void* data, char* into,
                               size_t room, size_t* not_run);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
