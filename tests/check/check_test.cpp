// Code that everybody can read, with right descriptions and with wrong ones.
#include "jitunwind/unwind_core/check/check.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "tests/check/checked_code.h"

namespace jitunwind::test {
namespace {

using Lines = std::vector<std::string>;

struct Case {
  const char* name;
  const Arch* arch;
  const char* code;
  const char* rows;
  Lines findings;
  std::uint32_t assumed = 0;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr const char* k_framed = R"(
    55          push rbp
    48 89 e5    mov rbp,rsp
    53          push rbx
    bb 01 00 00 00   mov ebx,1
    5b          pop rbx
    5d          pop rbp
    c3          ret)";

const Case k_cases[] = {
    {"Framed",
     &arch::x86_64,
     k_framed,
     R"(+0: cfa=rsp+8 ra=[cfa-8]
        +1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
        +4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
        +5: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
        +c: cfa=rsp+8 ra=[cfa-8])",
     {}},
    {"FramedBySpInstead",
     &arch::x86_64,
     k_framed,
     R"(+0: cfa=rsp+8 ra=[cfa-8]
        +1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
        +5: cfa=rsp+24 rbx=[rbp-8] rbp=[cfa-16] ra=[cfa-8]
        +b: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
        +c: cfa=rsp+8 ra=[cfa-8])",
     {}},
    {"SaveNotDescribed",
     &arch::x86_64,
     k_framed,
     R"(+0: cfa=rsp+8 ra=[cfa-8]
        +1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
        +4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
        +c: cfa=rsp+8 ra=[cfa-8])",
     {"0xa: the row says rbx=same, but rbx was overwritten, since the instruction at 0x5"}},
    {"PushNotDescribed",
     &arch::x86_64,
     k_framed,
     R"(+0: cfa=rsp+8 ra=[cfa-8]
        +4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
        +5: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
        +c: cfa=rsp+8 ra=[cfa-8])",
     {"0x1: the row says cfa=rsp+8, but rsp is cfa-16, since the instruction at 0x0"}},
    {"WrongSlot",
     &arch::x86_64,
     k_framed,
     R"(+0: cfa=rsp+8 ra=[cfa-8]
        +1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
        +4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
        +5: cfa=rbp+16 rbx=[cfa-32] rbp=[cfa-16] ra=[cfa-8]
        +c: cfa=rsp+8 ra=[cfa-8])",
     {"0x5: the row says rbx=[cfa-32], but that word was not stored"}},
    {"SlotOfAnotherRegister",
     &arch::x86_64,
     k_framed,
     R"(+0: cfa=rsp+8 ra=[cfa-8]
        +1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
        +4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]
        +5: cfa=rbp+16 rbx=[cfa-16] rbp=[cfa-16] ra=[cfa-8]
        +c: cfa=rsp+8 ra=[cfa-8])",
     {"0x5: the row says rbx=[cfa-16], but that word holds the caller's rbp, since the instruction at 0x0"}},
    {"Realigned",
     &arch::x86_64,
     R"(4c 8d 54 24 08   lea r10,[rsp+8]
        48 83 e4 e0      and rsp,-32
        41 ff 72 f8      push qword [r10-8]
        55               push rbp
        48 89 e5         mov rbp,rsp
        41 52            push r10
        31 c0            xor eax,eax
        41 5a            pop r10
        5d               pop rbp
        49 8d 62 f8      lea rsp,[r10-8]
        c3               ret)",
     R"(+0: cfa=rsp+8 ra=[cfa-8]
        +5: cfa=r10 ra=[cfa-8]
        +e: cfa=r10 rbp=[rsp] ra=[cfa-8]
        +11: cfa=r10 rbp=[rbp] ra=[cfa-8]
        +13: cfa=[rbp-8] rbp=[rbp] ra=[cfa-8]
        +17: cfa=r10 rbp=[rbp] ra=[cfa-8]
        +18: cfa=r10 ra=[cfa-8]
        +1c: cfa=rsp+8 ra=[cfa-8])",
     {}},
    {"CallThatDoesNotReturn",
     &arch::x86_64,
     R"(85 ff            test edi,edi
        74 0a            je +0xe
        48 83 ec 08      sub rsp,8
        e8 00 10 00 00   call elsewhere
        90               nop
        c3               ret)",
     R"(+0: cfa=rsp+8 ra=[cfa-8]
        +8: cfa=rsp+16 ra=[cfa-8]
        +e: cfa=rsp+8 ra=[cfa-8])",
     {}},
    {"PartWithAFrame",
     &arch::x86_64,
     "5b pop rbx\nc3 ret",
     "+0: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+1: cfa=rsp+8 ra=[cfa-8]",
     {},
     1},
    {"CalleePopsArguments",
     &arch::x86_64,
     R"(6a 01            push 1
        e8 00 10 00 00   call elsewhere
        c3               ret)",
     "+0: cfa=rsp+8 ra=[cfa-8]\n+2: cfa=rsp+16 ra=[cfa-8]\n+7: cfa=rsp+8 ra=[cfa-8]",
     {},
     1},
    {"OnlyRowIsWrong",
     &arch::x86_64,
     "90 nop\nc3 ret",
     "+0: cfa=rsp+16 ra=[cfa-8]",
     {"0x1: the row says cfa=rsp+16, but rsp is cfa-16"},
     1},
    {"NopBeforeALandingPad",
     &arch::x86_64,
     "90 nop\n5b pop rbx\nc3 ret",
     "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+2: cfa=rsp+8 ra=[cfa-8]",
     {"0x1: cannot tell: no path leads there"},
     1},
    {"PointerAdvancedInALoop",
     &arch::x86_64,
     R"(53            push rbx
        48 8d 44 24 f0   lea rax,[rsp-16]
        48 89 08      mov [rax],rcx
        48 83 c0 08   add rax,8
        48 39 d0      cmp rax,rdx
        75 f4         jne +6
        5b            pop rbx
        c3            ret)",
     "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+13: cfa=rsp+8 ra=[cfa-8]",
     {}},
    {"SpMovedByARegister",
     &arch::aarch64,
     R"(0c 82 84 d2   mov x12,#9232
        ff 63 2c cb   sub sp,sp,x12
        0c 82 84 d2   mov x12,#9232
        ff 63 2c 8b   add sp,sp,x12
        c0 03 5f d6   ret)",
     "+0: cfa=sp\n+8: cfa=sp+9232\n+10: cfa=sp",
     {}},
    {"StackProbes",
     &arch::x86_64,
     R"(4c 8d 9c 24 00 d0 ff ff   lea r11,[rsp-0x3000]
        48 81 ec 00 10 00 00      sub rsp,0x1000
        48 83 0c 24 00            or qword [rsp],0
        4c 39 dc                  cmp rsp,r11
        75 ef                     jne +8
        48 81 c4 00 30 00 00      add rsp,0x3000
        c3                        ret)",
     "+0: cfa=rsp+8 ra=[cfa-8]\n+8: cfa=r11+12296 ra=[cfa-8]\n+19: cfa=rsp+12296 ra=[cfa-8]\n+20: cfa=rsp+8 ra=[cfa-8]",
     {}},
    {"SavedInAVectorRegister",
     &arch::x86_64,
     R"(66 48 0f 6e cb      movq xmm1,rbx
        66 0f d6 4c 24 f0   movq [rsp-16],xmm1
        31 db               xor ebx,ebx
        c3                  ret)",
     "+0: cfa=rsp+8 ra=[cfa-8]\n+b: cfa=rsp+8 rbx=[cfa-24] ra=[cfa-8]",
     {"0xb: cannot tell rbx: the distance from the CFA is not known"}},
    {"Outermost", &arch::x86_64, "31 ed xor ebp,ebp\n58 pop rax\nf4 hlt", "+0: cfa=rsp+8 ra=undefined", {}},
    {"JumpTable",
     &arch::x86_64,
     R"(53      push rbx
        ff e0   jmp rax
        5b      pop rbx
        c3      ret)",
     "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+4: cfa=rsp+8 ra=[cfa-8]",
     {},
     1},
    {"OtherFrameBehindJump",
     &arch::x86_64,
     R"(53      push rbx
        ff e0   jmp rax
        5b      pop rbx
        c3      ret)",
     "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n"
     "+3: cfa=rsp+24 rbx=[cfa-24] ra=[cfa-8]\n+4: cfa=rsp+16 ra=[cfa-8]",
     {"0x3: cannot tell: only indirect jumps lead there", "0x4: cannot tell the CFA: only indirect jumps lead there"},
     1},
    {"JumpIntoAnInstruction",
     &arch::x86_64,
     R"(85 ff            test edi,edi
        74 01            je +5
        b8 c3 90 90 90   mov eax,...: +5 is ret
        c3               ret)",
     "+0: cfa=rsp+8 ra=[cfa-8]",
     {"0x5: cannot tell: a jump leads into the middle of an instruction"}},
    {"JumpBehindAPrefix",
     &arch::x86_64,
     R"(85 ff        test edi,edi
        74 01        je +5
        f0 ff 00     lock inc [rax]
        c3           ret)",
     "+0: cfa=rsp+8 ra=[cfa-8]",
     {}},
    {"Data",
     &arch::x86_64,
     "c3 ret\n06 06",
     "+0: cfa=rsp+8 ra=[cfa-8]",
     {"0x1: cannot tell: an unknown instruction, or data"}},
    {"SignedReturnAddress",
     &arch::aarch64,
     R"(3f 23 03 d5   paciasp
        fd 7b be a9   stp x29,x30,[sp,#-32]!
        fd 03 00 91   mov x29,sp
        f3 0b 00 f9   str x19,[sp,#16]
        f3 03 00 aa   mov x19,x0
        00 00 00 94   bl
        f3 0b 40 f9   ldr x19,[sp,#16]
        fd 7b c2 a8   ldp x29,x30,[sp],#32
        bf 23 03 d5   autiasp
        c0 03 5f d6   ret)",
     R"(+0: cfa=sp
        +4: cfa=sp ra_sign_state=1
        +8: cfa=sp+32 x29=[cfa-32] ra=[cfa-24] ra_sign_state=1
        +10: cfa=sp+32 x19=[cfa-16] x29=[cfa-32] ra=[cfa-24] ra_sign_state=1
        +20: cfa=sp ra_sign_state=1
        +24: cfa=sp)",
     {}},
    {"SignatureNotDescribed",
     &arch::aarch64,
     "3f 23 03 d5 paciasp\nbf 23 03 d5 autiasp\nc0 03 5f d6 ret",
     "+0: cfa=sp",
     {"0x4: the row says that the return address is not signed, but it is"}},
    {"LinkRegisterLost",
     &arch::aarch64,
     "00 00 00 94 bl\nc0 03 5f d6 ret",
     "+0: cfa=sp",
     {"0x4: the row says x30=same, but x30 was overwritten, since the instruction at 0x0"}},
    {"NoRow", &arch::x86_64, "90 nop\nc3 ret", "", {"0x0: cannot tell: the description has no row there"}, 1},
    {"OtherCpu", &arch::riscv, "82 80 ret", "+0: cfa=sp", {"0x0: cannot tell: code of this CPU is not checked"}},
    {"X86OfFourByteWords",
     &arch::x86,
     "53 push ebx\n5b pop ebx\nc3 ret",
     "+0: cfa=esp+4 ra=[cfa-4]",
     {"0x0: cannot tell: code of this CPU is not checked"}},
};

class Checked : public testing::TestWithParam<Case> {};

TEST_P(Checked, SaysWhatIsWrong) {
  const Case& c = GetParam();
  const CheckReport report = check_text(*c.arch, c.code, c.rows);
  EXPECT_EQ(findings_of(report, *c.arch), c.findings);
  EXPECT_EQ(report.assumed, c.assumed);
  EXPECT_EQ(report.verdict == Verdict::agrees, c.findings.empty());
  EXPECT_EQ(report.disagreed != 0, report.verdict == Verdict::disagrees);
}

/// A call in a procedure with a landing pad, which calls once more to go on.
constexpr const char* k_catching = R"(
    53               push rbx
    e8 00 10 00 00   call elsewhere
    5b               pop rbx
    c3               ret
    48 89 c7         mov rdi,rax
    e8 00 10 00 00   call elsewhere)";
constexpr const char* k_rows_of_catching =
    "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+7: cfa=rsp+8 ra=[cfa-8]\n"
    "+8: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]";
constexpr const char* k_wrong_rows_of_catching =
    "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+7: cfa=rsp+8 ra=[cfa-8]\n"
    "+8: cfa=rsp+16 rbx=[cfa-24] ra=[cfa-8]";
// No base of pads, no types, numbers of variable length; a call site of 6 bytes, whose pad is at 8.
constexpr const char* k_call_sites = "ff ff 01 04\n00 06 08 00";

TEST(CheckedLandingPad, HasTheStateOfItsCalls) {
  const CheckReport right = check_text(arch::x86_64, k_catching, k_rows_of_catching, k_call_sites, true);
  EXPECT_EQ(findings_of(right, arch::x86_64), Lines{});
  EXPECT_EQ(right.assumed, 0u);
  const CheckReport wrong = check_text(arch::x86_64, k_catching, k_wrong_rows_of_catching, k_call_sites, true);
  EXPECT_EQ(findings_of(wrong, arch::x86_64), Lines{"0x8: the row says rbx=[cfa-24], but that word was not stored"});
}

/// None; call sites behind the code, and out of order; a call that no site covers; data that is cut off.
TEST(CheckedLandingPad, IsUndecidedWithoutCallSites) {
  for (const char* data : {"ff ff 01 04\n00 12 08 00", "ff ff 01 08\n02 04 08 00\n00 02 08 00",
                           "ff ff 01 04\n07 01 08 00", "ff ff 01 04\n00 06", "ff", ""}) {
    const CheckReport report = check_text(arch::x86_64, k_catching, k_wrong_rows_of_catching, data, true);
    EXPECT_EQ(report.verdict, Verdict::cannot_tell) << data;
    EXPECT_EQ(report.assumed, 1u) << data;
  }
}

/// The base of landing pads, as parts of procedures have it, the place of types, and numbers of 4 bytes.
TEST(CheckedLandingPad, CountsFromItsBase) {
  constexpr const char* k_based = "03 06 10 00 00\n9b 20\n03 0d\n00 00 00 00\n06 00 00 00\n02 00 00 00\n00";
  const CheckReport right = check_text(arch::x86_64, k_catching, k_rows_of_catching, k_based, true);
  EXPECT_EQ(findings_of(right, arch::x86_64), Lines{});
  EXPECT_EQ(right.assumed, 0u);
}

TEST(Check, NamesEveryRegisterThatIsWrong) {
  const CheckReport report =
      check_text(arch::x86_64, "31 db xor ebx,ebx\n31 ed xor ebp,ebp\n90 nop\nc3 ret", "+0: cfa=rsp+8 ra=[cfa-8]");
  const std::string first = "the row says rbx=same, but rbx was overwritten, since the instruction at 0x0";
  EXPECT_EQ(findings_of(report, arch::x86_64), (Lines{"0x2: " + first, "0x4: " + first + "; also wrong: rbp"}));
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.findings[0].instructions, 1u);
  EXPECT_EQ(report.findings[1].instructions, 2u);
}

/// The row of a linkage table: rsp+8, and 8 more from the byte 11 of each 16 on, where a number was pushed.
TEST(Check, FollowsTheExpressionOfLinkageTables) {
  const std::vector<std::byte> code = code_bytes(
      "ff 25 00 10 00 00 jmp [rip+0x1000]\n68 00 00 00 00 push 0\ne9 e0 ff ff ff jmp -0x20\n"
      "ff 25 00 10 00 00 jmp [rip+0x1000]\n68 01 00 00 00 push 1\ne9 d0 ff ff ff jmp -0x30");
  // breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus
  const std::vector<std::byte> right = code_bytes("77 08 80 00 3f 1a 3b 2a 33 24 22"),
                               too_late = code_bytes("77 08 80 00 3f 1a 3c 2a 33 24 22");
  const BytesMemory memory({{k_code, code}});
  const AddrRange range{k_code, k_code + code.size()};
  // The first entry has a frame of its own, and leads to none of the others.
  const std::vector<std::byte> first =
      code_bytes("ff 35 00 10 00 00 push [rip+0x1000]\nff 25 00 10 00 00 jmp [rip+0x1000]\n0f 1f 40 00 nop");
  const BytesMemory whole({{k_code - 16, first}, {k_code, code}});
  const CheckReport all = check({arch::x86_64, {k_code - 16, range.end}, whole}, [&](Addr at, FrameRow& out) -> Found {
    out = entry_row(arch::x86_64);
    out.cfa = at < k_code - 10 ? CfaRule::at(arch::x86_64.sp, 16)
              : at < k_code    ? CfaRule::at(arch::x86_64.sp, 24)
                               : CfaRule::of(right);
    out.range = {at < k_code - 10 ? k_code - 16
                 : at < k_code    ? k_code - 10
                                  : k_code,
                 at < k_code - 10 ? k_code - 10
                 : at < k_code    ? k_code
                                  : range.end};
    return true;
  });
  EXPECT_EQ(findings_of(all, arch::x86_64), Lines{});
  EXPECT_EQ(all.verdict, Verdict::agrees);
  const auto checked = [&](const std::vector<std::byte>& expression) {
    return check({arch::x86_64, range, memory}, [&](Addr, FrameRow& out) -> Found {
      out = entry_row(arch::x86_64);
      out.cfa = CfaRule::of(expression);
      out.range = range;
      return true;
    });
  };
  EXPECT_EQ(findings_of(checked(right), arch::x86_64), Lines{});
  const CheckReport wrong = checked(too_late);
  EXPECT_EQ(findings_of(wrong, arch::x86_64), (Lines{"0xb: cannot tell the CFA: only indirect jumps lead there",
                                                     "0x1b: cannot tell the CFA: only indirect jumps lead there"}));
  // SP itself, and a word of memory, count.
  for (const char* other : {"77 00 3f 1a", "77 08 06", "76 08"}) {
    EXPECT_NE(checked(code_bytes(other)).reasons[static_cast<std::size_t>(CannotTell::expression)], 0u) << other;
  }
}

/// Memory that ends in the middle of the code.
TEST(Check, SaysWhatCannotBeRead) {
  const std::vector<std::byte> bytes = code_bytes("90 90 90");
  const BytesMemory memory({{k_code, bytes}});
  const AddrRange range{k_code, k_code + 8};
  const auto row_at = [&](Addr, FrameRow& out) -> Found {
    out = entry_row(arch::x86_64);
    out.range = range;
    return true;
  };
  const CheckReport report = check({arch::x86_64, range, memory}, row_at);
  EXPECT_EQ(report.agreed, 3u);
  EXPECT_EQ(findings_of(report, arch::x86_64), Lines{"0x3: cannot tell: the code cannot be read"});
}

/// Procedures of 2 GiB cost nothing, whether their memory is there or not.
TEST(Check, FollowsNoEndlessCode) {
  const BytesMemory memory({});
  const auto row_at = [&](Addr, FrameRow&) -> Found { return false; };
  const CheckReport report = check({arch::x86_64, {k_code, k_code + (Addr{1} << 31)}, memory}, row_at);
  EXPECT_EQ(findings_of(report, arch::x86_64), Lines{"0x0: cannot tell: there is more code than is followed"});
}

/// Memory in which each read finds other instructions, as in code that writes over itself.
class ChangingMemory final : public Memory {
 public:
  explicit ChangingMemory(unsigned seed) : random_(seed) {}
  std::size_t read(Addr, std::span<std::byte> into, MemoryWindow&) const noexcept override {
    // Pushes, pops, changes of SP, jumps back and forth, calls, returns, prefixes and no instructions.
    constexpr std::array k_bytes{0x50, 0x53, 0x5b, 0x58, 0x48, 0x83, 0xec, 0xc4, 0x08, 0xeb, 0xfa,
                                 0x04, 0x74, 0xe8, 0xc3, 0x0f, 0x85, 0xff, 0x24, 0xc5, 0x06, 0x00};
    for (std::byte& byte : into) byte = static_cast<std::byte>(k_bytes[random_() % k_bytes.size()]);
    return into.size();
  }

 private:
  mutable std::mt19937 random_;
};

TEST(Check, EndsInCodeThatChanges) {
  const AddrRange range{k_code, k_code + 500};
  std::size_t undecided = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    const ChangingMemory memory(seed);
    const CheckReport report = check({arch::x86_64, range, memory}, [&](Addr, FrameRow& out) -> Found {
      out = entry_row(arch::x86_64);
      out.range = range;
      return true;
    });
    ASSERT_LE(report.agreed + report.disagreed + report.undecided, range.size()) << seed;
    for (const CheckFinding& finding : report.findings)
      ASSERT_TRUE(range.contains(finding.range.begin) && finding.range.end >= finding.range.begin) << seed;
    undecided += report.verdict == Verdict::cannot_tell;
  }
  EXPECT_GT(undecided, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, Checked, testing::ValuesIn(k_cases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace jitunwind::test
