// Descriptions -> rows, case by case from the .case files beside this one.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/rows/case_space.h"

namespace jitunwind::rows {
namespace {

// covers: DY28 DY34 DY55 DY56
TEST(Rows, WorkedExamples) { expect_cases("worked_examples.case", 22); }

TEST(Rows, FurtherRows) { expect_cases("further_rows.case", 16); }

TEST(Rows, HardFrames) { expect_cases("hard_frames.case", 16); }

TEST(Rows, ProceduresThatAreAlsoRun) { expect_cases("live.case", 7); }

// covers: DY20 DY22 DY23 DY24 DY25 DY26 DY29 DY31 DY38 DY57
TEST(Rows, Regions) { expect_cases("regions.case", 16); }

// covers: DY19 DY33 DY37
TEST(Rows, Validation) { expect_cases("validation.case", 59); }

// Another program has made these rows; see directive_differential.
TEST(Rows, RandomDescriptions) {
  for (const Arch* arch : all_arches()) {
    std::string cpu = arch->name;
    std::ranges::replace(cpu, '-', '_');
    expect_cases("random_" + cpu + ".case", arch == &arch::x86_64 || arch == &arch::aarch64 ? 160 : 40);
  }
}

}  // namespace
}  // namespace jitunwind::rows
