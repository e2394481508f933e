// Tests what a red test prints for compared values. The printers are in the headers that all tests have precompiled, so
// this file includes none.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "jitunwind/sdk/target.h"
#include "jitunwind/unwind_core/rows/frame_row.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind::test {
namespace {

using testing::PrintToString;

TEST(Printers, SayWhatTheLibrarySays) {
  EXPECT_EQ(PrintToString(RowOrigin::followed_code), "followed_code");
  EXPECT_EQ(PrintToString(ErrorCode::truncated), "truncated");
  EXPECT_EQ(PrintToString(StopReason::no_info), "no_info");
  EXPECT_EQ(PrintToString(std::vector{RowOrigin::leaf, RowOrigin::eh_frame}), "{ leaf, eh_frame }");
  EXPECT_EQ(PrintToString(AddrRange{0x1000, 0x10ff}), "[0x1000, 0x10ff)");
  EXPECT_EQ(PrintToString(CfaRule::at(7, 16)), "cfa=r7+16");
  EXPECT_EQ(PrintToString(RegRule{}), "unspecified");
  EXPECT_EQ(PrintToString(RegRule::at_cfa(-16)), "[cfa-16]");
  EXPECT_EQ(PrintToString(RegRule::in_reg(3)), "r3");
}

TEST(Printers, SayWhyThereIsNoResult) {
  const Error error{ErrorCode::truncated, 0x30, "CIE"};
  EXPECT_EQ(PrintToString(error), error.text());
  EXPECT_EQ(PrintToString(Result<RowOrigin>(RowOrigin::leaf)), "leaf");
  EXPECT_EQ(PrintToString(Result<RowOrigin>(error)), "error: " + error.text());
  EXPECT_EQ(PrintToString(Status(Done{})), "done");
  const TargetError no_process{TargetError::Reason::no_process, "There is no process 7.", ""};
  EXPECT_EQ(PrintToString(no_process), "There is no process 7.");
}

TEST(Printers, NumberWhatHasNoName) {
  EXPECT_EQ(PrintToString(RegRule::Kind::same), "jitunwind::RegRule::Kind 2");
  EXPECT_EQ(PrintToString(TargetError::Reason::zombie), "jitunwind::TargetError::Reason 1");
}

TEST(Printers, AreThoseOfARedTest) {
  EXPECT_NONFATAL_FAILURE(EXPECT_EQ(RowOrigin::leaf, RowOrigin::bad_call), "Which is: bad_call");
  EXPECT_NONFATAL_FAILURE(EXPECT_EQ((AddrRange{1, 2}), (AddrRange{1, 3})), "Which is: [0x1, 0x3)");
  EXPECT_NONFATAL_FAILURE(EXPECT_EQ(RegRule::same(), RegRule::undefined()), "Which is: undefined");
}

}  // namespace
}  // namespace jitunwind::test
