// The every-instruction harness judges rows given as text: it must pass right ones, count its work, and notice every
// kind of wrong one.
#include "jitunwind/adapters/testing/single_step_p.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>

#include "tests/support/text_rows.h"

extern "C" {
long judged_framed(long n, void (*helper)());
extern const std::byte judged_framed_end[];
long judged_sum(long n);
extern const std::byte judged_sum_end[];
void judged_jump(void (*target)());
extern const std::byte judged_jump_end[];
long judged_popping();
extern const std::byte judged_popped_end[];
long judged_realigned(void (*helper)());
extern const std::byte judged_realigned_end[];
void judged_forgetful();
extern const std::byte judged_forgetful_end[];
void judged_undefined();
extern const std::byte judged_undefined_end[];
void judged_endless();
extern const std::byte judged_endless_end[];
void judged_signalled(long pid, long signal);
extern const std::byte judged_signalled_end[];
void judged_ms();
extern const std::byte judged_ms_end[];
}

namespace jitunwind::test {
using namespace stepping;
namespace {

Addr address_of(auto* code) { return reinterpret_cast<std::uintptr_t>(code); }

void helper() {}
void recursing_helper() { EXPECT_EQ(judged_sum(2), 3); }

SteppedCode judged(const char* name, auto* begin, const std::byte* end) {
  return {name, {address_of(begin), address_of(end)}};
}

SingleStepRun run(const SteppedCode& code, const std::function<int()>& body, const std::vector<const char*>& texts,
                  const SingleStepOptions& options = {}) {
  std::vector<std::unique_ptr<TextRows>> rows;
  std::vector<SingleStepJudge> judges;
  for (const char* text : texts) {
    rows.push_back(std::make_unique<TextRows>(code.range, text, arch::x86_64));
    judges.push_back({code.name, {rows.back().get()}});
  }
  return single_step(std::span(&code, 1), body, judges, options);
}

constexpr const char* k_framed_rows = R"(
  +0: cfa=rsp+8 ra=[cfa-8]
  +1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
  +4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
  +5: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
  +18: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
  +19: cfa=rsp+8 ra=[cfa-8]
  +1a: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
  +24: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
  +25: cfa=rsp+8 ra=[cfa-8])";
constexpr const char* k_sum_rows = R"(
  +0: cfa=rsp+8 ra=[cfa-8]
  +1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
  +3: cfa=rsp+24 rbp=[cfa-16] r12=[cfa-24] ra=[cfa-8]
  +7: cfa=rsp+32 rbp=[cfa-16] r12=[cfa-24] ra=[cfa-8]
  +28: cfa=rsp+24 rbp=[cfa-16] r12=[cfa-24] ra=[cfa-8]
  +2a: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
  +2b: cfa=rsp+8 ra=[cfa-8])";
const SteppedCode k_framed = judged("framed", &judged_framed, judged_framed_end);
const SteppedCode k_sum = judged("sum", &judged_sum, judged_sum_end);
const SteppedCode k_realigned = judged("realigned", &judged_realigned, judged_realigned_end);
int realigned_body() { return judged_realigned(helper) == 7 ? 0 : 1; }
int both_paths() { return judged_framed(5, helper) == 5 && judged_framed(0, helper) == 0 ? 0 : 1; }

TEST(SingleStep, PassesRightRowsAndCounts) {
  const SingleStepRun r = run(k_framed, both_paths, {k_framed_rows});
  EXPECT_TRUE(r.ok()) << r.text();
  EXPECT_EQ(r.activations, 2u);
  EXPECT_EQ(r.visited.size(), 18u) << r.text();
  // 13 instructions with the call, 12 without.
  EXPECT_EQ(r.reports[0].instructions, 25u);
  EXPECT_EQ(r.reports[0].after_calls, 1u);
  EXPECT_TRUE(r.missed(reinterpret_cast<void*>(&judged_framed), k_framed.range.size()).empty());
}

TEST(SingleStep, SaysWhichInstructionsNeverRan) {
  const SingleStepRun r = run(k_framed, [] { return judged_framed(0, helper) == 0 ? 0 : 1; }, {k_framed_rows});
  EXPECT_TRUE(r.ok()) << r.text();
  const std::vector<Addr> missed = r.missed(reinterpret_cast<void*>(&judged_framed), k_framed.range.size());
  ASSERT_EQ(missed.size(), 6u);
  EXPECT_EQ(missed.front(), k_framed.range.begin + 0x1a);
}

TEST(SingleStep, NoticesEachWrongRowAtItsInstruction) {
  // One line of the right rows is replaced, so that every rule that can be wrong is wrong once.
  struct Case {
    const char* rows;
    unsigned wrong_offset;
    const char* says;
  };
  const Case cases[] = {
      {"+0: cfa=rsp+16 ra=[cfa-16]\n+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]", 0, "cfa expected"},
      {"+0: cfa=rsp+8 ra=rsp\n+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]", 0, "ra expected"},
      {"+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+8 ra=[cfa-8]", 1, "cfa expected"},
      {"+0: cfa=rsp+8 rbx=undefined ra=[cfa-8]\n+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]", 0, "rbx expected"},
      {"+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]", 0, "no step: no unwind information"},
      {"+0: cfa=rsp+8 ra=undefined\n+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]", 0, "no step: outermost"},
      {"+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=[rsp+8] ra=[cfa-8]", 1, "cfa expected"},
  };
  std::vector<std::string> texts;
  for (const Case& c : cases) {
    std::string text = k_framed_rows;
    texts.push_back(std::string(c.rows) + text.substr(text.find("\n  +4")));
  }
  std::vector<const char*> all;
  for (const std::string& t : texts) all.push_back(t.c_str());
  const SingleStepRun r = run(k_framed, both_paths, all);
  EXPECT_EQ(r.failure, "");
  EXPECT_FALSE(r.ok());
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    const SingleStepReport& report = r.reports[i];
    EXPECT_EQ(report.instructions, 25u);
    EXPECT_EQ(report.mismatches, 2u) << i;  // once an activation
    EXPECT_EQ(report.wrong_at, std::set<Addr>{k_framed.range.begin + cases[i].wrong_offset}) << i;
    ASSERT_FALSE(report.texts.empty()) << i;
    EXPECT_NE(report.texts[0].find(cases[i].says), std::string::npos) << report.texts[0];
  }
}

TEST(SingleStep, NoticesARowThatIsWrongOnlyDuringTheCall) {
  // A row that begins within the call is right at every boundary and wrong for the caller's frame.
  const SingleStepRun r = run(k_realigned, realigned_body, {R"(
    +0: cfa=rsp+8 ra=[cfa-8]
    +1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
    +4: cfa=rax+16 rbx=[cfa-16] ra=[cfa-8]
    +1a: cfa=rax+24 rbx=[cfa-16] ra=[cfa-8]
    +1b: cfa=[rsp+64]+16 rbx=[cfa-16] ra=[cfa-8]
    +23: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
    +24: cfa=rsp+8 ra=[cfa-8])"});
  EXPECT_EQ(r.failure, "");
  EXPECT_EQ(r.reports[0].mismatches, 1u);
  EXPECT_EQ(r.reports[0].wrong_at, std::set<Addr>{k_realigned.range.begin + 0x19});
  EXPECT_NE(r.text().find("(after call)"), std::string::npos) << r.text();
}

TEST(SingleStep, KeepsActivationsApart) {
  const SingleStepRun r = run(k_sum, [] { return judged_sum(10) == 55 ? 0 : 1; }, {k_sum_rows});
  EXPECT_TRUE(r.ok()) << r.text();
  EXPECT_EQ(r.activations, 11u);
  EXPECT_EQ(r.reports[0].after_calls, 10u);
  EXPECT_EQ(r.reports[0].instructions, 10u * 15 + 11);
}

TEST(SingleStep, FollowsCallsOutAndBack) {
  const SteppedCode codes[] = {k_framed, k_sum};
  const TextRows framed(codes[0].range, k_framed_rows, arch::x86_64);
  const TextRows sum(codes[1].range, k_sum_rows, arch::x86_64);
  const SingleStepJudge judge{"both", {&framed, &sum}};
  const SingleStepRun r = single_step(
      codes, [] { return judged_framed(5, recursing_helper) == 5 ? 0 : 1; }, std::span(&judge, 1));
  EXPECT_TRUE(r.ok()) << r.text();
  EXPECT_EQ(r.activations, 4u);  // framed, then sum(2), sum(1), sum(0)
}

TEST(SingleStep, FollowsTailCallsAndPoppingReturns) {
  const SteppedCode jump = judged("jump", &judged_jump, judged_jump_end);
  const SingleStepRun jumped = run(jump, [] { return judged_jump(helper), judged_jump(helper), 0; }, {R"(
    +0: cfa=rsp+8 ra=[cfa-8]
    +1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
    +4: cfa=rsp+8 ra=[cfa-8])"});
  EXPECT_TRUE(jumped.ok()) << jumped.text();
  EXPECT_EQ(jumped.activations, 2u);

  // judged_popped begins at the next multiple of 16.
  const SteppedCode pop = judged("popping", &judged_popping, judged_popped_end);
  const SingleStepRun popped = run(pop, [] { return judged_popping() == 7 ? 0 : 1; }, {R"(
    +0: cfa=rsp+8 ra=[cfa-8]
    +4: cfa=rsp+16 ra=[cfa-8]
    +6: cfa=rsp+24 ra=[cfa-8]
    +8: cfa=rsp+32 ra=[cfa-8]
    +d: cfa=rsp+16 ra=[cfa-8]
    +11: cfa=rsp+8 ra=[cfa-8])"});
  EXPECT_TRUE(popped.ok()) << popped.text();
  EXPECT_EQ(popped.activations, 2u);
}

TEST(SingleStep, ReadsTheChildsMemory) {
  const SingleStepRun r = run(k_realigned, realigned_body, {R"(
    +0: cfa=rsp+8 ra=[cfa-8]
    +1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
    +4: cfa=rax+16 rbx=[cfa-16] ra=[cfa-8]
    +14: cfa=[rsp+64]+16 rbx=[cfa-16] ra=[cfa-8]
    +23: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
    +24: cfa=rsp+8 ra=[cfa-8])"});
  EXPECT_TRUE(r.ok()) << r.text();
}

TEST(SingleStep, ComparesVectorRegistersByTheirRule) {
  const SteppedCode code = judged("ms", &judged_ms, judged_ms_end);
  SingleStepOptions options;
  options.preserved = {3, 6, 12, 13, 14, 15, 23};
  constexpr const char* right = R"(
    +0: cfa=rsp+8 ra=[cfa-8]
    +4: cfa=rsp+32 ra=[cfa-8]
    +8: cfa=rsp+32 xmm6=[cfa-32] ra=[cfa-8]
    +13: cfa=rsp+8 ra=[cfa-8])";
  constexpr const char* forgotten = R"(
    +0: cfa=rsp+8 ra=[cfa-8]
    +4: cfa=rsp+32 ra=[cfa-8]
    +13: cfa=rsp+8 ra=[cfa-8])";
  const auto body = [] {
    double one = 1;
    asm volatile("movsd %0, %%xmm6" ::"m"(one) : "xmm6");
    judged_ms();
    return 0;
  };
  const SingleStepRun r = run(code, body, {right, forgotten}, options);
  EXPECT_EQ(r.failure, "");
  EXPECT_EQ(r.reports[0].mismatches, 0u) << r.text();
  // The value is lost only between xorps and movups.
  EXPECT_EQ(r.reports[1].wrong_at, std::set<Addr>{code.range.begin + 0xb}) << r.text();
}

volatile std::sig_atomic_t g_handled = 0;

TEST(SingleStep, FollowsASignalHandlerOutOfJudgedCode) {
  const SteppedCode code = judged("signalled", &judged_signalled, judged_signalled_end);
  const auto body = [] {
    std::signal(SIGUSR1, [](int) { g_handled = static_cast<std::sig_atomic_t>(g_handled + judged_sum(1)); });
    judged_signalled(getpid(), SIGUSR1);
    return g_handled == 1 ? 0 : 1;
  };
  const SingleStepRun r = run(code, body, {R"(
    +0: cfa=rsp+8 ra=[cfa-8]
    +1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]
    +b: cfa=rsp+8 ra=[cfa-8])"});
  EXPECT_TRUE(r.ok()) << r.text();
  EXPECT_EQ(r.activations, 1u);
}

TEST(SingleStep, ReportsCodeThatDoesNotKeepItsPromises) {
  constexpr const char* rows = "+0: cfa=rsp+8 ra=[cfa-8]";
  const SingleStepRun forgetful =
      run(judged("forgetful", &judged_forgetful, judged_forgetful_end), [] { return judged_forgetful(), 0; }, {rows});
  EXPECT_NE(forgetful.failure.find("with rbx changed"), std::string::npos) << forgetful.text();
  EXPECT_FALSE(forgetful.ok());

  const SingleStepRun undefined =
      run(judged("undefined", &judged_undefined, judged_undefined_end), [] { return judged_undefined(), 0; }, {rows});
  EXPECT_NE(undefined.failure.find("killed by Illegal instruction"), std::string::npos) << undefined.text();

  SingleStepOptions short_leash;
  short_leash.max_steps = 2000;
  const SingleStepRun endless = run(
      judged("endless", &judged_endless, judged_endless_end), [] { return judged_endless(), 0; }, {rows}, short_leash);
  EXPECT_NE(endless.failure.find("not done after 2000"), std::string::npos) << endless.text();

  const SingleStepRun failed = run(k_framed, [] { return both_paths(), 3; }, {k_framed_rows});
  EXPECT_EQ(failed.failure, "child exited with status 3");
  EXPECT_FALSE(failed.ok());

  // A run that compares nothing does not pass.
  EXPECT_FALSE(run(k_framed, [] { return 0; }, {k_framed_rows}).ok());
}

TEST(TextRows, RefusesUnreadableLines) {
  const AddrRange range{0x1000, 0x1010};
  EXPECT_THROW(TextRows(range, "cfa=rsp+8", arch::x86_64), std::invalid_argument);
  EXPECT_THROW(TextRows(range, "+0: cfa=rzx", arch::x86_64), std::invalid_argument);
  EXPECT_THROW(TextRows(range, "+4: cfa=rsp\n+4: cfa=rsp", arch::x86_64), std::invalid_argument);
}

}  // namespace
}  // namespace jitunwind::test
