// The world's CFI in short: the libraries that this process has loaded, and a few with code of other kinds.
#include <gtest/gtest.h>
#include <link.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/world_cfi/compare.h"

namespace jitunwind::world {
namespace {

std::vector<std::string> files() {
  std::vector<std::string> found{std::filesystem::read_symlink("/proc/self/exe")};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        if (info->dlpi_name[0] == '/') static_cast<std::vector<std::string>*>(into)->push_back(info->dlpi_name);
        return 0;
      },
      &found);
  // Hand-written code: expressions, registers saved relative to others, a CFA register behind an expression.
  for (const char* name : {"libcrypto.so.3", "libgcrypt.so.20", "libgmp.so.10"}) {
    const std::string path = std::string("/usr/lib/x86_64-linux-gnu/") + name;
    if (std::filesystem::exists(path)) found.push_back(path);
  }
  return found;
}

void expect_clean(const Figures& figures, const char* title) {
  std::printf("%s: %llu files, %llu FDEs, %llu rows\n", title, static_cast<unsigned long long>(figures.files),
              static_cast<unsigned long long>(figures.fdes), static_cast<unsigned long long>(figures.rows));
  EXPECT_EQ(figures.unexplained, 0u);
  for (const std::string& message : figures.messages) ADD_FAILURE() << message;
  EXPECT_GE(figures.files, 6u);
  EXPECT_GT(figures.fdes, 10000u);
  EXPECT_GT(figures.rows, 50000u);
}

TEST(WorldCfi, AgreesWithReadelf) {
  Figures figures;
  for (const std::string& file : files()) figures.add(compare_file(file, Tool::readelf));
  expect_clean(figures, "against readelf");
}

TEST(WorldCfi, AgreesWithDwarfdump) {
  Figures figures;
  for (const std::string& file : files()) figures.add(compare_file(file, Tool::dwarfdump));
  expect_clean(figures, "against llvm-dwarfdump");
}

TEST(WorldCfi, IsFoundEncodedAndEvaluated) {
  Figures figures;
  for (const std::string& file : files()) figures.add(check_file(file));
  expect_clean(figures, "own checks");
  EXPECT_GE(figures.encoded, figures.fdes);
  EXPECT_GT(figures.found, figures.fdes * 9 / 10);
  EXPECT_GT(figures.quick, figures.fdes * 9 / 10);
  // Hand-written code of libcrypto and libgcrypt gives its CFA by an expression for some instructions.
  EXPECT_LT(figures.not_quick, figures.fdes / 50);
  EXPECT_GT(figures.expressions, 0u);
}

}  // namespace
}  // namespace jitunwind::world
