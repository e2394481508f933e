// The header of xbyak programs: xbyak::CodeGenerator replaces Xbyak::CodeGenerator, xbyak::StackFrame replaces
// Xbyak::util::StackFrame. CMake target jitunwind::xbyak, which has no library of its own. docs/xbyak.md.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/xbyak/code_generator.h"
#include "jitunwind/adapters/xbyak/stack_frame.h"
#endif
