// One line for whoever has an LLJIT:
//
//   if (auto error = jitunwind::attach(*jit)) return error;
#pragma once

#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#include <memory>

#include "jitunwind/adapters/llvm_orc/orc_options.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// From now on every object that `jit` links is registered as long as it is in memory: OrcPlugin. What was linked
/// before is not. Call it before threads compile, and once.
///
/// Errors: the code of `jit` runs in another process; its objects are linked by RuntimeDyld (the default of LLVM before
/// 18 or so on x86-64), whose memory managers cannot be changed afterwards: build it with orc_rtdyld_layer().
llvm::Error attach(llvm::orc::LLJIT& jit, OrcOptions options = {});

/// For LLJITBuilder::setObjectLinkingLayerCreator(): a layer that links by RuntimeDyld into OrcMemoryManagers.
llvm::orc::LLJITBuilderState::ObjectLinkingLayerCreator orc_rtdyld_layer(OrcOptions options = {});

}  // namespace jitunwind
#pragma GCC visibility pop
