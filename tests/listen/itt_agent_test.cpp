// Functions of the agent of Intel's interface that an engine calls.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "jitunwind/adapters/listen/listen.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/method_load.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/failing_memory.h"

extern "C" unsigned Initialize();
extern "C" int NotifyEvent(int event, void* data);

namespace jitunwind::test {
namespace {

constexpr int k_loaded = 13, k_unload_starts = 14;

std::string line_at(Addr at) {
  const auto found = heard_line(at);
  return found ? found->file + ":" + std::to_string(found->line) : "none";
}

// covers: LS06
TEST(IttAgent, NamesCodeUntilItIsUnloaded) {
  const RegisteredCode code;
  const std::uint32_t lines[] = {8, 3, 32, 4};
  MethodLoad first, second;
  first.line_count = 2;
  first.lines = lines;
  second.method = 8;
  second.name = "other";
  second.address = 0x2000;
  EXPECT_EQ(Initialize(), 1u);
  EXPECT_EQ(NotifyEvent(k_loaded, &first), 1) << "go on telling";
  EXPECT_EQ(NotifyEvent(k_loaded, &second), 1);
  EXPECT_EQ(code.name_at(0x1004), "jitted");
  EXPECT_EQ(line_at(0x1004), "a.cc:3");
  EXPECT_EQ(line_at(0x1008), "a.cc:4");
  EXPECT_EQ(code.name_at(0x2004), "other");
  std::uint32_t unknown = 9;
  EXPECT_EQ(NotifyEvent(k_unload_starts, &unknown), 1);
  EXPECT_EQ(NotifyEvent(k_unload_starts, &first.method), 1);
  EXPECT_EQ(code.name_at(0x1004), "");
  EXPECT_EQ(line_at(0x1004), "none");
  EXPECT_EQ(code.name_at(0x2004), "other");
  EXPECT_EQ(NotifyEvent(k_unload_starts, &second.method), 1);
  EXPECT_EQ(listen_status().names, 0u);
}

/// Engines compile in threads of their own, and servers fork meanwhile.
// covers: LS12
TEST(IttAgent, HearsOfManyThreadsAndInForkedChildren) {
  std::atomic<bool> stop{false};
  const auto tell = [](std::uint32_t method) {
    MethodLoad load;
    load.method = method;
    load.address = 0x5'0000'0000 + 0x40 * (method % 512);
    EXPECT_EQ(NotifyEvent(k_loaded, &load), 1);
  };
  AllocatingThreads allocating(1);
  std::thread thread([&] { allocating.run_until(stop, [&, method = 0u]() mutable { tell(method++); }); });
  int status = 0;
  for (int i = 0; i < 60 && status == 0; ++i) {
    const pid_t child = allocating.fork();
    if (child == 0) {
      ::alarm(60);
      for (std::uint32_t method = 0; method < 10; ++method) tell(method);
      ::_exit(RegisteredCode().name_at(0x5'0000'0004) == "jitted" ? 0 : 1);
    }
    EXPECT_EQ(::waitpid(child, &status, 0), child);
  }
  EXPECT_EQ(status, 0);
  stop = true;
  thread.join();
  say_gone(Dialect::itt, {0x5'0000'0000, 0x5'0001'0000});
  EXPECT_EQ(listen_status().names, 0u);
}

/// Engines may be written in languages without exceptions.
TEST(IttAgent, ThrowsNothingWhereThereIsNoMemory) {
  MethodLoad load;
  const std::string name(100, 'n');
  load.name = name.c_str();
  const auto refused = listen_status().refused;
  {
    const NoMemory no_memory;
    EXPECT_EQ(NotifyEvent(k_loaded, &load), 1);
    EXPECT_EQ(NotifyEvent(k_unload_starts, &load.method), 1);
  }
  EXPECT_EQ(listen_status().refused, refused + 1);
  EXPECT_EQ(listen_status().latest_refusal.code, ErrorCode::out_of_memory);
  EXPECT_EQ(listen_status().names, 0u);
}

}  // namespace
}  // namespace jitunwind::test
