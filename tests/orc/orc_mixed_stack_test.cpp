// One stack of C++, LLVM's and asmjit's code, under libgcc_s and again under our own exception runtime.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>
#include <jitunwind/jitunwind.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/orc/orc_jit.h"

namespace jitunwind::test {
namespace {

// outer(native, note, x) cleans up behind `middle`, a function of its object alone, which does behind native(x).
constexpr std::string_view k_cleaning = R"(
declare i32 @__gxx_personality_v0(...)
define internal i64 @middle(ptr %native, ptr %note, i64 %x) noinline personality ptr @__gxx_personality_v0 {
  %r = invoke i64 %native(i64 %x) to label %done unwind label %pad
done:
  ret i64 %r
pad:
  %passing = landingpad { ptr, i32 } cleanup
  call void %note(i64 1)
  resume { ptr, i32 } %passing
}
define i64 @outer(ptr %native, ptr %note, i64 %x) personality ptr @__gxx_personality_v0 {
  %r = invoke i64 @middle(ptr %native, ptr %note, i64 %x) to label %done unwind label %pad
done:
  ret i64 %r
pad:
  %passing = landingpad { ptr, i32 } cleanup
  call void %note(i64 2)
  resume { ptr, i32 } %passing
}
)";
using Outer = long (*)(Native, void (*)(long), long);

// The events in their order.
std::vector<std::string> g_log;
void note(long n) { g_log.push_back("ORC " + std::to_string(n)); }

struct Noted {
  ~Noted() { g_log.emplace_back(what); }
  const char* what;
};

enum Deed : long { walk_stack, throw_once, throw_through_catch };
std::vector<std::string> g_frames;

long deepest(long deed) {
  const Noted noted{"deepest C++"};
  if (deed != walk_stack) throw std::runtime_error("deepest");
  for (const Frame& frame : walk_here()) g_frames.push_back(frame.name());
  return 1;
}

Native g_asmjit = nullptr;
long between(long deed) {
  const Noted noted{"C++ between"};
  if (deed != throw_through_catch) return g_asmjit(deed) + 1;
  try {
    return g_asmjit(deed);
  } catch (const std::logic_error&) {
    return 0;
  } catch (std::runtime_error&) {
    g_log.emplace_back("caught between");
    throw;
  }
}

/// Makes a frame that keeps something else than a frame pointer in rbp.
Native asmjit_code(AsmjitRuntime& runtime) {
  using namespace asmjit::x86;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  a.push(rbp);
  a.mov(rbp, -1);
  a.call(asmjit::imm(&deepest));
  a.add(rax, 1);
  a.pop(rbp);
  a.ret();
  Native made = nullptr;
  EXPECT_EQ(runtime.add(&made, &code, "asmjit_code"), asmjit::kErrorOk);
  return made;
}

class OrcMixedStack : public EachLinker {
 public:
  /// Runs it in C++, in a frame with its own destructor.
  long run(Deed deed) {
    const Noted noted{"outermost C++"};
    return jit_.find<Outer>("outer")(between, note, deed);
  }

 protected:
  OrcMixedStack() : jit_(GetParam()) {
    jit_.add(k_cleaning);
    jit_.add(k_landing_pads);
    g_asmjit = asmjit_code(runtime_);
    g_log.clear();
    g_frames.clear();
    g_here = this;
  }
  static const std::vector<std::string>& undone() {
    static const std::vector<std::string> all{"deepest C++", "C++ between", "ORC 1", "ORC 2", "outermost C++"};
    return all;
  }
  static inline OrcMixedStack* g_here = nullptr;
  AsmjitRuntime runtime_;
  OrcJit jit_;
};
JITUNWIND_EACH_LINKER(OrcMixedStack);

// covers: DY46 EX14
TEST_P(OrcMixedStack, IsWalkedAndNamed) {
  EXPECT_EQ(run(walk_stack), 3);
  std::vector<std::string> code;
  for (const std::string& name : g_frames)
    if (name == "asmjit_code" || name == "middle" || name == "outer" || name == "main") code.push_back(name);
  EXPECT_EQ(code, (std::vector<std::string>{"asmjit_code", "middle", "outer", "main"}));
}

// covers: DY46 EX14
TEST_P(OrcMixedStack, IsUndoneFrameByFrame) {
  for (int round = 0; round < 3; ++round) {
    g_log.clear();
    EXPECT_THROW(run(throw_once), std::runtime_error);
    EXPECT_EQ(g_log, undone());
  }
}

TEST_P(OrcMixedStack, MayCatchInBetweenAndThrowOn) {
  EXPECT_THROW(run(throw_through_catch), std::runtime_error);
  auto log = undone();
  log.insert(log.begin() + 1, "caught between");
  EXPECT_EQ(g_log, log);
}

TEST_P(OrcMixedStack, IsUndoneUpToALandingPadThatCatches) {
  const auto catches = jit_.find<Calls>("catches");
  EXPECT_EQ(catches(between, throw_once), -1);
  EXPECT_EQ(g_log, (std::vector<std::string>{"deepest C++", "C++ between"}));
}

/// Returns the status of a forked child.
template <class Does>
int status_of_child(Does&& does) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(does() ? 7 : 8);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

TEST_P(OrcMixedStack, BelongsToParentAndChild) {
  const auto throws_as_ever = [&] {
    g_log.clear();
    try {
      run(throw_once);
    } catch (const std::runtime_error&) {
      return g_log == undone();
    }
    return false;
  };
  const auto throws_in = [&](llvm::orc::JITDylib& dylib) {
    try {
      jit_.find<Calls>(dylib, "outer")(throws, 1);
    } catch (const std::runtime_error&) {
      return true;
    }
    return false;
  };
  llvm::orc::JITDylib& inherited = jit_.dylib("inherited");
  const auto tracker = jit_.add(inherited, k_local_functions);
  ASSERT_TRUE(throws_as_ever() && throws_in(inherited));
  const std::size_t before = registered();
  const auto child_does = [&] {
    if (registered() != before || !throws_as_ever() || !throws_in(inherited)) return false;
    llvm::orc::JITDylib& own = jit_.dylib("own");
    const auto added = jit_.add(own, k_local_functions);
    if (!throws_in(own) || registered() != before + 2) return false;
    or_exit(added->remove());
    or_exit(tracker->remove());
    return registered() == before - 2 && throws_as_ever();
  };
  EXPECT_EQ(status_of_child(child_does), 7);
  EXPECT_EQ(registered(), before) << "the child has cancelled its own";
  EXPECT_TRUE(throws_as_ever() && throws_in(inherited));
  or_exit(tracker->remove());
  EXPECT_EQ(registered(), before - 2);
}

/// A library that is loaded as long as the object lives.
class Library {
 public:
  explicit Library(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << ::dlerror();
  }
  ~Library() { EXPECT_EQ(::dlclose(handle_), 0); }
  template <class Function>
  Function get(const char* name) const {
    const auto function = reinterpret_cast<Function>(::dlsym(handle_, name));
    EXPECT_NE(function, nullptr) << name;
    return function;
  }

 private:
  void* const handle_;
};

// covers: EX14
TEST_P(OrcMixedStack, HasCodeOfTwoCopiesOfThisLibrary) {
  EXPECT_EQ(run(walk_stack), 3);
  const std::size_t before = registered();
  for (int round = 0; round < 2; ++round) {
    const Library plugin(ORC_PLUGIN);
    const auto link = plugin.get<void* (*)(const char*, const char*)>("plugin_link");
    const auto registered_there = plugin.get<std::size_t (*)()>("plugin_registered");
    const auto calls = reinterpret_cast<Calls>(link(k_local_functions.data(), "outer"));
    EXPECT_EQ(calls(plugin.get<Native>("plugin_names_caller"), 1), 3);
    EXPECT_STREQ(plugin.get<const char* (*)()>("plugin_caller")(), "middle");
    EXPECT_EQ(registered_there(), 2u);
    EXPECT_EQ(registered(), before);

    const auto outer = reinterpret_cast<Outer>(link(k_cleaning.data(), "outer"));
    g_log.clear();
    // Its code, the code of this copy, and that of asmjit.
    const auto nested = [](long deed) { return g_here->run(static_cast<Deed>(deed)); };
    EXPECT_THROW(outer(nested, note, throw_once), std::runtime_error);
    auto log = undone();
    log.insert(log.end(), {"ORC 1", "ORC 2"});
    EXPECT_EQ(g_log, log);
    EXPECT_EQ(outer(nested, note, walk_stack), 3);
    EXPECT_EQ(link(nullptr, nullptr), nullptr);
    EXPECT_EQ(registered_there(), 0u);
  }
  EXPECT_EQ(registered(), before);
}

}  // namespace
}  // namespace jitunwind::test
