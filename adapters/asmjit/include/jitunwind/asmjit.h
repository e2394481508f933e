// asmjit programs: AsmjitRuntime in place of asmjit::JitRuntime, AsmjitAssembler in place of asmjit::x86::Assembler.
#pragma once

#include "sdk/language.h"

#if __cplusplus >= 202002L
#include "adapters/asmjit/asmjit_assembler.h"
#include "adapters/asmjit/asmjit_builder.h"
#include "adapters/asmjit/asmjit_code.h"
#include "adapters/asmjit/asmjit_runtime.h"
#endif
