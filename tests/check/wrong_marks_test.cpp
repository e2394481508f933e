// Wrong marks, of the kinds that JIT authors made. Registering takes them without a word, and the check names each.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/dyn_info/check_procedure.h"

namespace jitunwind::test {
namespace {

using namespace x86_64;

struct Wrong {
  const char* mistake;
  std::vector<unsigned char> code;
  void (*say)(Marks&);
  const char* finding;
};

// push rbx; nop; pop rbx; ret
const std::vector<unsigned char> k_saves{0x53, 0x90, 0x5b, 0xc3};
// push rbx; test edi,edi; je +9; pop rbx; ret; pop rbx; ret
const std::vector<unsigned char> k_returns_early{0x53, 0x85, 0xff, 0x74, 0x02, 0x5b, 0xc3, 0x5b, 0xc3};
// push rbp; mov rbp,rsp; sub rsp,16; lea rsp,[rbp+8]; mov rbp,[rsp-8]; ret
const std::vector<unsigned char> k_reloads_late{0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x48,
                                                0x8d, 0x65, 0x08, 0x48, 0x8b, 0x6c, 0x24, 0xf8, 0xc3};
// sub rsp,16; add rsp,16; ret
const std::vector<unsigned char> k_allocates{0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xc4, 0x10, 0xc3};

const std::vector<Wrong> k_wrong{
    {"nothing is said", k_saves, [](Marks&) {}, "+0x1: the row says cfa=rsp+8, but rsp is cfa-16, since"},
    {"no epilogue", k_saves,
     [](Marks& f) {
       f.push({0, 1}, rbx);
     },
     "+0x3: the row says cfa=rsp+16, but rsp is cfa-8, since"},
    {"no prologue", k_saves,
     [](Marks& f) {
       f.pop({2, 3}, rbx);
     },
     "+0x1: the row says cfa=rsp+8, but rsp is cfa-16, since"},
    {"another register", k_saves,
     [](Marks& f) {
       f.push({0, 1}, rbp).pop({2, 3}, rbp);
     },
     "+0x1: the row says rbp=[cfa-16], but that word holds the caller's rbx, since"},
    {"a byte too late", k_saves,
     [](Marks& f) {
       f.push({1, 2}, rbx).pop({2, 3}, rbx);
     },
     "+0x1: the row says cfa=rsp+8, but rsp is cfa-16, since"},
    {"another size", k_allocates,
     [](Marks& f) {
       f.allocate({0, 4}, 8).deallocate({4, 8}, 8);
     },
     "+0x4: the row says cfa=rsp+16, but rsp is cfa-24, since"},
    {"no remember()", k_returns_early,
     [](Marks& f) {
       f.push({0, 1}, rbx).pop({5, 6}, rbx).pop({7, 8}, rbx);
     },
     "+0x7: the row says cfa=rsp+8, but rsp is cfa-16, since"},
    {"a reload behind the release", k_reloads_late,
     [](Marks& f) {
       f.push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).allocate({4, 8}, 16).restore_sp({8, 12}, rbp, 8);
     },
     "+0xc: the row says rbp=same, but rbp is cfa-16, since"},
};

TEST(WrongMarks, AreTakenAndNamedByTheCheck) {
  for (const Wrong& wrong : k_wrong) {
    SCOPED_TRACE(wrong.mistake);
    const Addr start = reinterpret_cast<std::uintptr_t>(wrong.code.data());
    Marks marks;
    wrong.say(marks);
    const auto live = register_code(marks, Code{.start = start, .size = wrong.code.size()});
    ASSERT_TRUE(live);
    const CheckReport report = check(*live->info());
    EXPECT_EQ(report.verdict, Verdict::disagrees);
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(text(report.findings.front(), arch::x86_64, start).rfind(wrong.finding, 0), 0u)
        << text(report.findings.front(), arch::x86_64, start);
  }
}

/// The slot that is released counts until the register is loaded from it.
TEST(WrongMarks, SayTheReloadBehindTheRelease) {
  Marks marks;
  marks.push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).allocate({4, 8}, 16).restore_sp({8, 12}, rbp, 8);
  marks.spill_sp_rel(11, rbp, -8).reload({12, 17}, rbp);
  const Addr start = reinterpret_cast<std::uintptr_t>(k_reloads_late.data());
  const auto live = register_code(marks, Code{.start = start, .size = k_reloads_late.size()});
  ASSERT_TRUE(live);
  EXPECT_EQ(check(*live->info()).verdict, Verdict::agrees);
}

}  // namespace
}  // namespace jitunwind::test
