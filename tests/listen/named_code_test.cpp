// Walks through code for which engines report only names, or nothing any more.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/sources/guesses/taken_back_internal.h"
#include "tests/builders/placed_eh_frame.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/frame_functions.h"

namespace jitunwind::test {
namespace {

std::string said_name, said_end;
bool was_guess = false;
int guesses = 0;
StopReason stopped = StopReason::none;

void (*volatile code)(void (*)()) = nullptr;
volatile int calls = 0;

void look() {
  code = nullptr;  // does not tell any more where the call went
  Walk walk = walk_here();
  for (const Frame& frame : walk) {
    guesses += frame.is_guess() ? 1 : 0;
    if (frame.name() != "named") continue;
    said_name = frame.name();
    was_guess = frame.is_guess();
  }
  stopped = walk.stop_reason();
  said_end = walk.why();
}

constexpr const auto& k_shape = ToldFrameCode::k_forgetful;

class NamedCode : public testing::Test {
 protected:
  NamedCode() : memory_(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::memcpy(memory_, k_shape.data(), k_shape.size());
    __builtin___clear_cache(static_cast<char*>(memory_), static_cast<char*>(memory_) + k_shape.size());
    ::mprotect(memory_, 4096, PROT_READ | PROT_EXEC);
    said_name = said_end = "";
    guesses = 0;
  }
  ~NamedCode() override {
    say_gone(Dialect::itt, {begin(), begin() + k_shape.size()});
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
  say_name(Dialect::itt, {begin(), begin() + k_shape.size()}, "named");
  call();
  EXPECT_EQ(said_name, "named");
  EXPECT_TRUE(was_guess);
  EXPECT_EQ(stopped, StopReason::outermost) << said_end;
}

TEST_F(NamedCode, EndsTheWalkByItsNameWhereNothingConfirmsACaller) {
  say_name(Dialect::itt, {begin() + ToldFrameCode::k_prologue_size, begin() + k_shape.size()}, "named");
  call();
  EXPECT_EQ(said_name, "named");
  EXPECT_FALSE(was_guess);
  EXPECT_EQ(stopped, StopReason::no_info);
  EXPECT_NE(said_end.find("cannot be confirmed"), std::string::npos) << said_end;
  EXPECT_TRUE(said_end.ends_with(", in named")) << said_end;
}

/// llvmpipe takes the description of code back while the code still runs.
// covers: LS13
TEST_F(NamedCode, ThatWasToldOfAndTakenBackIsLeftByAGuess) {
  {
    EhFrame frames;
    frames.fde(begin(), k_shape.size());
    frames.section.terminator();
    const auto* const told = reinterpret_cast<const void*>(frames.placed().begin);
    __register_frame(told);
    __deregister_frame(told);
  }
  EXPECT_EQ(RegisteredCode().row_at(begin() + 4), "no row");
  call();
  EXPECT_EQ(guesses, 1);
  EXPECT_EQ(stopped, StopReason::outermost) << said_end;
}

/// Other code begins there by now: the path from its entry does not lead to the caller that the path to its return
/// finds.
TEST_F(NamedCode, ThatWasTakenBackIsNotLeftByAGuessWhereItIsOther) {
  EhFrame frames;
  frames.fde(begin() + ToldFrameCode::k_prologue_size, k_shape.size() - ToldFrameCode::k_prologue_size);
  frames.section.terminator();
  const auto* const told = reinterpret_cast<const void*>(frames.placed().begin);
  __register_frame(told);
  __deregister_frame(told);
  call();
  EXPECT_EQ(guesses, 0);
  EXPECT_EQ(stopped, StopReason::no_info);
}

TEST(TakenBack, IsKnownByTheLatestThousandAlone) {
  constexpr Addr k_at = 0x6'0000'0000;
  keep_taken_back({k_at, k_at + 16});
  keep_taken_back({k_at + 8, k_at + 32});
  EXPECT_EQ(begin_of_taken_back(k_at + 7), k_at);
  EXPECT_EQ(begin_of_taken_back(k_at + 8), k_at + 8) << "the latest";
  EXPECT_EQ(begin_of_taken_back(k_at + 32), std::nullopt);
  for (Addr i = 1; i <= k_taken_back_known; ++i) keep_taken_back({k_at + 64 * i, k_at + 64 * i + 1});
  EXPECT_EQ(begin_of_taken_back(k_at + 7), std::nullopt);
  EXPECT_EQ(begin_of_taken_back(k_at + 64), k_at + 64);
}

}  // namespace
}  // namespace jitunwind::test
