#include "jitunwind/adapters/llvm_orc/orc_attach.h"

#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#if __has_include(<llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h>)
#include <llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h>
#endif

#include <utility>

#include "jitunwind/adapters/llvm_orc/orc_memory_manager.h"
#include "jitunwind/adapters/llvm_orc/orc_object_p.h"
#include "jitunwind/adapters/llvm_orc/orc_plugin.h"

namespace jitunwind {

namespace orc = llvm::orc;

llvm::Error attach(orc::LLJIT& jit, OrcOptions options) {
  const orc::ExecutorProcessControl& process = jit.getExecutionSession().getExecutorProcessControl();
  if (!dynamic_cast<const orc::SelfExecutorProcessControl*>(&process))
    return orc_error("code of this JIT runs in another process, which has a registry of its own");
  orc::ObjectLayer& layer = jit.getObjLinkingLayer();
  if (auto* const linking = llvm::dyn_cast<orc::ObjectLinkingLayer>(&layer)) {
    linking->addPlugin(std::make_unique<OrcPlugin>(std::move(options)));
    return llvm::Error::success();
  }
  if (llvm::isa<orc::RTDyldObjectLinkingLayer>(layer))
    return orc_error(
        "this JIT links by RuntimeDyld, whose memory managers cannot be changed any more: build it with "
        "setObjectLinkingLayerCreator(jitunwind::orc_rtdyld_layer()), or one that makes an "
        "llvm::orc::ObjectLinkingLayer");
  return orc_error("the object layer of this JIT is of a kind that is not known");
}

orc::LLJITBuilderState::ObjectLinkingLayerCreator orc_rtdyld_layer(OrcOptions options) {
  const auto shared = std::make_shared<const OrcOptions>(std::move(options));
  // LLVM up to 20 passes the triple to a creator; LLVM from 21 on passes the object to a manager.
  return [shared](orc::ExecutionSession& session, const auto&...) -> llvm::Expected<std::unique_ptr<orc::ObjectLayer>> {
    return std::make_unique<orc::RTDyldObjectLinkingLayer>(
        session, [shared](const auto&...) { return std::make_unique<OrcMemoryManager>(*shared); });
  };
}

}  // namespace jitunwind
