// Code that is described in parts, each with rows of its own: jumps, calls and landing pads lead from one into another.
#include <gtest/gtest.h>

#include "tests/check/checked_code.h"

namespace jitunwind::test {
namespace {

using Lines = std::vector<std::string>;

struct PartText {
  std::string_view code, rows;
};

struct Parts {
  Lines findings;
  std::uint32_t assumed = 0;
  unsigned rounds = 0;
};

/// The parts begin at k_code, 256 bytes from each other. `sites` are the language-specific data of the first one.
Parts check_parts(std::vector<PartText> texts, std::string_view sites = "") {
  const Arch& arch = arch::x86_64;
  const std::vector<std::byte> data = code_bytes(sites);
  std::vector<std::vector<std::byte>> codes;
  std::vector<BytesMemory::Piece> pieces{{k_data, data}};
  for (const PartText& text : texts) codes.push_back(code_bytes(text.code));
  for (std::size_t i = 0; i < texts.size(); ++i) pieces.push_back({k_code + 256 * i, codes[i]});
  const BytesMemory memory(pieces);
  CheckedParts parts;
  std::vector<CheckReport> reports(texts.size());
  Parts all;
  const auto check_part = [&](std::size_t i) {
    const AddrRange range{k_code + 256 * i, k_code + 256 * i + codes[i].size()};
    if (all.rounds != 0 && !parts.is_due(range)) return;
    const TextRows described(range, texts[i].rows, arch);
    const NoModules modules;
    const AddressSpace space{arch, memory, modules, {}, {}};
    MemoryWindow window;
    const auto row_at = [&](Addr at, FrameRow& out) {
      Lookup lookup(space, CodeAddress::interrupted(at), window);
      return described.find_row(lookup, out);
    };
    reports[i] = check({arch, range, memory, i == 0 && !sites.empty() ? k_data : 0}, row_at, &parts);
  };
  do {
    for (std::size_t i = 0; i < texts.size(); ++i) check_part(i);
    ++all.rounds;
  } while (parts.begin_round());
  for (const CheckReport& report : reports) {
    for (const std::string& line : findings_of(report, arch)) all.findings.push_back(line);
    all.assumed += report.assumed;
  }
  return all;
}

/// It goes on at 0xb if the other part returns there.
constexpr PartText k_hot{R"(
    53                  push rbx
    85 ff               test edi,edi
    0f 85 f7 00 00 00   jne 0x100
    5b                  pop rbx
    c3                  ret
    5b                  pop rbx
    c3                  ret)",
                         "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+a: cfa=rsp+8 ra=[cfa-8]\n"
                         "+b: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+c: cfa=rsp+8 ra=[cfa-8]"};
constexpr std::string_view k_cold = "31 db xor ebx,ebx\ne9 04 ff ff ff jmp 0xb";

TEST(CheckedParts, HaveTheStateOfJumpsThatLeadThere) {
  const Parts right = check_parts({k_hot, {k_cold, "+0: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]"}});
  EXPECT_EQ(right.findings, Lines{});
  EXPECT_EQ(right.assumed, 0u);
  EXPECT_EQ(right.rounds, 3u);  // back to the first part
  const PartText jumping{"53 push rbx\ne9 fa 00 00 00 jmp 0x100",
                         "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]"};
  const Parts wrong = check_parts({jumping, {k_cold, "+0: cfa=rsp+24 rbx=[cfa-16] ra=[cfa-8]"}});
  EXPECT_EQ(wrong.findings, (Lines{"0x100: the row says cfa=rsp+24, but rsp is cfa-16, since the instruction at 0x0"}));
  const PartText unmoved{"5b pop rbx\nc3 ret", "+0: cfa=rbx+16 rbx=[cfa-16] ra=[cfa-8]\n+1: cfa=rsp+8 ra=[cfa-8]"};
  EXPECT_EQ(check_parts({jumping, unmoved}).findings,
            Lines{"0x100: the row says cfa=rbx+16, but rbx holds the caller's rbx"});
}

/// Only the second part leads to the end of the first one.
TEST(CheckedParts, HaveTheStateOfJumpsBack) {
  const PartText wrong{k_hot.code,
                       "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+a: cfa=rsp+8 ra=[cfa-8]\n"
                       "+b: cfa=rsp+16 rbx=[cfa-24] ra=[cfa-8]\n+c: cfa=rsp+8 ra=[cfa-8]"};
  const Parts parts = check_parts({wrong, {k_cold, "+0: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]"}});
  EXPECT_EQ(parts.findings, Lines{"0xb: the row says rbx=[cfa-24], but that word was not stored"});
}

/// The order in which they are checked does not count.
TEST(CheckedParts, MayStandBeforeTheJump) {
  const PartText before{"31 db xor ebx,ebx\n5b pop rbx\nc3 ret",
                        "+0: cfa=rsp+16 rbx=[cfa-24] ra=[cfa-8]\n+3: cfa=rsp+8 ra=[cfa-8]"};
  const PartText jumping{"53 push rbx\ne9 fa fe ff ff jmp 0x0",
                         "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]"};
  EXPECT_EQ(check_parts({before, jumping}).findings,
            Lines{"0x0: the row says rbx=[cfa-24], but that word was not stored"});
}

/// A part of which no way is known is taken at its word.
TEST(CheckedParts, AreTakenAtTheirWordAlone) {
  const PartText other{"c3 ret", "+0: cfa=rsp+8 ra=[cfa-8]"};
  const Parts parts =
      check_parts({other, {"5b pop rbx\nc3 ret", "+0: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+1: cfa=rsp+8 ra=[cfa-8]"}});
  EXPECT_EQ(parts.findings, Lines{});
  EXPECT_EQ(parts.assumed, 1u);
}

/// The push has no row: the fault is there, and not where the code jumps to.
TEST(CheckedParts, AreNotAccusedByWrongOnes) {
  const PartText wrong{"53 push rbx\ne9 fa 00 00 00 jmp 0x100", "+0: cfa=rsp+8 ra=[cfa-8]"};
  const PartText right{"5b pop rbx\n5b pop rbx\nc3 ret",
                       "+0: cfa=rsp+24 rbx=[cfa-16] ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n"
                       "+2: cfa=rsp+8 ra=[cfa-8]"};
  EXPECT_EQ(check_parts({wrong, right}).findings,
            Lines{"0x1: the row says cfa=rsp+8, but rsp is cfa-16, since the instruction at 0x0"});
}

/// Nothing leads to the end of the first part, which calls one and jumps into another.
TEST(CheckedParts, AreNotAccusedByCodeWithoutAPath) {
  const PartText unreached{"c3 ret\n48 89 c7 mov rdi,rax\ne8 f7 01 00 00 call 0x200\ne9 f2 00 00 00 jmp 0x100",
                           "+0: cfa=rsp+8 ra=[cfa-8]"};
  const PartText part{"5b pop rbx\nc3 ret", "+0: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+1: cfa=rsp+8 ra=[cfa-8]"};
  const Parts parts = check_parts({unreached, part, part});
  EXPECT_EQ(parts.findings, Lines{"0x1: cannot tell: no path leads there"});
  EXPECT_EQ(parts.assumed, 3u);
}

/// Two calls, of which the second one has pushed more, and whose landing pad is the other part.
TEST(CheckedParts, AreLandingPads) {
  constexpr PartText k_calling{
      "53 push rbx\ne8 00 10 00 00 call\n50 push rax\ne8 00 10 00 00 call\n58 pop rax\n5b pop rbx\nc3 ret",
      "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+7: cfa=rsp+24 rbx=[cfa-16] ra=[cfa-8]\n"
      "+d: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+e: cfa=rsp+8 ra=[cfa-8]"};
  constexpr std::string_view k_both = "ff ff 01 05\n00 0d 80 02 00",
                             k_pad = "48 89 c7 mov rdi,rax\ne8 00 10 00 00 call";
  // The first call has not pushed so much.
  const Parts right = check_parts({k_calling, {k_pad, "+0: cfa=rsp+24 rbx=[cfa-16] ra=[cfa-8]"}}, k_both);
  EXPECT_EQ(right.findings, Lines{});
  const Parts wrong = check_parts({k_calling, {k_pad, "+0: cfa=rsp+24 rbx=[cfa-32] ra=[cfa-8]"}}, k_both);
  EXPECT_EQ(wrong.findings, Lines{"0x100: the row says rbx=[cfa-32], but that word was not stored"});
}

/// A part that is called has the frame of a call, whether its first row says so or not.
TEST(CheckedParts, AreCalled) {
  const PartText calling{"50 push rax\ne8 fa 00 00 00 call 0x100\n58 pop rax\nc3 ret",
                         "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 ra=[cfa-8]\n+7: cfa=rsp+8 ra=[cfa-8]"};
  const Parts parts = check_parts({calling, {"90 nop\nc3 ret", "+0: cfa=rsp+16 ra=[cfa-8]\n+1: cfa=rsp+8 ra=[cfa-8]"}});
  EXPECT_EQ(parts.findings, Lines{"0x100: the row says cfa=rsp+16, but rsp is cfa-8"});
}

/// The procedure jumps in place of a return, and has left the address of its frame in a register.
TEST(CheckedParts, KnowRegistersThatHoldTheFrame) {
  const PartText jumping{"48 89 e0 mov rax,rsp\ne9 fa 00 00 00 jmp 0x102", "+0: cfa=rsp+8 ra=[cfa-8]"};
  const PartText aligning{"90 nop\n90 nop\n48 83 e4 e0 and rsp,-32\n48 89 c4 mov rsp,rax\nc3 ret",
                          "+0: cfa=rsp+8 ra=[cfa-8]\n+2: cfa=rax+8 ra=[cfa-8]"};
  const Parts parts = check_parts({jumping, aligning});
  EXPECT_EQ(parts.findings, Lines{});
  EXPECT_EQ(parts.assumed, 0u);
}

/// SP is lower at each turn, and nothing is known of it in the end.
TEST(CheckedParts, MayJumpIntoEachOther) {
  const PartText one{"55 push rbp\n48 89 e5 mov rbp,rsp\n50 push rax\ne9 f6 00 00 00 jmp 0x100",
                     "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]\n"
                     "+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]"};
  const PartText other{"50 push rax\ne9 fe fe ff ff jmp 0x4", "+0: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]"};
  const Parts parts = check_parts({one, other});
  EXPECT_EQ(parts.findings, Lines{});
  EXPECT_LE(parts.rounds, 9u);
}

}  // namespace
}  // namespace jitunwind::test
