// JITLink: every object that an ObjectLinkingLayer links is registered when its memory is finalised and cancelled when
// that memory is given back. LLVM ties both to the memory itself (allocation actions), so that resource trackers may be
// removed or merged, and links may fail at any point, without anything here having to follow.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <memory>

#include "jitunwind/adapters/llvm_orc/orc_options.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// For layers whose code runs in this process. Functions are those of .eh_frame, local ones included; names are the
/// symbols as they were before JITLink dropped what nobody refers to.
///
/// Plugins of the layer that were added before do not see .eh_frame when fixups are done: so LLVM's
/// EHFrameRegistrationPlugin, which LLJIT adds by itself, tells the system's unwinder nothing, and nothing is
/// registered twice. Add plugins that want to read it (PerfSupportPlugin) behind this one.
///
/// Errors of an object fail its link, whatever it was linked for: .eh_frame that is broken, no memory. Thread-safe as
/// LLVM wants it. A second plugin in one layer does nothing.
class OrcPlugin : public llvm::orc::ObjectLinkingLayer::Plugin {
 public:
  explicit OrcPlugin(OrcOptions options = {});

  // What LLVM calls.
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
