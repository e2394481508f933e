// Results of libunwind's functions for procedures that an LLJIT has linked.
#include <gtest/gtest.h>

#include <array>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "tests/orc/orc_jit.h"

extern "C" int __gxx_personality_v0(...);

namespace jitunwind::test {
namespace {

class OrcProcedures : public EachLinker {};
JITUNWIND_EACH_LINKER(OrcProcedures);

struct Said {
  std::string name;
  unw_word_t offset = 0;
  unw_word_t ip = 0;
  unw_proc_info_t info{};
};
std::vector<Said> g_said;

/// Every frame, by a cursor.
[[gnu::noinline]] long asks(long x) {
  g_said.clear();
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  do {
    Said said;
    std::array<char, 64> name;
    (void)unw_get_proc_name(&cursor, name.data(), name.size(), &said.offset);
    said.name = name.data();
    EXPECT_EQ(unw_get_reg(&cursor, UNW_REG_IP, &said.ip), 0);
    EXPECT_EQ(unw_get_proc_info(&cursor, &said.info), 0) << said.name;
    g_said.push_back(said);
  } while (g_said.back().name != "main" && unw_step(&cursor) > 0);
  return x;
}

Said said_of(const std::string& name) {
  for (const Said& said : g_said)
    if (said.name == name) return said;
  ADD_FAILURE() << "no frame of " << name;
  return {};
}

constexpr unw_word_t k_hardly_more = 200;  // bytes of code

// covers: PI01 PI09
TEST_P(OrcProcedures, HaveNamesAndBounds) {
  OrcJit jit(GetParam());
  jit.add(k_local_functions);
  const auto outer = jit.find<Calls>("outer");
  EXPECT_EQ(outer(asks, 1), 3);
  const Said is = said_of("outer");
  EXPECT_EQ(is.info.start_ip, reinterpret_cast<unw_word_t>(outer));
  EXPECT_EQ(is.ip, is.info.start_ip + is.offset);
  EXPECT_GT(is.info.end_ip, is.ip);
  EXPECT_LT(is.info.end_ip, is.info.start_ip + k_hardly_more);
  EXPECT_EQ(is.info.handler, 0u);
  EXPECT_EQ(is.info.lsda, 0u);
  EXPECT_EQ(is.info.format, UNW_INFO_FORMAT_IP_OFFSET);
  const Said middle = said_of("middle");
  EXPECT_EQ(middle.ip, middle.info.start_ip + middle.offset);
  EXPECT_EQ(g_said.back().name, "main");
}

// covers: PI01
TEST_P(OrcProcedures, HaveTheHandlerOfTheirObject) {
  OrcJit jit(GetParam());
  jit.add(k_landing_pads);
  EXPECT_EQ(jit.find<Calls>("catches")(asks, 1), 1);
  const unw_proc_info_t info = said_of("catches").info;
  EXPECT_EQ(info.handler, reinterpret_cast<unw_word_t>(&__gxx_personality_v0));
  EXPECT_NE(info.lsda, 0u);
}

// covers: PI07 PI12
TEST_P(OrcProcedures, AreFoundByAddress) {
  OrcJit jit(GetParam());
  const auto tracker = jit.add(k_landing_pads);
  const auto start = reinterpret_cast<unw_word_t>(jit.find<Calls>("catches"));
  unw_proc_info_t info;
  ASSERT_EQ(unw_get_proc_info_by_ip(unw_local_addr_space, start + 1, &info, nullptr), 0);
  EXPECT_EQ(info.start_ip, start);
  EXPECT_GT(info.end_ip, start + 1);
  EXPECT_LT(info.end_ip, start + k_hardly_more);
  EXPECT_EQ(info.handler, reinterpret_cast<unw_word_t>(&__gxx_personality_v0));
  EXPECT_NE(info.lsda, 0u);
  EXPECT_EQ(info.format, UNW_INFO_FORMAT_IP_OFFSET);
  std::array<char, 64> name;
  unw_word_t offset = 0;
  ASSERT_EQ(unw_get_proc_name_by_ip(unw_local_addr_space, start + 1, name.data(), name.size(), &offset, nullptr), 0);
  EXPECT_STREQ(name.data(), "catches");
  EXPECT_EQ(offset, 1u);
  EXPECT_EQ(unw_get_proc_name_by_ip(unw_local_addr_space, start, name.data(), 4, &offset, nullptr), -UNW_ENOMEM);
  EXPECT_STREQ(name.data(), "cat");
  or_exit(tracker->remove());
  EXPECT_EQ(unw_get_proc_info_by_ip(unw_local_addr_space, start + 1, &info, nullptr), -UNW_ENOINFO);
  EXPECT_EQ(unw_get_proc_name_by_ip(unw_local_addr_space, start + 1, name.data(), name.size(), &offset, nullptr),
            -UNW_ENOINFO);
}

}  // namespace
}  // namespace jitunwind::test
