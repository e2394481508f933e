// Switches, whose cases only a table leads to.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "jitunwind/unwind_core/check/check.h"
#include "tests/check/checked_code.h"

namespace jitunwind::test {
namespace {

using Lines = std::vector<std::string>;

/// A switch of two cases, of which only the second one changes rbx.
constexpr const char* k_switch = R"(
    53                      push rbx
    83 ff 01                cmp edi,1
    77 12                   ja +18
    89 ff                   mov edi,edi
    48 8d 15 f1 0f 00 00    lea rdx,[rip+0xff1]: 0x2000
    48 63 04 ba             movsxd rax,[rdx+rdi*4]
    48 01 d0                add rax,rdx
    ff e0                   jmp rax
    5b                      pop rbx
    c3                      ret
    31 db                   xor ebx,ebx
    5b                      pop rbx
    c3                      ret)";
constexpr const char* k_rows_of_switch =
    "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+19: cfa=rsp+8 ra=[cfa-8]\n"
    "+1a: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+1d: cfa=rsp+8 ra=[cfa-8]";
constexpr const char* k_wrong_rows_of_switch =
    "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+19: cfa=rsp+8 ra=[cfa-8]\n"
    "+1a: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+1c: cfa=rsp+24 rbx=[cfa-24] ra=[cfa-8]\n+1d: cfa=rsp+8 ra=[cfa-8]";
constexpr const char* k_table = "18 f0 ff ff\n1a f0 ff ff";

/// The rows up to the second case of code that saves rbx, jumps by a table, and returns from the first case at +0x15.
constexpr const char* k_rows_to_second_case =
    "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n"
    "+15: cfa=rsp+8 ra=[cfa-8]\n+16: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n";

TEST(CheckedSwitch, IsFollowedByItsTable) {
  const Arch of_target = arch::x86_64;  // targets have tables of their own
  const CheckReport right = check_text(of_target, k_switch, k_rows_of_switch, k_table);
  EXPECT_EQ(findings_of(right, arch::x86_64), Lines{});
  EXPECT_EQ(right.assumed, 0u);
  const CheckReport wrong = check_text(arch::x86_64, k_switch, k_wrong_rows_of_switch, k_table);
  EXPECT_EQ(findings_of(wrong, arch::x86_64),
            Lines{"0x1c: the row says cfa=rsp+24, but rsp is cfa-16, since the instruction at 0x0"});
}

/// The comparison is one of the register that the index was copied from, as clang writes it.
TEST(CheckedSwitch, IsBoundedByACopyOfItsIndex) {
  constexpr const char* k_copied = R"(
    53                      push rbx
    89 f8                   mov eax,edi
    48 83 ff 01             cmp rdi,1
    77 12                   ja +18
    89 c0                   mov eax,eax
    48 8d 15 ee 0f 00 00    lea rdx,[rip+0xfee]: 0x2000
    48 63 04 82             movsxd rax,[rdx+rax*4]
    48 01 d0                add rax,rdx
    ff e0                   jmp rax
    5b                      pop rbx
    c3                      ret
    31 db                   xor ebx,ebx
    5b                      pop rbx
    c3                      ret)";
  const CheckReport wrong = check_text(arch::x86_64, k_copied,
                                       "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n"
                                       "+1c: cfa=rsp+8 ra=[cfa-8]\n+1d: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n"
                                       "+1f: cfa=rsp+24 rbx=[cfa-16] ra=[cfa-8]\n+20: cfa=rsp+8 ra=[cfa-8]",
                                       "1b f0 ff ff\n1d f0 ff ff");
  EXPECT_EQ(findings_of(wrong, arch::x86_64),
            Lines{"0x1f: the row says cfa=rsp+24, but rsp is cfa-16, since the instruction at 0x0"});
}

/// A third case, which never occurs, leads to the end of the code.
TEST(CheckedSwitch, HasCasesThatNeverOccur) {
  std::string three = k_switch;
  three.replace(three.find("83 ff 01"), 8, "83 ff 02");
  const CheckReport wrong =
      check_text(arch::x86_64, three, k_wrong_rows_of_switch, "18 f0 ff ff\n1e f0 ff ff\n1a f0 ff ff");
  EXPECT_EQ(findings_of(wrong, arch::x86_64),
            Lines{"0x1c: the row says cfa=rsp+24, but rsp is cfa-16, since the instruction at 0x0"});
}

/// Switches of AArch64, of which only the second case changes x19. Its second instruction is at `wrong`.
struct SwitchCase {
  const char* name;
  const char* code;
  const char* table;
  unsigned saved, first, wrong, end;  // where x19 is saved, the first case, ..., and the offset of the last return
};
constexpr const char* k_cases_of_switch = R"(
        f3 07 41 f8   ldr x19,[sp],#16
        c0 03 5f d6   ret
        f3 03 00 aa   mov x19,x0
        e1 03 00 aa   mov x1,x0
        f3 07 41 f8   ldr x19,[sp],#16
        c0 03 5f d6   ret)";
const SwitchCase k_switches[] = {
    {"of gcc", R"(
        f3 0f 1f f8   str x19,[sp,#-16]!
        1f 04 00 71   cmp w0,#1
        68 01 00 54   b.hi +0x34
        01 00 00 b0   adrp x1,0x2000
        21 00 00 91   add x1,x1,#0
        20 48 60 38   ldrb w0,[x1,w0,uxtw]
        61 00 00 10   adr x1,+0x24
        20 88 20 8b   add x0,x1,w0,sxtb #2
        00 00 1f d6   br x0)",
     "00 02", 4, 0x24, 0x30, 0x38},
    {"behind a branch", R"(
        f3 0f 1f f8   str x19,[sp,#-16]!
        1f 04 00 71   cmp w0,#1
        49 00 00 54   b.ls +0x10
        00 00 20 d4   brk #0
        01 00 00 b0   adrp x1,0x2000
        21 00 00 91   add x1,x1,#0
        20 58 60 78   ldrh w0,[x1,w0,uxtw #1]
        61 00 00 10   adr x1,+0x28
        20 a8 20 8b   add x0,x1,w0,sxth #2
        00 00 1f d6   br x0)",
     "00 00 02 00", 4, 0x28, 0x34, 0x3c},
    {"of clang", R"(
        f3 0f 1f f8   str x19,[sp,#-16]!
        1f 08 00 71   cmp w0,#2
        82 01 00 54   b.hs +0x38
        e8 03 00 2a   mov w8,w0
        09 00 00 b0   adrp x9,0x2000
        29 01 00 91   add x9,x9,#0
        8a 00 00 10   adr x10,+0x28
        2b 69 68 38   ldrb w11,[x9,x8]
        4a 09 0b 8b   add x10,x10,x11,lsl #2
        40 01 1f d6   br x10)",
     "00 02", 4, 0x28, 0x34, 0x3c},
    {"of words", R"(
        f3 0f 1f f8   str x19,[sp,#-16]!
        08 00 00 12   and w8,w0,#1
        09 00 00 b0   adrp x9,0x2000
        29 01 00 91   add x9,x9,#0
        2a 79 a8 b8   ldrsw x10,[x9,x8,lsl #2]
        29 01 0a 8b   add x9,x9,x10
        20 01 1f d6   br x9)",
     "1c f0 ff ff 24 f0 ff ff", 4, 0x1c, 0x28, 0x30},
};

TEST(CheckedSwitch, OfAarch64IsFollowedByItsTable) {
  for (const SwitchCase& c : k_switches) {
    SCOPED_TRACE(c.name);
    const std::string code = std::string(c.code) + k_cases_of_switch;
    const auto row = [](unsigned at, const char* said) {
      std::array<char, 80> line;
      std::snprintf(line.data(), line.size(), "+%x: %s\n", at, said);
      return std::string(line.data());
    };
    const char* const framed = "cfa=sp+16 x19=[cfa-16]";
    const std::string before =
        row(0, "cfa=sp") + row(c.saved, framed) + row(c.first + 4, "cfa=sp") + row(c.first + 8, framed);
    const CheckReport right = check_text(arch::aarch64, code, before + row(c.end, "cfa=sp"), c.table);
    EXPECT_EQ(findings_of(right, arch::aarch64), Lines{});
    EXPECT_EQ(right.assumed, 0u);
    EXPECT_TRUE(right.depends_on_more);
    const std::string wrong_rows = before + row(c.wrong, "cfa=sp+32 x19=[cfa-32]") + row(c.end, "cfa=sp");
    const CheckReport wrong = check_text(arch::aarch64, code, wrong_rows, c.table);
    EXPECT_EQ(wrong.disagreed, 2u);
    const CheckReport without = check_text(arch::aarch64, code, before + row(c.end, "cfa=sp"), "");
    EXPECT_EQ(without.assumed, 2u);
    EXPECT_TRUE(without.depends_on_more);
  }
}

/// The comparison jumps to the switch, which stands behind a call that does not return.
TEST(CheckedSwitch, IsFollowedFromItsBranch) {
  constexpr const char* k_behind = R"(
    53                      push rbx
    83 ff 01                cmp edi,1
    76 05                   jbe +11
    e8 00 10 00 00          call elsewhere
    89 ff                   mov edi,edi
    48 8d 15 ec 0f 00 00    lea rdx,[rip+0xfec]: 0x2000
    48 63 04 ba             movsxd rax,[rdx+rdi*4]
    48 01 d0                add rax,rdx
    ff e0                   jmp rax
    5b                      pop rbx
    c3                      ret
    31 db                   xor ebx,ebx
    5b                      pop rbx
    c3                      ret)";
  constexpr const char* k_rows =
      "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+1e: cfa=rsp+8 ra=[cfa-8]\n"
      "+1f: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+22: cfa=rsp+8 ra=[cfa-8]";
  const CheckReport report = check_text(arch::x86_64, k_behind, k_rows, "1d f0 ff ff\n1f f0 ff ff");
  EXPECT_EQ(findings_of(report, arch::x86_64), Lines{});
  EXPECT_EQ(report.assumed, 0u);
}

/// A table that cannot be read, one that leads out of the code, and a comparison with more than it has.
TEST(CheckedSwitch, IsUndecidedWithoutItsTable) {
  for (const char* table : {"", "18 f0 ff ff", "18 f0 ff ff\n1f f0 ff ff"}) {
    const CheckReport report = check_text(arch::x86_64, k_switch, k_wrong_rows_of_switch, table);
    EXPECT_EQ(report.verdict, Verdict::cannot_tell) << table;
    EXPECT_EQ(report.assumed, 1u) << table;
    EXPECT_NE(report.reasons[static_cast<std::size_t>(CannotTell::indirect_jump)], 0u) << table;
  }
}

/// Nothing bounds the index, or a mask with more values than there are cases: its table ends where a distance leads out
/// of the code.
TEST(CheckedSwitch, IsFollowedWithoutABound) {
  constexpr std::array k_indices{"0f b6 3f movzx edi,byte [rdi]", "83 e7 03 and edi,3"};
  for (const std::string index : k_indices) {
    SCOPED_TRACE(index);
    const std::string code = "53 push rbx\n" + index + R"(
    48 8d 15 f5 0f 00 00    lea rdx,[rip+0xff5]: 0x2000
    48 63 04 ba             movsxd rax,[rdx+rdi*4]
    48 01 d0                add rax,rdx
    ff e0                   jmp rax
    5b                      pop rbx
    c3                      ret
    31 db                   xor ebx,ebx
    5b                      pop rbx
    c3                      ret)";
    const std::string rows = k_rows_to_second_case;
    constexpr const char* k_table_of_it = "14 f0 ff ff\n16 f0 ff ff\n00 00 01 00\n18 f0 ff ff";
    const CheckReport right = check_text(arch::x86_64, code, rows + "+19: cfa=rsp+8 ra=[cfa-8]", k_table_of_it);
    EXPECT_EQ(findings_of(right, arch::x86_64), Lines{});
    EXPECT_EQ(right.assumed, 0u);
    EXPECT_TRUE(right.depends_on_more);
    const std::string wrong_rows = rows + "+19: cfa=rsp+16 ra=[cfa-8]";
    const Lines found{"0x19: the row says cfa=rsp+16, but rsp is cfa-8, since the instruction at 0x18"};
    EXPECT_EQ(findings_of(check_text(arch::x86_64, code, wrong_rows, k_table_of_it), arch::x86_64), found);
    // A distance that leads into the middle of the second case is no entry of the table.
    const CheckReport other = check_text(arch::x86_64, code, wrong_rows, "14 f0 ff ff\n18 f0 ff ff");
    EXPECT_EQ(other.verdict, Verdict::cannot_tell);
    EXPECT_EQ(other.assumed, 1u);
  }
}

/// However much padding is in front of a case: here, 100 instructions.
TEST(CheckedSwitch, IsFollowedBehindPadding) {
  std::string code = R"(
    53                      push rbx
    0f b6 07                movzx eax,byte [rdi]
    48 8d 15 f5 0f 00 00    lea rdx,[rip+0xff5]: 0x2000
    48 63 04 82             movsxd rax,[rdx+rax*4]
    48 01 d0                add rax,rdx
    ff e0                   jmp rax
    5b                      pop rbx
    c3                      ret)";
  for (int i = 0; i < 100; ++i) code += "\n90 nop";
  code += "\n5b pop rbx\nc3 ret";
  const std::string rows = k_rows_to_second_case;
  constexpr const char* k_table_of_it = "14 f0 ff ff\n7a f0 ff ff";
  const CheckReport right = check_text(arch::x86_64, code, rows + "+7b: cfa=rsp+8 ra=[cfa-8]", k_table_of_it);
  EXPECT_EQ(findings_of(right, arch::x86_64), Lines{});
  EXPECT_EQ(right.assumed, 0u);
  const CheckReport wrong = check_text(arch::x86_64, code, rows + "+7b: cfa=rsp+16 ra=[cfa-8]", k_table_of_it);
  EXPECT_EQ(findings_of(wrong, arch::x86_64),
            Lines{"0x7b: the row says cfa=rsp+16, but rsp is cfa-8, since the instruction at 0x7a"});
}

/// The register has the table's address since before a call, or a jump.
TEST(CheckedSwitch, IsFollowedByAnAddressThatIsKept) {
  for (const char* between : {"ff d7 call rdi", "eb 00 jmp +0"}) {
    const std::string code = std::string(R"(
    53                      push rbx
    48 8d 1d f8 0f 00 00    lea rbx,[rip+0xff8]: 0x2000
    )") + between + R"(
    48 63 04 83             movsxd rax,[rbx+rax*4]
    48 01 d8                add rax,rbx
    ff e0                   jmp rax
    5b                      pop rbx
    c3                      ret
    5b                      pop rbx
    c3                      ret)";
    const std::string rows =
        "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n"
        "+14: cfa=rsp+8 ra=[cfa-8]\n+15: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n";
    constexpr const char* k_table_of_it = "13 f0 ff ff\n15 f0 ff ff";
    const CheckReport right = check_text(arch::x86_64, code, rows + "+16: cfa=rsp+8 ra=[cfa-8]", k_table_of_it);
    EXPECT_EQ(findings_of(right, arch::x86_64), Lines{}) << between;
    EXPECT_EQ(right.assumed, 0u) << between;
    const CheckReport wrong = check_text(arch::x86_64, code, rows + "+16: cfa=rsp+16 ra=[cfa-8]", k_table_of_it);
    EXPECT_EQ(findings_of(wrong, arch::x86_64),
              Lines{"0x16: the row says cfa=rsp+16, but rsp is cfa-8, since the instruction at 0x15"})
        << between;
  }
}

/// The second table, read on from the first one, would lead to code that nothing leads to.
TEST(CheckedSwitch, EndsWhereTheNextTableBegins) {
  constexpr const char* k_two = R"(
    53                      push rbx
    0f b6 07                movzx eax,byte [rdi]
    48 8d 15 f5 0f 00 00    lea rdx,[rip+0xff5]: 0x2000
    48 63 04 82             movsxd rax,[rdx+rax*4]
    48 01 d0                add rax,rdx
    ff e0                   jmp rax
    0f b6 06                movzx eax,byte [rsi]
    48 8d 15 e6 0f 00 00    lea rdx,[rip+0xfe6]: 0x2004
    48 63 04 82             movsxd rax,[rdx+rax*4]
    48 01 d0                add rax,rdx
    ff e0                   jmp rax
    5b                      pop rbx
    c3                      ret
    66 90                   nop
    5b                      pop rbx
    c3                      ret)";
  constexpr const char* k_rows =
      "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+28: cfa=rsp+8 ra=[cfa-8]\n"
      "+2b: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+2c: cfa=rsp+8 ra=[cfa-8]";
  const CheckReport report = check_text(arch::x86_64, k_two, k_rows, "14 f0 ff ff\n27 f0 ff ff");
  EXPECT_EQ(findings_of(report, arch::x86_64), Lines{});
  EXPECT_EQ(report.assumed, 1u);
}

}  // namespace
}  // namespace jitunwind::test
