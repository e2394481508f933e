// The derivation of descriptions from what asmjit was told, and the check of descriptions, which reads the bytes, judge
// the same random procedures. A disagreement is a mistake of one of the two.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "jitunwind/builders/registration.h"
#include "jitunwind/dyn_info/check_procedure.h"
#include "tests/asmjit/random_code.h"
#include "tests/asmjit/written_code.h"

namespace jitunwind::test {
namespace {

std::string findings_text(const CheckReport& report, Addr start) {
  std::string all;
  for (const CheckFinding& finding : report.findings) all += text(finding, arch::x86_64, start) + "\n";
  return all;
}

TEST(RandomAsmjitCode, IsDescribedAsTheCheckReadsIt) {
  const char* const wanted = std::getenv("RANDOM_FRAMES");
  const std::size_t count = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : 500;
  std::mt19937_64 random(3);
  std::size_t refused = 0, instructions = 0;
  for (std::size_t i = 0; i < count; ++i) {
    WrittenCode w;
    write_random_code(w.a, random);
    const AsmjitDescription derived = describe_asmjit(w.code);
    refused += !derived.complete();
    // Only code that returns without what its caller wants back.
    for (const AsmjitRefusal& refusal : derived.refusals)
      ASSERT_NE(refusal.text().find(" without the caller's value in r"), std::string::npos) << i << "\n" << w.rows();
    if (!derived.complete()) continue;
    ASSERT_EQ(derived.procedures.size(), 1u);
    const AsmjitProcedure& procedure = derived.procedures.front();
    const auto* const start = text_section(w.code)->data() + procedure.begin;
    const auto live = register_code(procedure.description, start, procedure.end - procedure.begin);
    ASSERT_TRUE(live);
    const CheckReport report = check(*live->info());
    ASSERT_EQ(report.verdict, Verdict::agrees)
        << i << "\n"
        << findings_text(report, reinterpret_cast<std::uintptr_t>(start)) << w.rows();
    instructions += report.agreed;
  }
  std::printf("%zu instructions; of %zu procedures, %zu refused by the derivation\n", instructions, count, refused);
  EXPECT_LE(refused, count / 50);
}

}  // namespace
}  // namespace jitunwind::test
