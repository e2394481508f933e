// Words in the environment: the known ones, the reported ones, and the processes that ignore them.
#include "jitunwind/unwind_core/environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

namespace jitunwind {
namespace {

constexpr std::array<std::string_view, 3> k_known{"walk", "rows", "registry"};
constexpr const char* k_variable = "JITUNWIND_TEST_WORDS";

struct Asked {
  std::uint32_t bits;
  std::string said;
};

Asked ask(const char* value) {
  ::setenv(k_variable, value, 1);
  testing::internal::CaptureStderr();
  const std::uint32_t bits = environment_words(k_variable, k_known);
  return {bits, testing::internal::GetCapturedStderr()};
}

TEST(EnvironmentWords, AreBits) {
  EXPECT_EQ(ask("walk").bits, 1u);
  EXPECT_EQ(ask("registry,walk").bits, 5u);
  EXPECT_EQ(ask(" rows ,, walk,\trows,").bits, 3u);
  EXPECT_EQ(ask("registry,walk").said, "");
  EXPECT_EQ(ask("").bits, 0u);
  EXPECT_EQ(ask(",, ,").said, "") << "a list without words names none";
  ::unsetenv(k_variable);
  EXPECT_EQ(environment_words(k_variable, k_known), 0u);
}

TEST(EnvironmentWords, AreWholeWords) {
  EXPECT_EQ(ask("walks").bits, 0u);
  EXPECT_EQ(ask("wal").bits, 0u);
  EXPECT_EQ(ask("walk rows").bits, 0u);
  EXPECT_EQ(ask("Walk").bits, 0u);
}

TEST(EnvironmentWords, UnknownOnesAreNamedOnceAndIgnored) {
  const Asked asked = ask("frob,rows,frob, nitz");
  EXPECT_EQ(asked.bits, 2u);
  EXPECT_EQ(asked.said,
            "jitunwind: JITUNWIND_TEST_WORDS: there is no \"frob\", only walk, rows, registry\n"
            "jitunwind: JITUNWIND_TEST_WORDS: there is no \"nitz\", only walk, rows, registry\n");
}

TEST(EnvironmentWords, AreSaidInBoundsAndWithoutControlCharacters) {
  EXPECT_EQ(ask("\x1b[2J\n").said,
            "jitunwind: JITUNWIND_TEST_WORDS: there is no \"?[2J?\", only walk, rows, registry\n");
  const Asked longer = ask(std::string(5000, 'x').c_str());
  EXPECT_EQ(longer.said, "jitunwind: JITUNWIND_TEST_WORDS: there is no \"" + std::string(64, 'x') +
                             "\", only walk, rows, registry\n");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += std::to_string(i) + ",";
  const Asked asked = ask((many + "registry").c_str());
  EXPECT_EQ(asked.bits, 4u) << "what is known is found behind what is not";
  EXPECT_EQ(std::count(asked.said.begin(), asked.said.end(), '\n'), 9) << asked.said;
  EXPECT_NE(asked.said.find("more words that there are not"), std::string::npos);
}

}  // namespace
}  // namespace jitunwind
