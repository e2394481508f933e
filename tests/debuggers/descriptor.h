// A definition of GDB's interface that is not this library's, in a library.
#pragma once

#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"

extern "C" {
jit_descriptor* other_descriptor();
/// The program may define this: a debugger that reads the program's descriptor is told of something.
[[gnu::weak]] void other_descriptor_told();
}
