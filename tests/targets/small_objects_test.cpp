// Objects so small that several of their segments are on one page of the file: from every linker, of each page size and
// kind, as programs, and as libraries mapped from a file or from an archive. Their program headers decide which
// mappings are one object. The expected stack is known from the source; elfutils sees the same stack of the programs.
#include <elf.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "tests/targets/taken_sample.h"
#include "tests/targets/witnesses.h"

namespace jitunwind::test {
namespace {

constexpr std::size_t k_in_archive = 0x5000;

/// An object that is a program or a library, and its place in the mapped file.
struct Case {
  const char* object;
  enum { program, library, in_archive, behind_another } as;
};

void PrintTo(const Case& of, std::ostream* out) {
  constexpr std::array k_as{"program", "library", "in_archive", "behind_another"};
  *out << std::filesystem::path(of.object).filename().string() << "_" << k_as[of.as];
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* const object : {SMALL_PROGRAMS, SMALL_LIBRARIES}) cases.push_back({object, Case::program});
  for (const char* const object : {SMALL_LIBRARIES})
    for (const auto as : {Case::library, Case::in_archive, Case::behind_another}) cases.push_back({object, as});
  return cases;
}

/// Runs a case in its own folder.
class Small {
 public:
  explicit Small(const Case& of) : of_(of) {
    if (of.as != Case::in_archive && of.as != Case::behind_another) return;
    const std::string bytes = text_of_file(of.object);
    std::string archive(k_in_archive, 'z');
    archive += bytes + std::string((bytes.size() + 0xfff) / 0x1000 * 0x1000 - bytes.size(), 'z');
    second_ = archive.size();
    std::ofstream(folder_ / "archive", std::ios::binary) << archive << bytes << std::string(5000, 'z');
  }
  std::string program() const { return of_.as == Case::program ? of_.object : OBJECT_HOST; }
  std::vector<std::string> arguments() const {
    const std::string first = std::to_string(k_in_archive);
    switch (of_.as) {
      case Case::program:
        return {};
      case Case::library:
        return {of_.object, "0"};
      case Case::in_archive:
        return {folder_ / "archive", first};
      default:
        return {folder_ / "archive", first, std::to_string(second_)};
    }
  }
  std::vector<std::string> to_fault() const {
    std::vector<std::string> with = arguments();
    with.push_back("fault");
    return with;
  }
  std::string folder() const { return folder_.path(); }
  std::string core() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      if (entry.path().filename().string().starts_with("core")) return entry.path();
    return "";
  }

  /// Expects the innermost frames, which call frame information describes; a program has no others.
  void expect_right(const SeenStack& stack, const char* origin = "eh_frame") const {
    const std::vector<std::string> known{"stand", "middle", "first",
                                         of_.as == Case::program ? "start" : "from_outside"};
    std::vector<std::string> names, origins;
    for (const SeenFrame& frame : stack.frames) {
      names.push_back(frame.name);
      origins.push_back(frame.origin);
    }
    ASSERT_GE(names.size(), known.size()) << stack.why;
    EXPECT_TRUE(std::ranges::equal(known, std::span(names).first(known.size()))) << testing::PrintToString(names);
    EXPECT_EQ(std::ranges::count(std::span(origins).first(known.size() - 1), origin), 3);
    EXPECT_EQ(stack.why, "complete");
    if (of_.as == Case::program)
      EXPECT_EQ(names.size(), known.size());
    else
      EXPECT_EQ(names.at(known.size()), "main");
  }

 private:
  TemporaryFolder folder_;
  Case of_;
  std::size_t second_ = 0;
};

class SmallObject : public testing::TestWithParam<Case> {};

TEST_P(SmallObject, IsWalkedWhileItLives) {
  const Small small(GetParam());
  const TargetProgram program(small.program(), small.arguments());
  const auto target = Target::attach(program.process());
  ASSERT_TRUE(target) << target.error().text();
  const SeenStack stack = seen(target->walk(target->threads().at(0)));
  small.expect_right(stack);
  const Addr pc = stack.frames.at(0).pc;
  Module module;
  ASSERT_TRUE(target->space().modules.find(pc, module));
  EXPECT_EQ(module.path, GetParam().as < Case::in_archive ? std::string(GetParam().object) : small.arguments().at(0));
}

TEST_P(SmallObject, IsWalkedInASample) {
  const Small small(GetParam());
  const TargetProgram program(small.program(), small.arguments());
  const Taken taken = take(program, 64 << 10);
  const auto target = Target::from_sample(taken.sample);
  ASSERT_TRUE(target) << target.error().text();
  small.expect_right(seen(target->walk(target->threads().at(0))));
}

#ifdef KERNEL_WRITES_CORES
TEST_P(SmallObject, IsWalkedInACore) {
  const Small small(GetParam());
  TargetProgram program(small.program(), small.to_fault(), small.folder());
  ASSERT_TRUE(WCOREDUMP(program.wait()));
  const auto target = Target::open_core(small.core());
  ASSERT_TRUE(target) << target.error().text();
  small.expect_right(seen(target->walk(target->threads().at(0))));
}
#endif

INSTANTIATE_TEST_SUITE_P(Of, SmallObject, testing::ValuesIn(all_cases()), testing::PrintToStringParamName());

#ifdef KERNEL_WRITES_CORES
/// The core has the build id, though not in the first page. Parts that the core lacks are not read from another build,
/// wherever it is given, but are read from the right one.
TEST(CoreOfASmallProgram, IsNotReadFromAFileOfAnotherBuild) {
  const Small small({SMALL_BUILD, Case::program});
  const std::string path = small.folder() + "/program";
  std::filesystem::copy_file(SMALL_BUILD, path);
  TargetProgram program(path, {"fault"}, small.folder());
  ASSERT_TRUE(WCOREDUMP(program.wait()));
  const auto walked = [&](const std::string& file) {
    const auto target = Target::open_core(small.core(), {.root = "", .program = file});
    return target ? seen(target->walk(target->threads().at(0))) : SeenStack{{}, target.error().text()};
  };
  small.expect_right(walked(""));
  small.expect_right(walked(SMALL_BUILD));
  EXPECT_NE(walked(OTHER_BUILD).why.find("another build"), std::string::npos);
  std::filesystem::copy_file(OTHER_BUILD, path, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(walked("").frames.size(), 1u) << "no rows";
  small.expect_right(walked(SMALL_BUILD));
}
#endif

TEST(SmallProgram, IsWalkedByCompressedFramesOfItsFileAlone) {
  const std::string file = text_of_file(SMALL_DEBUG_FRAME);
  const auto image = ElfImage::parse(std::as_bytes(std::span(file)));
  ASSERT_TRUE(image);
  const auto section = image->find_section(".debug_frame");
  ASSERT_TRUE(section && (section->flags & SHF_COMPRESSED) != 0);
  EXPECT_FALSE(image->find_section(".eh_frame"));
  const Small small({SMALL_DEBUG_FRAME, Case::program});
  const TargetProgram program(small.program(), small.arguments());
  const Taken taken = take(program, 64 << 10);
  small.expect_right(taken.live, "debug_frame");
  const auto sample = Target::from_sample(taken.sample);
  ASSERT_TRUE(sample) << sample.error().text();
  small.expect_right(seen(sample->walk(sample->threads().at(0))), "debug_frame");
#ifdef KERNEL_WRITES_CORES
  TargetProgram faults(small.program(), small.to_fault(), small.folder());
  ASSERT_TRUE(WCOREDUMP(faults.wait()));
  const auto core = Target::open_core(small.core());
  ASSERT_TRUE(core) << core.error().text();
  small.expect_right(seen(core->walk(core->threads().at(0))), "debug_frame");
#endif
}

#ifdef HAS_EU_STACK
TEST(SmallPrograms, AreWalkedAsElfutilsDoes) {
  for (const char* const object : {SMALL_PROGRAMS, SMALL_LIBRARIES}) {
    const TargetProgram program(object, {});
    EXPECT_EQ(by_us(program.process()), by_eu_stack(program.process())) << object;
  }
}
#endif

}  // namespace
}  // namespace jitunwind::test
