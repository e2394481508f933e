// Names in a stripped library: those of exported functions, and no others.
#include <jitunwind/jitunwind.h>
#include <libunwind.h>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

extern "C" void stripped_exported(void (*function)());

namespace jitunwind::test {
namespace {

struct Named {
  int returned;
  std::string name;
  unw_word_t offset;
};
std::vector<Named> g_by_c, g_by_ip;
std::vector<std::string> g_by_cxx;

void look() {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  do {
    Named by_c{}, by_ip{};
    std::array<char, 64> name;
    unw_word_t ip = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    by_c.returned = unw_get_proc_name(&cursor, name.data(), name.size(), &by_c.offset);
    by_c.name = name.data();
    by_ip.returned =
        unw_get_proc_name_by_ip(unw_local_addr_space, ip - 1, name.data(), name.size(), &by_ip.offset, nullptr);
    by_ip.name = name.data();
    g_by_c.push_back(by_c);
    g_by_ip.push_back(by_ip);
  } while (unw_step(&cursor) > 0);
  for (const Frame& frame : walk_here()) g_by_cxx.push_back(frame.name());
}

/// The function without a name does not get the name of the function before it, whose size tells where it ends.
// covers: PI09
TEST(StrippedCode, HasNoNamesButWhatIsExported) {
  stripped_exported(look);
  ASSERT_GT(g_by_c.size(), 4u);
  EXPECT_EQ(g_by_c[1].returned, -UNW_ENOINFO);
  EXPECT_EQ(g_by_c[1].name, "");
  EXPECT_EQ(g_by_ip[1].returned, -UNW_ENOINFO);
  EXPECT_EQ(g_by_ip[1].name, "");
  EXPECT_EQ(g_by_cxx[1], "");
  EXPECT_EQ(g_by_c[2].returned, 0);
  EXPECT_EQ(g_by_c[2].name, "stripped_exported");
  EXPECT_GT(g_by_c[2].offset, 0u);
  EXPECT_EQ(g_by_ip[2].offset + 1, g_by_c[2].offset);
  EXPECT_EQ(g_by_cxx[2], "stripped_exported");
}

}  // namespace
}  // namespace jitunwind::test
