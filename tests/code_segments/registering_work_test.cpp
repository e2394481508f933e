// Code that is only registered takes the same instructions whether there are segments or not, and code of another size
// than before is committed in as many as code of the same.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/support/instructions.h"

namespace jitunwind::test {
namespace {

/// The first segment looks at the folders of all processes that have one. Here there are no others.
double of_work(const std::string& way) {
  const TemporaryFolder folder;
  const double each = instructions_of_a_round(REGISTERING_WORK " " + way, "JITUNWIND_CODE_DIR=" + folder.path());
  std::printf("%s: %.1f instructions a round\n", way.c_str(), each);
  return each;
}

TEST(RegisteringWork, IsTheSameBesideSegments) {
  const double alone = of_work("alone");
  EXPECT_GT(alone, 100);
  EXPECT_NEAR(of_work("beside_segments"), alone, 1);
}

/// The call frame information of another size would take 25,000 more to encode.
TEST(RegisteringWork, OfOneShapeIsTheSameForEverySize) {
  const double of_one = of_work("one_size");
  EXPECT_GT(of_one, 1000);
  EXPECT_LT(of_work("many_sizes"), of_one + 5'000);  // new files come at times
  EXPECT_LT(of_work("many_more_rows"), of_one + 5'000);
}

/// The room behind the one that was found last is not searched for.
TEST(RegisteringWork, IsLessInTheOrderOfRooms) { EXPECT_LT(of_work("rising_rooms") + 40, of_work("falling_rooms")); }

/// Such code takes the same way as code without data, which has some pointers less.
TEST(RegisteringWork, OfOneShapeIsTheSameForAllData) {
  const double of_none = of_work("one_size");
  EXPECT_LT(of_work("one_data"), of_none + 1'500);
  EXPECT_LT(of_work("many_data"), of_none + 1'500);
}

/// Marks have no shape that code shares, but those that say the same have the same frames.
TEST(RegisteringWork, OfMarksThatSayTheSameIsThatOfOneShape) {
  const double added = of_work("one_size") - of_work("alone"), alone = of_work("alone_marks");
  EXPECT_LT(of_work("one_marks") - alone, added + 1'000);
  EXPECT_LT(of_work("many_marks") - alone, added + 1'000);
  EXPECT_LT(of_work("many_more_marks") - of_work("alone_more_marks"), added + 3'000);
}

}  // namespace
}  // namespace jitunwind::test
