#include <asmjit.h>
#include <gdb.h>
#include <jitunwind/jitunwind.h>

#include "builders/instruction.h"

HostInstruction of_host;
HostGdb gdb_of_host;
HostAsmjit asmjit_of_host;
jitunwind::Registration registration_of_jitunwind;
