// What an engine calls of the agent of Intel's interface.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "jitunwind/adapters/listen/listen.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/method_load.h"

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

}  // namespace
}  // namespace jitunwind::test
