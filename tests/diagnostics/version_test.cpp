// The version is defined in one place, CMake's project(), and has one value everywhere.
#include <gtest/gtest.h>
#include <jitunwind/jitunwind.h>

#include <string>

extern "C" unsigned version_of_c();
extern "C" const char* version_text_of_c();

namespace {

TEST(Version, IsThatOfTheProject) {
  EXPECT_STREQ(JITUNWIND_VERSION_TEXT, PROJECT_VERSION);
  EXPECT_EQ(std::to_string(JITUNWIND_VERSION_MAJOR) + "." + std::to_string(JITUNWIND_VERSION_MINOR) + "." +
                std::to_string(JITUNWIND_VERSION_PATCH),
            PROJECT_VERSION);
}

TEST(Version, OfHeadersAndLibraryCompare) {
  EXPECT_EQ(jitunwind_version(), unsigned{JITUNWIND_VERSION});
  EXPECT_EQ(JITUNWIND_VERSION / 10000, JITUNWIND_VERSION_MAJOR);
  EXPECT_EQ(JITUNWIND_VERSION / 100 % 100, JITUNWIND_VERSION_MINOR);
  EXPECT_EQ(JITUNWIND_VERSION % 100, JITUNWIND_VERSION_PATCH);
}

TEST(Version, IsThereForC) {
  EXPECT_EQ(version_of_c(), unsigned{JITUNWIND_VERSION});
  EXPECT_STREQ(version_text_of_c(), JITUNWIND_VERSION_TEXT);
}

}  // namespace
