// The adapter for JITLink: every object that an ObjectLinkingLayer links is registered when its memory is finalised,
// and cancelled when that memory is deallocated. LLVM ties both to the memory itself (allocation actions). Resource
// trackers may therefore be removed or merged, and links may fail at any point, without any action of the adapter.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <memory>

#include "jitunwind/adapters/llvm_orc/orc_options.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A plugin for layers whose code runs in this process. The functions are those of .eh_frame, local ones included. The
/// names are the symbols before JITLink drops unreferenced ones.
///
/// Plugins that were added to the layer earlier do not see .eh_frame after fixup. LLVM's EHFrameRegistrationPlugin,
/// which LLJIT adds by itself, therefore registers nothing with the system's unwinder, and nothing is registered twice.
/// Add plugins that read the section (PerfSupportPlugin) after this one.
///
/// Errors of an object fail its link: a broken .eh_frame, no memory. Thread-safe as LLVM requires. A second plugin in
/// one layer has no effect.
class OrcPlugin : public llvm::orc::ObjectLinkingLayer::Plugin {
 public:
  explicit OrcPlugin(OrcOptions options = {});

  // Functions that LLVM calls.
  void modifyPassConfig(llvm::orc::MaterializationResponsibility& responsibility, llvm::jitlink::LinkGraph& graph,
                        llvm::jitlink::PassConfiguration& passes) override;
  llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility& responsibility) override;
#if LLVM_VERSION_MAJOR < 16
  llvm::Error notifyRemovingResources(llvm::orc::ResourceKey key) override;
  void notifyTransferringResources(llvm::orc::ResourceKey to, llvm::orc::ResourceKey from) override;
#else
  llvm::Error notifyRemovingResources(llvm::orc::JITDylib& dylib, llvm::orc::ResourceKey key) override;
  void notifyTransferringResources(llvm::orc::JITDylib& dylib, llvm::orc::ResourceKey to,
                                   llvm::orc::ResourceKey from) override;
#endif

 private:
  const std::shared_ptr<const OrcOptions> options_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
