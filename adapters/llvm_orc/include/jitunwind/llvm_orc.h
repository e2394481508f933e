// The ORC adapter. Library jitunwind-llvm_orc, CMake target jitunwind::llvm_orc. docs/llvm_orc.md.
#pragma once

#include "sdk/language.h"

#if __cplusplus >= 202002L
#include "adapters/llvm_orc/orc_attach.h"
#include "adapters/llvm_orc/orc_memory_manager.h"
#include "adapters/llvm_orc/orc_plugin.h"
#endif
