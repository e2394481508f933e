// Walks through code of which engines say nothing but names (x86-64).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/sdk/walk.h"

namespace jitunwind::test {
namespace {

std::string said_name, said_end;
bool was_guess = false;
StopReason stopped = StopReason::none;

void (*volatile code)(void (*)()) = nullptr;
volatile int calls = 0;

void look() {
  code = nullptr;  // does not tell any more where the call went
  Walk walk = walk_here();
  for (const Frame& frame : walk) {
    if (frame.name() != "named") continue;
    said_name = frame.name();
    was_guess = frame.is_guess();
  }
  stopped = walk.stop_reason();
  said_end = walk.why();
}

/// Of a procedure that calls its argument.
constexpr std::array<unsigned char, 12> k_code{
    0x53,              // push rbx
    0x48, 0x89, 0xfb,  // mov rbx, rdi
    0x31, 0xff,        // xor edi, edi
    0xff, 0xd3,        // call rbx
    0x31, 0xdb,        // xor ebx, ebx
    0x5b,              // pop rbx
    0xc3,              // ret
};

class NamedCode : public testing::Test {
 protected:
  NamedCode() : memory_(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::memcpy(memory_, k_code.data(), k_code.size());
    ::mprotect(memory_, 4096, PROT_READ | PROT_EXEC);
    said_name = said_end = "";
  }
  ~NamedCode() override {
    say_gone(Dialect::itt, {begin(), begin() + k_code.size()});
    ::munmap(memory_, 4096);
  }
  Addr begin() const { return reinterpret_cast<std::uintptr_t>(memory_); }
  void call() const {
    code = reinterpret_cast<void (*)(void (*)())>(begin());
    code(look);
    calls = calls + 1;  // no jump in place of the call
  }

 private:
  void* memory_;
};

TEST_F(NamedCode, IsLeftByAGuessThatItsEntryConfirms) {
  say_name(Dialect::itt, {begin(), begin() + k_code.size()}, "named");
  call();
  EXPECT_EQ(said_name, "named");
  EXPECT_TRUE(was_guess);
  EXPECT_EQ(stopped, StopReason::outermost) << said_end;
}

TEST_F(NamedCode, EndsTheWalkByItsNameWhereNothingConfirmsACaller) {
  say_name(Dialect::itt, {begin() + 1, begin() + k_code.size()}, "named");  // begins behind the push
  call();
  EXPECT_EQ(said_name, "named");
  EXPECT_FALSE(was_guess);
  EXPECT_EQ(stopped, StopReason::no_info);
  EXPECT_NE(said_end.find("cannot be confirmed"), std::string::npos) << said_end;
  EXPECT_TRUE(said_end.ends_with(", in named")) << said_end;
}

}  // namespace
}  // namespace jitunwind::test
