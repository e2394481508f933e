// .debug_frame of a compiler's own making: beside readelf's reading of the file, and through a loaded library.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <libunwind.h>

#include <string>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "tests/world_cfi/compare.h"

namespace jitunwind::world {
namespace {

class DebugFrame : public testing::TestWithParam<const char*> {};

TEST_P(DebugFrame, AgreesWithReadelf) {
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

INSTANTIATE_TEST_SUITE_P(, DebugFrame, testing::Values(DEBUG_FRAME_PLAIN, DEBUG_FRAME_COMPRESSED),
                         [](const auto& info) { return std::string(info.index == 0 ? "plain" : "compressed"); });

}  // namespace
}  // namespace jitunwind::world
