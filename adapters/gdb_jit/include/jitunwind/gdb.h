// Registered procedures in debuggers that read GDB's interface for code made at run time.
#pragma once

#include "adapters/gdb_jit/gdb_jit.h"
