// Reports to a debugger that is attached: registrations come together, and nothing that is gone stays.
#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/adapters/gdb_jit/gdb_jit.h"
#include "jitunwind/unwind_core/targets/tracer_internal.h"
#include "tests/debuggers/read_files.h"
#include "tests/debuggers/tracer.h"

namespace {
std::atomic<bool> g_debugger_is_slow{false};
}  // namespace

/// A debugger stops the process here (GDB manual, "JIT Compilation Interface"). Changes wait once stops have taken a
/// share of the time; stops of a fast debugger hardly do so on a busy machine.
extern "C" [[gnu::noinline, gnu::visibility("default")]] void __jit_debug_register_code() {
  if (g_debugger_is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

namespace {

using namespace debuggers_test;
using namespace jitunwind;

std::unique_ptr<Procedure> make(std::size_t i) {
  return std::make_unique<Procedure>(k_code + 64 * i, 40, "p" + std::to_string(i));
}

using Procedures = std::vector<std::unique_ptr<Procedure>>;

/// Registers procedures one by one until some wait.
void register_until_some_wait(Procedures& all) {
  g_debugger_is_slow = true;
  while (gdb_statistics().waiting == 0) {
    all.push_back(make(all.size()));
    ASSERT_TRUE(register_procedure(all.back()->info()));
  }
  g_debugger_is_slow = false;
}

Symbols registered(const Procedures& all) {
  Symbols symbols;
  for (const auto& procedure : all) {
    if (procedure != nullptr) procedure->add_to(symbols);
  }
  return symbols;
}

std::size_t threads() {
  std::size_t count = 0;
  DIR* const folder = ::opendir("/proc/self/task");
  while (const dirent* entry = ::readdir(folder)) count += entry->d_name[0] != '.' ? 1u : 0u;
  ::closedir(folder);
  return count;
}

TEST(Traced, TheTracerIsFound) {
  EXPECT_EQ(find_tracer(), TracerKind::none);
  traced_by("gdb", [] { EXPECT_EQ(find_tracer(), TracerKind::gdb); });
  traced_by("gdbserver", [] { EXPECT_EQ(find_tracer(), TracerKind::gdb); });
  traced_by("lldb-server", [] { EXPECT_EQ(find_tracer(), TracerKind::other); });
}

TEST(Traced, ManyAreHandedOnTogether) {
  for (const char* const name : {"gdb", "lldb-server"}) {
    traced_by(name, [] {
      ASSERT_TRUE(attach_gdb());
      Procedures all;
      register_until_some_wait(all);
      EXPECT_LT(gdb_statistics().procedures, all.size());
      ASSERT_TRUE(flush_gdb());
      EXPECT_EQ(gdb_statistics().waiting, 0u);
      EXPECT_EQ(debugger_reads(), registered(all));
      // The files are delivered without a request, too.
      register_until_some_wait(all);
      while (gdb_statistics().waiting != 0) ::sched_yield();
      EXPECT_EQ(debugger_reads(), registered(all));
    });
  }
}

TEST(Traced, TheFirstAfterARestIsKnownAtOnce) {
  traced_by("gdb", [] {
    ASSERT_TRUE(attach_gdb());
    Procedures all;
    register_until_some_wait(all);
    for (bool known = false; !known;) {
      while (gdb_statistics().waiting != 0) ::sched_yield();
      all.push_back(make(all.size()));
      ASSERT_TRUE(register_procedure(all.back()->info()));
      known = gdb_statistics().waiting == 0;
    }
    EXPECT_EQ(debugger_reads(), registered(all));
  });
}

/// It depends on the time that hand-overs take on this machine whether changes wait in between.
TEST(Traced, WhatIsGoneIsForgottenAtOnceAndTheRestComesBack) {
  for (const char* const name : {"gdb", "lldb-server"}) {
    traced_by(name, [] {
      ASSERT_TRUE(attach_gdb());
      Procedures all;
      for (std::size_t i = 0; i < 5000; ++i) {
        all.push_back(make(i));
        ASSERT_TRUE(register_procedure(all.back()->info()));
      }
      std::mt19937 random(5);
      for (std::size_t step = 0; step < 4000; ++step) {
        auto& procedure = all[random() % all.size()];
        if (procedure == nullptr) {
          procedure = make(static_cast<std::size_t>(&procedure - all.data()));
          ASSERT_TRUE(register_procedure(procedure->info()));
        } else {
          ASSERT_TRUE(cancel_procedure(procedure->info()));
          procedure = nullptr;
        }
        if (step % 100 != 0) continue;
        const Symbols wanted = registered(all);
        for (const auto& [at, known] : debugger_reads()) {
          const auto found = wanted.find(at);
          ASSERT_TRUE(found != wanted.end() && found->second == known) << known.name << " is gone, step " << step;
        }
      }
      ASSERT_TRUE(flush_gdb());
      EXPECT_EQ(debugger_reads(), registered(all));
      for (auto& procedure : all) {
        if (procedure == nullptr) continue;
        ASSERT_TRUE(cancel_procedure(procedure->info()));
      }
      EXPECT_EQ(debugger_reads(), Symbols());
      EXPECT_TRUE(detach_gdb());
    });
  }
}

TEST(Traced, RetiredOnesDoNotComeBack) {
  traced_by("gdb", [] {
    ASSERT_TRUE(attach_gdb());
    Procedures all;
    register_until_some_wait(all);
    ASSERT_TRUE(flush_gdb());
    register_until_some_wait(all);
    // This withdraws the others of its file, some of which are retired then.
    while (gdb_statistics().waiting < 50 && all.size() > 60) {
      ASSERT_TRUE(cancel_procedure(all.back()->info()));
      all.pop_back();
    }
    for (std::size_t i = 0; i < all.size(); i += 2) {
      unw_dyn_info_t* const one[] = {all[i]->info()};
      ASSERT_TRUE(retire_procedures(one));
    }
    Procedures left;
    for (std::size_t i = 1; i < all.size(); i += 2) left.push_back(std::move(all[i]));
    ASSERT_TRUE(flush_gdb());
    EXPECT_EQ(debugger_reads(), registered(left));
  });
}

#if defined(DEBUGGED_PLUGIN)
/// A library with its own copy of our library. The environment attaches it, and it uses this program's list.
class Plugin {
 public:
  Plugin() {
    ::setenv("JITUNWIND_ATTACH", "gdb", 1);
    handle_ = ::dlopen(DEBUGGED_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    code_ = reinterpret_cast<Code>(::dlsym(handle_, "plugin_code"));
  }
  void add_code() {
    ASSERT_NE(code_("registers", "plugin", [] {}), nullptr);
  }
  void unload() {
    ASSERT_EQ(::dlclose(handle_), 0);
    EXPECT_EQ(::dlopen(DEBUGGED_PLUGIN, RTLD_NOW | RTLD_NOLOAD), nullptr) << "it is still here: nothing was tried";
  }

 private:
  using Code = void (*(*)(const char*, const char*, void (*)()))();
  void* handle_;
  Code code_;
};

TEST(Traced, NothingOfALibraryThatGoesStays) {
  traced_by("gdb", [] {
    Plugin plugin;
    g_debugger_is_slow = true;
    while (threads() == 1) plugin.add_code();
    g_debugger_is_slow = false;
    EXPECT_NE(__jit_debug_descriptor.first_entry, nullptr);
    plugin.unload();
    EXPECT_EQ(threads(), 1u);
    EXPECT_EQ(__jit_debug_descriptor.first_entry, nullptr);
  });
}

// This runs in its own process: a copy of the library keeps its memory as long as it is loaded, and does not return it
// when it is unloaded.
TEST(Copies, ShareOneListAndSaySoOnce) {
  traced_by("gdb", [] {
    ASSERT_TRUE(attach_gdb());
    EXPECT_EQ(gdb_statistics().copies, 1u);
    const auto own = make(0);
    ASSERT_TRUE(register_procedure(own->info()));
    Plugin plugin;
    testing::internal::CaptureStderr();
    plugin.add_code();
    plugin.add_code();
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "jitunwind: JITUNWIND_ATTACH: gdb: the process has another copy of this library, with procedures of its "
              "own; debuggers are shown both\n");
    EXPECT_EQ(gdb_statistics().copies, 2u);
    EXPECT_EQ(debugger_reads().size(), 3u);
    ASSERT_TRUE(detach_gdb());
    EXPECT_EQ(debugger_reads().size(), 2u);
    ASSERT_TRUE(attach_gdb());
    EXPECT_EQ(debugger_reads().size(), 3u);
    plugin.unload();
    EXPECT_EQ(gdb_statistics().copies, 1u);
    EXPECT_EQ(debugger_reads().size(), 1u);
    ASSERT_TRUE(cancel_procedure(own->info()));
    ASSERT_TRUE(detach_gdb());
    EXPECT_EQ(__jit_debug_descriptor.first_entry, nullptr);
  });
}
#endif

}  // namespace
