// The system's unwinder is not told of code that it asks this library about.
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <jitunwind/system_unwinder.h>
#include <llvm/Config/llvm-config.h>
#if LLVM_VERSION_MAJOR < 21
#include <llvm/ExecutionEngine/Orc/EPCEHFrameRegistrar.h>
#else
#include <llvm/ExecutionEngine/Orc/EHFrameRegistrationPlugin.h>
#endif

#include <atomic>
#include <stdexcept>

#include "tests/orc/orc_jit.h"

namespace {
std::atomic<int> g_told{0};
std::atomic<int> g_untold{0};

void go_on(const char* name, void* section) { reinterpret_cast<void (*)(void*)>(::dlsym(RTLD_NEXT, name))(section); }
}  // namespace

extern "C" [[gnu::visibility("default")]] void __register_frame(void* section) {
  ++g_told;
  go_on("__register_frame", section);
}
extern "C" [[gnu::visibility("default")]] void __deregister_frame(void* section) {
  ++g_untold;
  go_on("__deregister_frame", section);
}

namespace jitunwind::test {
namespace {

namespace orc = llvm::orc;

TEST(OrcToldOnce, LlvmTellsTheSystemsUnwinderIfNobodyIsAttached) {
  const auto jit = or_exit(orc::LLJITBuilder().create());
  or_exit(jit->addIRModule(module_of(k_local_functions)));
  const auto outer = or_exit(jit->lookup("outer")).toPtr<Calls>();
  EXPECT_EQ(g_told.exchange(0), 1);
  EXPECT_THROW(outer(throws, 1), std::runtime_error);
}

TEST(OrcToldOnce, NobodyDoesIfOneIs) {
  for (const Linker linker : {Linker::jitlink, Linker::rtdyld}) {
    ASSERT_EQ(system_unwinder_status().path, SystemUnwinderPath::interposed);
    g_told = g_untold = 0;
    {
      OrcJit jit(linker);
      jit.add(k_local_functions);
      jit.add(k_landing_pads);
      EXPECT_THROW(jit.find<Calls>("outer")(throws, 1), std::runtime_error);
      EXPECT_EQ(jit.find<Calls>("catches")(throws, 1), -1);
    }
    EXPECT_EQ(g_told, 0);
    EXPECT_EQ(g_untold, 0);
  }
}

std::unique_ptr<orc::EHFrameRegistrationPlugin> registration(orc::ExecutionSession& session) {
#if LLVM_VERSION_MAJOR < 21
  return std::make_unique<orc::EHFrameRegistrationPlugin>(session, or_exit(orc::EPCEHFrameRegistrar::Create(session)));
#else
  return or_exit(orc::EHFrameRegistrationPlugin::Create(session));
#endif
}

TEST(OrcToldOnce, PluginsBehindOursSeeEhFrame) {
  OrcJit jit;
  auto& layer = llvm::cast<orc::ObjectLinkingLayer>(jit.jit().getObjLinkingLayer());
  layer.addPlugin(registration(jit.jit().getExecutionSession()));
  g_told = 0;
  jit.add(k_local_functions);
  EXPECT_NE(jit.find<Calls>("outer"), nullptr);
  EXPECT_EQ(g_told, 1);
}

}  // namespace
}  // namespace jitunwind::test
