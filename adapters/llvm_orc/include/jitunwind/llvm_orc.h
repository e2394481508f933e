// The ORC adapter. Library jitunwind-llvm_orc, CMake target jitunwind::llvm_orc. docs/llvm_orc.md.
#pragma once

#include "jitunwind/sdk/language.h"

#if __cplusplus >= 202002L
#include "jitunwind/adapters/llvm_orc/orc_attach.h"
#include "jitunwind/adapters/llvm_orc/orc_memory_manager.h"
#include "jitunwind/adapters/llvm_orc/orc_plugin.h"
#endif
