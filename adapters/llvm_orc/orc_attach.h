// One line attaches the adapter to an LLJIT:
//
//   if (auto error = jitunwind::attach(*jit)) return error;
#pragma once

#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#include "jitunwind/adapters/llvm_orc/orc_options.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Registers every object that `jit` links from now on, as long as the object is in memory; see OrcPlugin. Objects that
/// were linked before are not registered. Call it once, before threads compile.
///
/// Errors: the code of `jit` runs in another process; its objects are linked by RuntimeDyld (the default of LLVM before
/// 18 or so on x86-64). RuntimeDyld's memory managers cannot be changed afterwards: build such a JIT with
/// orc_rtdyld_layer().
llvm::Error attach(llvm::orc::LLJIT& jit, OrcOptions options = {});

/// A creator for LLJITBuilder::setObjectLinkingLayerCreator(): its layer links by RuntimeDyld into OrcMemoryManagers.
llvm::orc::LLJITBuilderState::ObjectLinkingLayerCreator orc_rtdyld_layer(OrcOptions options = {});

}  // namespace jitunwind
#pragma GCC visibility pop
