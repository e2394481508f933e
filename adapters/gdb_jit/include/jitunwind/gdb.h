// Registered procedures in debuggers that read GDB's interface for code made at run time.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/gdb_jit/gdb_jit.h"
#endif
