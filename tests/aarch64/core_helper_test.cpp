// libunwind-coredump.h on a CPU whose floating-point registers it reports: core files in both byte orders.
#include <endian.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>

#include "tests/targets/built_cores.h"

#include <libunwind-coredump.h>

namespace jitunwind::test {
namespace {

/// A value of 16 bytes, of which calls preserve the low 8.
std::pair<std::uint64_t, std::uint64_t> halves(const unw_fpreg_t& value) {
  std::array<std::uint64_t, 2> halves{};
  static_assert(sizeof value == sizeof halves);
  std::memcpy(halves.data(), &value, sizeof value);
  return {halves[0], halves[1]};
}

// covers: HL10
TEST(CoreHelper, HasTheVectorRegistersThatCallsPreserve) {
  for (const bool big_endian : {false, true}) {
    // The second thread's note ends behind v8.
    const auto made =
        built::core_of({{.id = 7, .first_general = 0x1000, .first_vector = 0x7000, .vector_bytes = 528},
                        {.id = 8, .first_general = 0x2000, .first_vector = 0x8000, .vector_bytes = 9 * 16}},
                       big_endian);
    const TemporaryFolder folder;
    made.write(folder / "core");
    UCD_info* const core = _UCD_create((folder / "core").c_str());
    ASSERT_NE(core, nullptr);
    const unw_addr_space_t space = unw_create_addr_space(&_UCD_accessors, big_endian ? __BIG_ENDIAN : __LITTLE_ENDIAN);
    for (const int thread : {0, 1}) {
      _UCD_select_thread(core, thread);
      unw_cursor_t cursor;
      ASSERT_EQ(unw_init_remote(&cursor, space, core), 0);
      const std::uint64_t first = thread == 0 ? 0x7000 : 0x8000;
      for (int n = 0; n < 32; ++n) {
        const bool is_there = n >= 8 && n < (thread == 0 ? 16 : 9);
        for (const bool by_cursor : {false, true}) {
          unw_fpreg_t value;
          std::memset(&value, 0xaa, sizeof value);
          const int status = by_cursor ? unw_get_fpreg(&cursor, UNW_AARCH64_V0 + n, &value)
                                       : _UCD_access_fpreg(space, UNW_AARCH64_V0 + n, &value, 0, core);
          EXPECT_EQ(status, is_there ? 0 : -UNW_EBADREG) << n << by_cursor;
          if (status == 0) {
            EXPECT_EQ(halves(value), (std::pair{first + static_cast<unsigned>(n), std::uint64_t{0}})) << n << by_cursor;
          }
        }
      }
    }
    unw_destroy_addr_space(space);
    _UCD_destroy(core);
  }
}

}  // namespace
}  // namespace jitunwind::test
