// The C and C++ libraries of other CPUs from Debian's packages for cross compilation: each FDE is compared with
// readelf, and with our own tables and encoder.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <sstream>
#include <string>

#include "tests/world_cfi/compare.h"
#include "tests/world_cfi/elf_cfi.h"

namespace jitunwind::world {
namespace {

struct Library {
  std::string cpu;  ///< Arch::name
  bool big_endian;
  std::string path;
};

/// Parses "ppc64 big /usr/powerpc64-linux-gnu/lib/libc.so.6,...", which the build of the test provides.
std::vector<Library> libraries() {
  std::vector<Library> all;
  std::istringstream list(OTHER_LIBRARIES);
  for (std::string entry; std::getline(list, entry, ',');) {
    std::istringstream words(entry);
    Library library;
    std::string order;
    words >> library.cpu >> order >> library.path;
    library.big_endian = order == "big";
    all.push_back(library);
  }
  return all;
}

class OtherCpus : public testing::TestWithParam<Library> {};

INSTANTIATE_TEST_SUITE_P(Libraries, OtherCpus, testing::ValuesIn(libraries()), [](const auto& info) {
  const std::filesystem::path path = info.param.path;
  std::string name = path.parent_path().parent_path().filename().string() + "_" + path.stem().stem().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

void expect_clean(const Figures& figures) {
  for (const std::string& message : figures.messages) ADD_FAILURE() << message;
  EXPECT_EQ(figures.unexplained, 0u);
  EXPECT_EQ(figures.files, 1u);
  EXPECT_GT(figures.fdes, 500u);
  EXPECT_GT(figures.rows, 2 * figures.fdes);
}

// covers: XP04
TEST_P(OtherCpus, RowsAreThoseOfReadelf) {
  const ElfCfi elf(GetParam().path);
  ASSERT_NE(elf.arch, nullptr);
  EXPECT_EQ(elf.arch->name, GetParam().cpu);
  EXPECT_EQ(elf.arch->big_endian, GetParam().big_endian);
  expect_clean(compare_file(GetParam().path, Tool::readelf));
}

TEST_P(OtherCpus, RowsAreFoundEncodedAndEvaluated) {
  const Figures figures = check_file(GetParam().path);
  expect_clean(figures);
  EXPECT_EQ(figures.encoded, figures.fdes);
  EXPECT_EQ(figures.found, figures.fdes) << "through .eh_frame_hdr";
}

}  // namespace
}  // namespace jitunwind::world
