// The memory manager in an MCJIT, which uses one manager for all its modules.
#include <gtest/gtest.h>

#include <jitunwind/llvm_orc.h>
#include <llvm/ExecutionEngine/MCJIT.h>
#include <llvm/IR/Module.h>

#include <stdexcept>

#include "tests/orc/orc_jit.h"

namespace jitunwind::test {
namespace {

TEST(OrcMcjit, ModulesThatAreFinalisedTogetherKeepTheirRows) {
  {
    llvm::LLVMContext context;
    std::unique_ptr<llvm::ExecutionEngine> engine(llvm::EngineBuilder(parse("", context))
                                                      .setEngineKind(llvm::EngineKind::JIT)
                                                      .setMCJITMemoryManager(std::make_unique<OrcMemoryManager>())
                                                      .create());
    ASSERT_NE(engine, nullptr);
    for (const int number : {1, 2}) engine->addModule(parse(numbered(k_local_functions, number), context));
    engine->addModule(parse(k_landing_pads, context));
    engine->finalizeObject();
    EXPECT_EQ(registered(), 6u);
    const auto find = [&](const char* name) { return reinterpret_cast<Calls>(engine->getFunctionAddress(name)); };
    for (const int number : {1, 2}) {
      const auto outer = find(number == 1 ? "outer_1" : "outer_2");
      EXPECT_EQ(outer(names_caller, 1), 3);
      EXPECT_EQ(innermost_jit_name, "middle_" + std::to_string(number));
      EXPECT_THROW(outer(throws, 1), std::runtime_error);
    }
    EXPECT_EQ(find("catches")(throws, 1), -1);
    engine->addModule(parse(numbered(k_local_functions, 3), context));
    engine->finalizeObject();
    EXPECT_EQ(registered(), 8u);
    EXPECT_THROW(find("outer_3")(throws, 1), std::runtime_error);
  }
  EXPECT_EQ(registered(), 0u);
}

}  // namespace
}  // namespace jitunwind::test
