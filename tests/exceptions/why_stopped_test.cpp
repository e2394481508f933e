// Explanations, after the fact, of where the C++ run-time's unwinder stopped.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <vector>

#include "jitunwind/adapters/system_unwinder/system_unwinder.h"
#include "jitunwind/dyn_info/registry/derived_records_internal.h"
#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

using Kind = StoppedAt::Kind;

void* ask(void* into) {
  *static_cast<StoppedAt*>(into) = why_stopped();
  return into;
}

StoppedAt below(const JitFrame& frame) {
  StoppedAt stopped;
  frame(ask, &stopped);
  return stopped;
}

TEST(WhyStopped, NowhereWhereAllIsKnown) {
  const JitFrame frame;
  const StoppedAt stopped = below(frame);
  EXPECT_EQ(stopped.kind, Kind::nowhere) << stopped.text();
  EXPECT_GT(stopped.frame, 5u);
  EXPECT_EQ(stopped.text().find("the unwinder knows all frames up to frame "), 0u) << stopped.text();
}

TEST(WhyStopped, AtCodeThatNothingDescribes) {
  JitFrame frame;
  ASSERT_TRUE(frame.registration().cancel());
  const StoppedAt stopped = below(frame);
  EXPECT_EQ(stopped.kind, Kind::unknown_code) << stopped.text();
  EXPECT_EQ(stopped.frame, 1u);
  EXPECT_EQ(stopped.pc, frame.return_address());
  EXPECT_NE(stopped.text().find("the unwinder stops at frame 1, pc 0x"), std::string::npos);
  EXPECT_NE(stopped.text().find("nothing describes this code"), std::string::npos);
}

/// The routine ends the search, as those of runtimes do that let no foreign exception pass.
extern "C" [[gnu::visibility("default")]] int ends_every_search(...) { return 3; }  // _URC_FATAL_PHASE1_ERROR

TEST(WhyStopped, AtThePersonalityRoutineOfAnotherLanguage) {
  const JitFrame frame(reinterpret_cast<std::uintptr_t>(&ends_every_search));
  const StoppedAt stopped = below(frame);
  EXPECT_EQ(stopped.kind, Kind::other_language) << stopped.text();
  EXPECT_EQ(stopped.frame, 1u);
  EXPECT_EQ(stopped.pc, frame.return_address());
  EXPECT_EQ(stopped.routine, reinterpret_cast<std::uintptr_t>(&ends_every_search));
  EXPECT_NE(stopped.text().find("(jit_frame+0x"), std::string::npos) << stopped.text();
  EXPECT_NE(stopped.text().find(" has the personality routine "), std::string::npos) << stopped.text();
  EXPECT_EXIT(
      {
        std::set_terminate([] {
          std::fprintf(stderr, "%s\n", why_stopped().text().c_str());
          std::_Exit(3);
        });
        try {
          frame([](void*) -> void* { throw std::runtime_error("thrown by a test"); }, nullptr);
        } catch (const std::exception&) {
          std::_Exit(4);
        }
      },
      testing::ExitedWithCode(3), "jit_frame[+]0x[0-9a-f]+. has the personality routine .*ended the search");
}

/// An FDE cannot express an alias to code without rows.
TEST(WhyStopped, AtRegisteredCodeThatTheUnwinderCannotBeToldOf) {
  const JitFrame frame(JitFrame::AliasOf{16});
  const StoppedAt stopped = below(frame);
  EXPECT_EQ(stopped.kind, Kind::refused) << stopped.text();
  EXPECT_EQ(stopped.frame, 1u);
  EXPECT_EQ(stopped.reason.code, ErrorCode::no_info);
  EXPECT_NE(stopped.text().find("(jit_frame+0x12): "), std::string::npos) << stopped.text();
}

/// Takes all memory for call frame information until it is destroyed.
class EmptyPool {
 public:
  EmptyPool() {
    for (std::size_t bytes = DerivedRecords::k_max_bytes; bytes >= 8; bytes /= 2)
      while (DerivedRecord* const record = allocate_derived(bytes)) taken_.push_back(record);
  }
  ~EmptyPool() {
    for (DerivedRecord* const record : taken_) give_back_derived(record);
  }
  EmptyPool(const EmptyPool&) = delete;
  EmptyPool& operator=(const EmptyPool&) = delete;

 private:
  std::vector<DerivedRecord*> taken_;
};

/// The routine is never called. A procedure that has it does not share its FDE.
const auto k_personality = reinterpret_cast<std::uintptr_t>(&ask);

/// Code that has an FDE keeps it, as does code with the same description; other new code gets none without memory.
TEST(WhyStopped, AtNewCodeWhenThePoolIsEmpty) {
  const JitFrame known;
  EXPECT_EQ(below(known).kind, Kind::nowhere);
  const JitFrame alike, fresh(k_personality);
  const std::uint64_t refused = system_unwinder_status().refused;
  {
    const EmptyPool empty;
    EXPECT_EQ(below(known).kind, Kind::nowhere);
    EXPECT_EQ(below(alike).kind, Kind::nowhere);
    const StoppedAt stopped = below(fresh);
    EXPECT_EQ(stopped.kind, Kind::refused) << stopped.text();
    EXPECT_EQ(stopped.frame, 1u);
    EXPECT_EQ(stopped.reason.code, ErrorCode::out_of_memory);
    const SystemUnwinderStatus status = system_unwinder_status();
    EXPECT_GT(status.refused, refused);
    EXPECT_EQ(status.latest_refusal.code, ErrorCode::out_of_memory);
    EXPECT_EQ(status.latest_refusal.at, fresh.return_address() - 1);
    EXPECT_STREQ(status.latest_refusal.what, "no memory for call frame information");
  }
  EXPECT_EQ(below(fresh).kind, Kind::other_language);
}

TEST(WhyStoppedDeathTest, ThrowsEndWhereThePoolIsEmpty) {
  const JitFrame fresh(k_personality);
  const auto throw_below = [&] {
    const EmptyPool empty;
    std::set_terminate([] {
      std::fprintf(stderr, "refused: %s", system_unwinder_status().latest_refusal.what);
      std::_Exit(3);
    });
    try {
      fresh([](void*) -> void* { throw 1; }, nullptr);
    } catch (int) {
    }
  };
  EXPECT_EXIT(throw_below(), testing::ExitedWithCode(3), "refused: no memory for call frame information");
}

/// The description finds the caller's SP through rbx, which the frame has set to 0.
TEST(WhyStopped, AtFramesWhoseCallerCannotBeFound) {
  const JitFrame frame("cfa=rbx+16 ra=[cfa-8]");
  const StoppedAt stopped = below(frame);
  EXPECT_EQ(stopped.kind, Kind::broken) << stopped.text();
  EXPECT_EQ(stopped.frame, 1u);
  EXPECT_EQ(stopped.reason.code, ErrorCode::unreadable_memory);
}

/// The stack is still that of the throw.
TEST(WhyStopped, IsToldInATerminateHandler) {
  EXPECT_EXIT(
      {
        std::set_terminate([] {
          std::fprintf(stderr, "%s\n", why_stopped().text().c_str());
          std::_Exit(3);
        });
        JitFrame frame;
        (void)frame.registration().cancel();
        try {
          frame([](void*) -> void* { throw std::runtime_error("thrown by a test"); }, nullptr);
        } catch (const std::exception&) {
          std::_Exit(4);
        }
      },
      testing::ExitedWithCode(3), "the unwinder stops at frame [3-7], pc 0x[0-9a-f]+ .*nothing describes this code");
}

}  // namespace
}  // namespace jitunwind::test
