// A compiler's own .debug_frame: compared with readelf's reading of the file, and read through a loaded library.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <libunwind.h>

#include <string>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "jitunwind/unwind_core/walk/cursor.h"
#include "tests/support/command.h"
#include "tests/world_cfi/compare.h"

namespace jitunwind::world {
namespace {

class DebugFrame : public testing::TestWithParam<const char*> {};

/// libelf reads sections that are compressed with zstd from release 0.189 on.
class DebugFrameBesideReadelf : public testing::TestWithParam<const char*> {};

TEST_P(DebugFrameBesideReadelf, Agrees) {
  const Figures figures = compare_file(GetParam(), Tool::readelf);
  for (const std::string& message : figures.messages) ADD_FAILURE() << message;
  EXPECT_EQ(figures.unexplained, 0u);
  EXPECT_GE(figures.fdes, 3u);
  EXPECT_GT(figures.rows, 6u);
}

TEST_P(DebugFrame, OfALoadedLibrary) {
  void* const library = ::dlopen(GetParam(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const LocalMemory memory;
  const AddressSpace space{*host_arch(), memory, local_modules(), {}, {}};
  MemoryWindow window;
  for (const char* name : {"debug_frame_leaf", "debug_frame_calls", "debug_frame_grows"}) {
    const auto entry = reinterpret_cast<Addr>(::dlsym(library, name));
    Lookup lookup(space, CodeAddress::interrupted(entry), window);
    FrameRow row;
    const Found by_eh_frame = eh_frame_source().find_row(lookup, row);
    EXPECT_TRUE(by_eh_frame && !*by_eh_frame) << name;
    const Found found = debug_frame_source().find_row(lookup, row);
    ASSERT_TRUE(found) << name << ": " << found.error().what;
    ASSERT_TRUE(*found) << name;
    EXPECT_EQ(row, entry_row(*host_arch())) << to_text(row, *host_arch());
    EXPECT_EQ(row.range.begin, entry);
    EXPECT_EQ(row.origin, RowOrigin::debug_frame);
    ProcedureInfo info;
    ASSERT_TRUE(debug_frame_source().find_procedure(lookup, info).value());
    EXPECT_EQ(info.range.begin, entry);
  }
  ::dlclose(library);
}

// covers: PI04
TEST_P(DebugFrame, ProceduresSayThatTheyAreFromIt) {
  void* const library = ::dlopen(GetParam(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto flags_of = [](const void* code) {
    unw_proc_info_t info;
    EXPECT_EQ(unw_get_proc_info_by_ip(unw_local_addr_space, reinterpret_cast<unw_word_t>(code), &info, nullptr), 0);
    return info.flags;
  };
  EXPECT_EQ(flags_of(::dlsym(library, "debug_frame_leaf")), unw_word_t{UNW_PI_FLAG_DEBUG_FRAME});
  EXPECT_EQ(flags_of(reinterpret_cast<const void*>(&::dlsym)), 0u);
  ::dlclose(library);
}

constexpr const char* k_libraries[] = {
    DEBUG_FRAME_PLAIN,
    DEBUG_FRAME_ZLIB,
#ifdef DEBUG_FRAME_ZSTD
    DEBUG_FRAME_ZSTD,
#endif
};
std::string kind_of(const testing::TestParamInfo<const char*>& info) {
  const std::string path = info.param;
  return path.substr(path.rfind('_') + 1, path.rfind('.') - path.rfind('_') - 1);
}
INSTANTIATE_TEST_SUITE_P(, DebugFrame, testing::ValuesIn(k_libraries), kind_of);
INSTANTIATE_TEST_SUITE_P(, DebugFrameBesideReadelf, testing::Values(DEBUG_FRAME_PLAIN, DEBUG_FRAME_ZLIB), kind_of);

/// Returns how a walk ends at the beginning of a function in a library whose .debug_frame was changed by `change`.
std::string reason_of_changed(void (*change)(std::span<std::byte> section)) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "changed.so";
  std::filesystem::copy_file(DEBUG_FRAME_ZLIB, path);
  std::string file = test::text_of_file(path);
  const auto bytes = std::as_writable_bytes(std::span(file));
  const auto image = ElfImage::parse(bytes);
  const auto section = image ? image->find_section(".debug_frame") : std::nullopt;
  if (!section) return "no .debug_frame";
  change(bytes.subspan(section->offset, section->size));
  // Files are known by their build id.
  static unsigned char number = 0;
  bytes[static_cast<std::size_t>(image->build_id().data() - bytes.data())] ^= std::byte{++number};
  std::ofstream(path, std::ios::binary) << file;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW);
  const LocalMemory memory;
  const RowSource* const sources[] = {&eh_frame_source(), &debug_frame_source()};
  const AddressSpace space{*host_arch(), memory, local_modules(), sources, {}};
  RegisterFile registers;
  registers.set(host_arch()->column(host_arch()->pc), reinterpret_cast<Addr>(::dlsym(library, "debug_frame_leaf")));
  Cursor cursor(space, registers, Cursor::Top::interrupted);
  const auto moved = cursor.step();
  EXPECT_EQ(cursor.stop_reason(), StopReason::no_info);
  ::dlclose(library);
  return moved ? "moved" : moved.error().what;
}

TEST(DebugFrameThatCannotBeRead, IsTheReasonOfAWalksEnd) {
  using Section = std::span<std::byte>;
  EXPECT_EQ(reason_of_changed([](Section section) { section[0] = std::byte{3}; }),
            "section compressed neither by zlib nor by zstd");
  const std::string of_zstd = reason_of_changed([](Section section) { section[0] = std::byte{2}; });
  EXPECT_TRUE(of_zstd.starts_with("section compressed by zstd, which ")) << of_zstd;
  EXPECT_EQ(reason_of_changed([](Section section) { section.back() ^= std::byte{1}; }),
            "section compressed by zlib, which is broken or too large");
  EXPECT_EQ(reason_of_changed([](Section section) { section[11] = std::byte{1}; }),
            "section compressed by zlib, which is broken or too large");
}

}  // namespace
}  // namespace jitunwind::world
