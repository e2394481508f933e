// Code of an LLJIT is registered exactly as long as it is in memory, whatever happens to it.
#include <gtest/gtest.h>

#include <jitunwind/jitunwind.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/orc/orc_jit.h"

namespace jitunwind::test {
namespace {

namespace orc = llvm::orc;

class OrcLifetime : public EachLinker {};
JITUNWIND_EACH_LINKER(OrcLifetime);

void remove(orc::ResourceTracker& tracker) { EXPECT_EQ(llvm::toString(tracker.remove()), ""); }

TEST_P(OrcLifetime, EndsWithTheTracker) {
  OrcJit jit(GetParam());
  const auto first = jit.add(numbered(k_local_functions, 1));
  const auto second = jit.add(numbered(k_local_functions, 2));
  EXPECT_EQ(registered(), 0u);
  jit.find<Calls>("outer_1");
  EXPECT_EQ(registered(), 2u);
  jit.find<Calls>("outer_2")(names_caller, 1);
  EXPECT_EQ(innermost_jit_name, "middle_2");
  EXPECT_EQ(registered(), 4u);
  remove(*first);
  EXPECT_EQ(registered(), 2u);
  jit.find<Calls>("outer_2")(names_caller, 1);
  EXPECT_EQ(innermost_jit_name, "middle_2");
  remove(*second);
  EXPECT_EQ(registered(), 0u);
}

TEST_P(OrcLifetime, MovesWithTheTracker) {
  OrcJit jit(GetParam());
  const auto first = jit.add(numbered(k_local_functions, 1));
  const auto second = jit.add(numbered(k_local_functions, 2));
  jit.find<Calls>("outer_1");
  jit.find<Calls>("outer_2");
  first->transferTo(*second);
  EXPECT_EQ(registered(), 4u);
  jit.find<Calls>("outer_1")(names_caller, 1);
  EXPECT_EQ(innermost_jit_name, "middle_1");
  remove(*second);
  EXPECT_EQ(registered(), 0u);
}

TEST_P(OrcLifetime, DylibsHaveFunctionsOfTheSameName) {
  OrcJit jit(GetParam());
  orc::JITDylib& first = jit.dylib("first");
  orc::JITDylib& second = jit.dylib("second");
  const auto in_first = jit.add(first, k_local_functions);
  const auto in_second = jit.add(second, k_local_functions);
  EXPECT_NE(jit.find<Calls>(first, "outer"), jit.find<Calls>(second, "outer"));
  EXPECT_EQ(registered(), 4u);
  remove(*in_first);
  EXPECT_EQ(registered(), 2u);
  jit.find<Calls>(second, "outer")(names_caller, 1);
  EXPECT_EQ(innermost_jit_name, "middle");
  EXPECT_EQ(llvm::toString(second.clear()), "");
  EXPECT_EQ(registered(), 0u);
}

TEST_P(OrcLifetime, EndsWithTheJit) {
  {
    OrcJit jit(GetParam());
    jit.add(k_local_functions);
    jit.find<Calls>("outer");
    EXPECT_EQ(registered(), 2u);
  }
  EXPECT_EQ(registered(), 0u);
}

/// Returns all error messages of the session.
std::vector<std::string> messages_of(OrcJit& jit, const std::string& symbol) {
  std::vector<std::string> messages;
  jit.jit().getExecutionSession().setErrorReporter(
      [&](llvm::Error error) { messages.push_back(llvm::toString(std::move(error))); });
  EXPECT_NE(jit.failure_of(symbol), "");
  jit.jit().getExecutionSession().setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
  return messages;
}

constexpr std::string_view k_unresolved = R"(
declare i64 @missing(i64)
define i64 @outer(i64 %x) {
  %r = call i64 @missing(i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
)";

TEST_P(OrcLifetime, NothingStaysOfALinkThatFailsBehindItsAllocation) {
  OrcJit jit(GetParam());
  for (int i = 0; i < 3; ++i) {
    const auto tracker = jit.add(k_unresolved);
    (void)messages_of(jit, "outer");
    EXPECT_EQ(registered(), 0u);
    remove(*tracker);
  }
  jit.add(k_local_functions);
  EXPECT_EQ(jit.find<Calls>("outer")(names_caller, 1), 3);
}

/// Refuses code that was finalised.
struct RefusingPlugin : orc::ObjectLinkingLayer::Plugin {
  llvm::Error notifyEmitted(orc::MaterializationResponsibility&) override {
    seen = registered();
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "refused");
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override { return llvm::Error::success(); }
  void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}
  std::size_t seen = 0;
};

orc::ObjectLinkingLayer& layer_of(OrcJit& jit) {
  return llvm::cast<orc::ObjectLinkingLayer>(jit.jit().getObjLinkingLayer());
}

TEST(OrcFailures, NothingStaysOfALinkThatFailsWhenItIsDone) {
  OrcJit jit;
  const auto plugin = std::make_shared<RefusingPlugin>();
  layer_of(jit).addPlugin(plugin);
  jit.add(k_local_functions);
  const auto messages = messages_of(jit, "outer");
  EXPECT_EQ(messages, std::vector<std::string>{"refused"});
  EXPECT_EQ(plugin->seen, 2u);
  EXPECT_EQ(registered(), 0u);
}

/// An allocation action behind ours fails.
struct FailingActionPlugin : RefusingPlugin {
#if LLVM_VERSION_MAJOR < 22
  using Result = orc::shared::WrapperFunctionResult;
#else
  using Result = orc::shared::WrapperFunctionBuffer;
#endif
  static auto fail(const char*, std::size_t) { return Result::createOutOfBandError("failed").release(); }
  void modifyPassConfig(orc::MaterializationResponsibility&, llvm::jitlink::LinkGraph&,
                        llvm::jitlink::PassConfiguration& passes) override {
    passes.PostFixupPasses.push_back([](llvm::jitlink::LinkGraph& graph) {
      orc::shared::WrapperFunctionCall call(orc::ExecutorAddr::fromPtr(&fail), {});
      graph.allocActions().push_back({std::move(call), {}});
      return llvm::Error::success();
    });
  }
};

TEST(OrcFailures, NothingStaysOfALinkThatFailsWhenItIsFinalised) {
  OrcJit jit;
  layer_of(jit).addPlugin(std::make_shared<FailingActionPlugin>());
  jit.add(k_local_functions);
  EXPECT_EQ(messages_of(jit, "outer"), std::vector<std::string>{"failed"});
  EXPECT_EQ(registered(), 0u);
}

TEST(OrcLifetimes, ASecondPluginDoesNothing) {
  OrcJit jit;
  EXPECT_EQ(llvm::toString(attach(jit.jit())), "");
  jit.add(k_local_functions);
  jit.find<Calls>("outer");
  EXPECT_EQ(registered(), 2u);
}

TEST(OrcLifetimes, ThreadsCompileAtOnce) {
  OrcJit jit(Linker::jitlink, {}, [](orc::LLJITBuilder& builder) { builder.setNumCompileThreads(4); });
  constexpr int k_modules = 40;
  for (int i = 0; i < k_modules; ++i) jit.add(numbered(k_local_functions, i));
  for (int i = 0; i < k_modules; ++i) {
    EXPECT_EQ(jit.find<Calls>("outer_" + std::to_string(i))(names_caller, 1), 3);
    EXPECT_EQ(innermost_jit_name, "middle_" + std::to_string(i));
  }
  EXPECT_EQ(registered(), 2u * k_modules);
}

TEST(OrcLifetimes, CodeThatIsCompiledWhenItIsCalled) {
  orc::LLLazyJITBuilder builder;
  const auto jit = or_exit(builder.create());
  ASSERT_EQ(llvm::toString(attach(*jit)), "");
  for (const std::string_view assembly : {k_local_functions, k_lazy_caller})
    or_exit(jit->addLazyIRModule(module_of(assembly)));
  const auto lazy = or_exit(jit->lookup("lazy")).toPtr<Calls>();
  const std::size_t before = registered();
  EXPECT_THROW(lazy(throws, 1), std::runtime_error);
  EXPECT_GT(registered(), before);
  EXPECT_EQ(lazy(throws, 0), 3);
}

// There are 4 threads, each with its own dylib and 250 modules that come, run and go. A thread of RuntimeDyld may still
// be at the end of a link when the module is gone; the session then says that its tracker is defunct.
TEST_P(OrcLifetime, ThreadsAddAndRemoveAtOnce) {
  OrcJit jit(GetParam(), {}, [](orc::LLJITBuilder& builder) { builder.setSupportConcurrentCompilation(true); });
  jit.jit().getExecutionSession().setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
  const auto object = compile(k_local_functions);
  constexpr int k_modules = 250;
  std::vector<orc::JITDylib*> dylibs;
  for (int t = 0; t < 4; ++t) dylibs.push_back(&jit.dylib("thread_" + std::to_string(t)));
  std::atomic<int> thrown = 0;
  std::vector<std::thread> threads;
  for (orc::JITDylib* dylib : dylibs)
    threads.emplace_back([&, dylib] {
      for (int i = 0; i < k_modules; ++i) {
        const auto tracker = jit.add_object(*dylib, llvm::MemoryBuffer::getMemBuffer(object->getMemBufferRef(), false));
        try {
          jit.find<Calls>(*dylib, "outer")(throws, 1);
        } catch (const std::runtime_error&) {
          ++thrown;
        }
        remove(*tracker);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(thrown, 4 * k_modules);
}

}  // namespace
}  // namespace jitunwind::test
