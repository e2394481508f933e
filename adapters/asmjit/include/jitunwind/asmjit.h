// The header of asmjit programs: AsmjitRuntime replaces asmjit::JitRuntime, AsmjitAssembler replaces
// asmjit::x86::Assembler.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/asmjit/asmjit_assembler.h"
#include "jitunwind/adapters/asmjit/asmjit_builder.h"
#include "jitunwind/adapters/asmjit/asmjit_code.h"
#include "jitunwind/adapters/asmjit/asmjit_runtime.h"
#endif
