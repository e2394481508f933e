// Errors of attach() when it cannot do what is asked.
#include <gtest/gtest.h>

#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/RTDyldObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>

#include "tests/orc/orc_jit.h"

namespace jitunwind::test {
namespace {

namespace orc = llvm::orc;

std::string attach_to(orc::LLJITBuilder& builder) {
  const auto jit = or_exit(builder.create());
  return llvm::toString(attach(*jit));
}

TEST(OrcAttach, SaysWhatToDoAboutRuntimeDyld) {
  orc::LLJITBuilder builder;
  builder.setObjectLinkingLayerCreator(
      [](orc::ExecutionSession& session, const auto&...) -> llvm::Expected<std::unique_ptr<orc::ObjectLayer>> {
        return std::make_unique<orc::RTDyldObjectLinkingLayer>(
            session, [](const auto&...) { return std::make_unique<llvm::SectionMemoryManager>(); });
      });
  EXPECT_EQ(attach_to(builder),
            "jitunwind: this JIT links by RuntimeDyld, whose memory managers cannot be changed any more: build it with "
            "setObjectLinkingLayerCreator(jitunwind::orc_rtdyld_layer()), or one that makes an "
            "llvm::orc::ObjectLinkingLayer");
}

TEST(OrcAttach, IsFineWithTheDefaults) {
  orc::LLJITBuilder builder;
  EXPECT_EQ(attach_to(builder), "");
}

}  // namespace
}  // namespace jitunwind::test
