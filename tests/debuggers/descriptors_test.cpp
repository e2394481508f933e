// All descriptors of the process have the same files, including those of libraries that come and go.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/adapters/gdb_jit/gdb_jit.h"
#include "tests/debuggers/descriptor.h"
#include "tests/debuggers/read_files.h"
#include "tests/debuggers/tracer.h"

namespace {
std::atomic<unsigned> g_program_told{0}, g_library_told{0};
}  // namespace

void other_descriptor_told() { ++g_library_told; }

extern "C" [[gnu::noinline, gnu::visibility("default")]] void __jit_debug_register_code() { ++g_program_told; }

namespace {

using namespace debuggers_test;
using namespace jitunwind;

/// A library with a descriptor that our calls do not refer to.
class Library {
 public:
  explicit Library(const char* path) : path_(path), handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    g_library_told = 0;
    descriptor_ = reinterpret_cast<decltype(&other_descriptor)>(::dlsym(handle_, "other_descriptor"))();
  }
  ~Library() {
    EXPECT_EQ(::dlclose(handle_), 0);
    EXPECT_EQ(::dlopen(path_, RTLD_NOW | RTLD_NOLOAD), nullptr) << "it is still here: nothing was tried";
  }
  jit_descriptor& descriptor() const { return *descriptor_; }

 private:
  const char* path_;
  void* handle_;
  jit_descriptor* descriptor_;
};

class Descriptors : public testing::TestWithParam<const char*> {
 protected:
  Descriptors() { EXPECT_TRUE(attach_gdb()); }
  ~Descriptors() override {
    EXPECT_TRUE(detach_gdb());
    EXPECT_EQ(__jit_debug_descriptor.first_entry, nullptr);
  }
};
INSTANTIATE_TEST_SUITE_P(All, Descriptors, testing::Values(LIBRARY_WITH_DESCRIPTOR, LIBRARY_WITH_HIDDEN_DESCRIPTOR));

TEST_P(Descriptors, OfLibrariesThatComeAndGoHaveTheSame) {
  Procedure early(k_code, 16, "early");
  ASSERT_TRUE(register_procedure(early.info()));
  // The library is mostly loaded at the same place each time.
  for (int i = 0; i < 3; ++i) {
    const Library library(GetParam());
    Procedure late(k_code + 16, 16, "late");
    ASSERT_TRUE(register_procedure(late.info()));
    Symbols wanted;
    early.add_to(wanted);
    late.add_to(wanted);
    EXPECT_EQ(debugger_reads(library.descriptor()), wanted);
    EXPECT_EQ(debugger_reads(), wanted);
    ASSERT_TRUE(cancel_procedure(late.info()));
    wanted.erase(k_code + 16);
    EXPECT_EQ(debugger_reads(library.descriptor()), wanted);
    ASSERT_TRUE(detach_gdb());
    EXPECT_EQ(library.descriptor().first_entry, nullptr);
    ASSERT_TRUE(attach_gdb());
    EXPECT_EQ(debugger_reads(library.descriptor()), wanted);
  }
  Procedure after(k_code + 16, 16, "after");
  ASSERT_TRUE(register_procedure(after.info()));
  EXPECT_EQ(debugger_reads().size(), 2u);
  ASSERT_TRUE(cancel_procedure(after.info()));
  ASSERT_TRUE(cancel_procedure(early.info()));
}

TEST_P(Descriptors, KeepWhatOthersHaveThere) {
  const Library library(GetParam());
  jit_descriptor& theirs = library.descriptor();
  const std::byte file{};
  jit_code_entry old{nullptr, nullptr, &file, 1};
  theirs.first_entry = &old;
  Procedure procedure(k_code, 16, "f");
  ASSERT_TRUE(register_procedure(procedure.info()));
  ASSERT_NE(old.next_entry, nullptr);
  jit_code_entry fresh{&old, nullptr, &file, 1};
  old.prev_entry = theirs.first_entry = &fresh;
  ASSERT_TRUE(cancel_procedure(procedure.info()));
  // LLVM removes an entry in this way.
  fresh.next_entry = old.next_entry;
  old.next_entry->prev_entry = &fresh;
  ASSERT_TRUE(detach_gdb());
  EXPECT_EQ(theirs.first_entry, &fresh);
  EXPECT_EQ(fresh.next_entry, nullptr);
  theirs.first_entry = nullptr;
}

/// The debugger would take one file for two. It reads one descriptor, and nobody knows which.
TEST_P(Descriptors, GdbIsToldOnce) {
  for (const char* const name : {"gdb", "lldb-server"}) {
    traced_by(name, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the tracer is looked for every 10 ms
      const Library library(GetParam());
      Procedure procedure(k_code, 16, "f");
      const unsigned program_told = g_program_told;
      ASSERT_TRUE(register_procedure(procedure.info()));
      EXPECT_EQ(g_program_told - program_told, 1u);
      EXPECT_EQ(g_library_told, std::string(name) == "gdb" ? 0u : 1u);
      ASSERT_TRUE(cancel_procedure(procedure.info()));
      EXPECT_EQ(g_program_told - program_told, 2u);
      EXPECT_EQ(g_library_told, std::string(name) == "gdb" ? 0u : 2u);
    });
  }
}

TEST_P(Descriptors, MayGoWhileOthersRegister) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (Addr t = 0; t < 2; ++t) {
    threads.emplace_back([&stop, t] {
      while (!stop) {
        Procedure procedure(k_code + 64 * t, 32, "t");
        if (!register_procedure(procedure.info()) || !cancel_procedure(procedure.info())) std::abort();
      }
    });
  }
  unsigned told = 0;
  for (int i = 0; told < 200; ++i) {
    const Library library(GetParam());
    for (int n = 0; n < i % 10; ++n) std::this_thread::yield();
    told += g_library_told != 0 ? 1u : 0u;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

/// fork waits for registering threads, and they wait for the lock of the list of objects, which fork takes as well.
/// They must not wait for each other. This runs in its own process.
TEST(Fork, IsNotHeldUp) {
  const Library library(LIBRARY_WITH_DESCRIPTOR);
  Procedure first(k_code + 128, 32, "before debuggers");
  ASSERT_TRUE(register_procedure(first.info()));
  ASSERT_TRUE(attach_gdb());
  std::atomic<bool> stop{false};
  std::thread registers([&stop] {
    while (!stop) {
      Procedure procedure(k_code + 64, 32, "t");
      if (!register_procedure(procedure.info()) || !cancel_procedure(procedure.info())) std::abort();
    }
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      Procedure procedure(k_code, 32, "child");
      const bool right = register_procedure(procedure.info()) && cancel_procedure(procedure.info()) && detach_gdb();
      ::_exit(right && library.descriptor().first_entry == nullptr ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  registers.join();
  ASSERT_TRUE(detach_gdb());
  ASSERT_TRUE(cancel_procedure(first.info()));
}

}  // namespace
