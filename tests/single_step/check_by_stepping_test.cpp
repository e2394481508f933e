// The public check of descriptions: it passes right ones, and notices each kind of wrong one and of misuse.
#include <jitunwind/c_testing.h>
#include <jitunwind/jitunwind.h>
#include <jitunwind/testing.h>

#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <vector>

#include "tests/exceptions/jit_frames.h"

namespace jitunwind::test {
namespace {

using namespace x86_64;
using Bytes = std::vector<std::uint8_t>;

class Code {
 public:
  explicit Code(const Bytes& bytes) : copy_(bytes) {}

  template <class... Arguments>
  long call(Arguments... arguments) const {
    return reinterpret_cast<long (*)(Arguments...)>(copy_.begin())(arguments...);
  }
  Registration registered(const Description& description) const {
    auto made = register_code(description, copy_.begin(), copy_.size());
    EXPECT_TRUE(made) << made.error().what;
    return std::move(*made);
  }
  Addr at(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(copy_.begin()) + offset; }

 private:
  ExecutableCopy copy_;
};

void callee() {}

// push rbx; mov rbx,rsi; call rdi; lea rax,[rbx+rbx]; pop rbx; ret
const Bytes k_doubled{0x53, 0x48, 0x89, 0xf3, 0xff, 0xd7, 0x48, 0x8d, 0x04, 0x1b, 0x5b, 0xc3};
int run_doubled(const Code& code) { return code.call(&callee, 21L) == 42 ? 0 : 1; }

Description of_doubled() { return *describe("doubled").push({0, 1}, rbx).pop({10, 11}, rbx).build(); }

TEST(CheckByStepping, PassesWhatIsRight) {
  const Code code(k_doubled);
  const Registration registration = code.registered(of_doubled());
  const auto report = check_by_stepping(registration, [&] { return run_doubled(code); });
  EXPECT_TRUE(report) << report.text();
  EXPECT_EQ(report.activations, 1u);
  EXPECT_EQ(report.instructions, 6u);
  EXPECT_EQ(report.calls, 1u);
  EXPECT_TRUE(report.not_run.empty());
  EXPECT_EQ(report.text(), "6 instructions and 1 calls of 1 activations compared, 0 wrong, 0 instructions never run\n");
}

TEST(CheckByStepping, NamesTheInstructionWhoseRowIsWrong) {
  const Code code(k_doubled);
  // The pop is described one instruction too early.
  const Registration registration = code.registered(*describe("doubled").push({0, 1}, rbx).pop({6, 10}, rbx).build());
  const auto report = check_by_stepping(registration, [&] { return run_doubled(code); });
  EXPECT_FALSE(report);
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.wrong, 1u);
  EXPECT_NE(report.mismatches.find("registered doubled+0xa  5b  pop rbx"), std::string::npos) << report.mismatches;
  EXPECT_NE(report.mismatches.find("row cfa=rsp+8 ra=[cfa-8]"), std::string::npos) << report.mismatches;
}

TEST(CheckByStepping, TellsWhatNeverRan) {
  // test rdi,rdi; je +1; nop; ret
  const Code code({0x48, 0x85, 0xff, 0x74, 0x01, 0x90, 0xc3});
  const Registration registration = code.registered(*describe("branch").build());
  const auto report = check_by_stepping(registration, [&] { return code.call(0L), 0; });
  EXPECT_TRUE(report) << report.text();
  EXPECT_EQ(report.not_run, std::vector<Addr>{code.at(5)});
}

TEST(CheckByStepping, TellsAFaultOfTheCode) {
  // mov rbx,1; ret: the caller's rbx is lost, which no row could say otherwise.
  const Code code({0x48, 0xc7, 0xc3, 1, 0, 0, 0, 0xc3});
  const Registration registration = code.registered(*describe("careless").build());
  const auto report = check_by_stepping(registration, [&] { return code.call(), 0; });
  EXPECT_FALSE(report);
  EXPECT_NE(report.failure.find("with rbx changed"), std::string::npos) << report.text();
}

TEST(CheckByStepping, TellsWhyARunCouldNotBeJudged) {
  const Code code(k_doubled);
  const Registration registration = code.registered(of_doubled());
  const auto failure_of = [&](const std::function<int()>& run, std::uint64_t most = 100'000) {
    const auto report = check_by_stepping(registration, run, most);
    EXPECT_FALSE(report);
    return report.failure;
  };
  EXPECT_EQ(failure_of([&] { return run_doubled(code), 3; }), "child exited with status 3");
  EXPECT_NE(failure_of([] { return ::raise(SIGKILL); }).find("killed by Killed"), std::string::npos);
  const auto endless = []() -> int {
    for (;;) (void)::getppid();
  };
  EXPECT_EQ(failure_of(endless, 1000), "child is not done after 1000 instructions");
  EXPECT_FALSE(check_by_stepping(registration, [] { return 0; })) << "the code was never called";
  EXPECT_EQ(check_by_stepping(Registration(), [] { return 0; }).failure, "an empty range: nothing is registered there");
  EXPECT_EQ(check_by_stepping(std::span<const AddrRange>(), [] { return 0; }).failure, "no code");
}

TEST(CheckByStepping, JudgesProceduresThatCallEachOther) {
  const Code inner(k_doubled);
  const Code outer({0x50, 0xff, 0xd2, 0x59, 0xc3});  // push rax; call rdx; pop rcx; ret
  const Registration of_inner = inner.registered(of_doubled());
  const Registration of_outer = outer.registered(*describe("outer").allocate({0, 1}, 8).deallocate({3, 4}, 8).build());
  const std::array ranges{of_inner.range(), of_outer.range()};
  const auto report = check_by_stepping(ranges, [&] { return outer.call(&callee, 21L, inner.at(0)) == 42 ? 0 : 1; });
  EXPECT_TRUE(report) << report.text();
  EXPECT_EQ(report.activations, 2u);
  EXPECT_EQ(report.instructions, 10u);
}

// push rbx; sub rsp,32; mov rbx,rdx; jmp rsi; add rsp,32; pop rbx; ret
const Bytes k_interpreter{0x53, 0x48, 0x83, 0xec, 0x20, 0x48, 0x89, 0xd3,
                          0xff, 0xe6, 0x48, 0x83, 0xc4, 0x20, 0x5b, 0xc3};
constexpr std::size_t k_interpreter_exit = 10;
// push 0; pop rcx; call rdi; jmp rbx: code without a prologue, in the interpreter's frame
const Bytes k_trace{0x6a, 0x00, 0x59, 0xff, 0xd7, 0xff, 0xe3};
constexpr const char* k_frame_of_interpreter = "cfa=rsp+48 rbx=[cfa-16] ra=[cfa-8]";

TEST(CheckByStepping, TakesTheFrameOfCodeThatIsJumpedToFromItsFirstRow) {
  const Code interpreter(k_interpreter), trace(k_trace);
  const Registration registration = trace.registered(
      *describe("trace").entry_state(k_frame_of_interpreter).push({0, 2}).pop({2, 3}).ends_without_return().build());
  const auto report = check_by_stepping(registration, [&] {
    for (int i = 0; i < 2; ++i) interpreter.call(&callee, trace.at(0), interpreter.at(k_interpreter_exit));
    return 0;
  });
  EXPECT_TRUE(report) << report.text();
  EXPECT_EQ(report.activations, 2u);
  EXPECT_EQ(report.by_entry_row, 2u);
  EXPECT_EQ(report.instructions, 8u);
  EXPECT_EQ(report.calls, 2u);
  EXPECT_NE(report.text().find("2 activations were entered by a jump, with the frame of the row there"),
            std::string::npos);
}

TEST(CheckByStepping, TellsHowCodeWasEnteredWhoseRowIsWrong) {
  const Code interpreter(k_interpreter), trace(k_trace);
  // The push is not described.
  const Registration registration =
      trace.registered(*describe("trace").entry_state(k_frame_of_interpreter).ends_without_return().build());
  const auto report = check_by_stepping(
      registration, [&] { return interpreter.call(&callee, trace.at(0), interpreter.at(k_interpreter_exit)), 0; });
  EXPECT_FALSE(report);
  EXPECT_EQ(report.wrong, 1u);
  EXPECT_NE(report.mismatches.find("\n    entered at trace+0x0 by a jump from 0x"), std::string::npos)
      << report.mismatches;
}

TEST(CheckByStepping, TellsThatTheFirstRowOfCodeThatIsJumpedToIsWrong) {
  const Code jump({0xff, 0xe7}), code({0x90, 0xc3});  // jmp rdi; nop; ret
  const Registration registration = code.registered(*describe("code").row_at(0, "cfa=rsp+16 ra=[cfa-16]").build());
  const auto report = check_by_stepping(registration, [&] { return jump.call(code.at(0)), 0; });
  EXPECT_FALSE(report);
  EXPECT_EQ(report.failure.find("code that was entered at code+0x0 by a jump from 0x"), 0u) << report.text();
}

/// A range whose end is not known may have linkage stubs behind the code.
TEST(CheckByStepping, ReturnsToTheCodeThatCalledAStubOfTheRange) {
  // push rax; call +8; pop rcx; ret; jmp rdi
  const Code code({0x50, 0xe8, 2, 0, 0, 0, 0x59, 0xc3, 0xff, 0xe7});
  const auto check = [&](const Description& description) {
    const Registration registration = code.registered(description);
    return check_by_stepping(registration, [&] { return code.call(&callee), 0; });
  };
  const auto right = check(*describe("code").allocate({0, 1}, 8).deallocate({6, 7}, 8).size(10).build());
  EXPECT_TRUE(right) << right.text();
  EXPECT_EQ(right.activations, 2u);
  EXPECT_EQ(right.by_entry_row, 0u);
  const auto wrong = check(*describe("code")
                                .allocate({0, 1}, 8)
                                .remember()
                                .deallocate({6, 7}, 8)
                                .restore({7, 8})
                                .size(10)
                                .ends_without_return()
                                .build());
  EXPECT_EQ(wrong.wrong, 1u) << wrong.text();
  EXPECT_NE(wrong.mismatches.find("\n    entered at code+0x8 by a call\n"), std::string::npos) << wrong.mismatches;
}

/// MIR's epilogue: a register is reloaded behind the release of its slot, whose idiom does not say so.
TEST(CheckByStepping, FindsTheRegisterThatIsReloadedBelowSp) {
  // push rbp; mov rbp,rsp; sub rsp,16; call rdi; lea rsp,[rbp+8]; mov rbp,[rsp-8]; ret
  const Code code({0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xff, 0xd7,
                   0x48, 0x8d, 0x65, 0x08, 0x48, 0x8b, 0x6c, 0x24, 0xf8, 0xc3});
  const auto body = describe("reloads")
                        .push({0, 1}, rbp)
                        .set_frame_pointer({1, 4}, rbp)
                        .allocate({4, 8}, 16)
                        .restore_sp({10, 14}, rbp, 8)
                        .size(20);
  const auto wrong_in = [&](const Description& description) {
    const Registration registration = code.registered(description);
    const auto report = check_by_stepping(registration, [&] { return code.call(&callee), 0; });
    EXPECT_EQ(report.failure, "");
    return report.wrong;
  };
  EXPECT_EQ(wrong_in(*body.build()), 1u);
  auto in_rows = body;
  in_rows.row_at(14, "cfa=rsp+8 rbp=[cfa-16] ra=[cfa-8]").row_at(19, "cfa=rsp+8 ra=[cfa-8]");
  EXPECT_EQ(wrong_in(*in_rows.build()), 0u);
  // Or the slot, which is released, is named again by the same instruction.
  auto in_directives = body;
  in_directives.spill_sp_rel(13, rbp, -8).reload({14, 19}, rbp);
  const auto built = in_directives.build();
  ASSERT_TRUE(built) << built.error().text();
  EXPECT_EQ(wrong_in(*built), 0u);
}

TEST(CheckByStepping, SaysTheSameInC) {
  const Code code(k_doubled);
  struct Test {
    const Code& code;
    int result;
  } test{code, 0};
  const auto run = [](void* data) -> int {
    const Test& of = *static_cast<const Test*>(data);
    return run_doubled(of.code) + of.result;
  };
  std::array<char, 64> report;
  std::size_t not_run = 77;
  const ju_range range{code.at(0), code.at(k_doubled.size())};
  const auto check = [&](int (*body)(void*)) {
    return ju_check_by_stepping(&range, 1, body, &test, report.data(), report.size(), &not_run);
  };
  {
    const Registration registration = code.registered(of_doubled());
    EXPECT_EQ(check(run), JU_OK);
    EXPECT_STREQ(report.data(), "6 instructions and 1 calls of 1 activations compared, 0 wrong, ");  // cut
    EXPECT_EQ(not_run, 0u);
    test.result = 3;
    EXPECT_EQ(check(run), JU_INVALID_ARGUMENT);
    test.result = 0;
    EXPECT_EQ(ju_check_by_stepping(&range, 1, run, &test, nullptr, 0, nullptr), JU_OK);
  }
  const Registration wrong = code.registered(*describe("doubled").push({0, 1}, rbx).pop({6, 10}, rbx).build());
  EXPECT_EQ(check(run), JU_BAD_FRAME);
  EXPECT_EQ(check(nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_check_by_stepping(nullptr, 1, run, &test, report.data(), report.size(), nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_check_by_stepping(&range, 1, run, &test, nullptr, 1, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_check_by_stepping(nullptr, 0, run, &test, report.data(), report.size(), nullptr), JU_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace jitunwind::test
