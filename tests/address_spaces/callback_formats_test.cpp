// Answers of find_proc_info in every format, and dwarf_search_unwind_table, which makes such answers.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "tests/address_spaces/address_spaces.h"
#include "tests/support/last_page.h"

namespace jitunwind::test {
namespace {

/// The CIE and the FDE of each procedure as an assembler makes them: CFA = FP+16.
class TableFormats : public AddressSpaces {
 protected:
  static constexpr unw_word_t k_section = 0x30000;

  /// The code is from there on.
  std::vector<unsigned char> section_of(unw_word_t code) {
    const auto fp = static_cast<unsigned char>(k_arch.fp), ra = static_cast<unsigned char>(k_arch.ra);
    const auto offset = [](unsigned char reg) { return static_cast<unsigned char>(0x80 | reg); };
    const unsigned char cie[] = {0x14, 0,    0,  0, 0,    0,    0,  0,  1,          'z', 'R',        0,
                                 1,    0x78, ra, 1, 0x00, 0x0c, fp, 16, offset(ra), 1,   offset(fp), 2};
    std::vector<unsigned char> bytes(cie, cie + sizeof cie);
    for (unw_word_t i = 0; i < 3; ++i) {
      fdes[i] = k_section + bytes.size();
      const unw_word_t range[] = {code + 0x1000 * i, 0x40};
      std::array<unsigned char, 32> fde{0x1c};
      const auto back = static_cast<std::uint32_t>(bytes.size() + 4);
      std::memcpy(&fde[4], &back, 4);
      std::memcpy(&fde[8], range, sizeof range);
      bytes.insert(bytes.end(), fde.begin(), fde.end());
    }
    bytes.resize((bytes.size() + 15) & ~std::size_t{7});
    return bytes;
  }
  void put_section() {
    const std::vector<unsigned char> bytes = section_of(k_code);
    put(k_section, bytes.data(), bytes.size());
  }
  void put(unw_word_t at, const void* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; i += 8)
      std::memcpy(&target.memory[at + i], static_cast<const char*>(bytes) + i, std::min<std::size_t>(8, size - i));
  }
  template <class T>
  std::array<T, 6> pairs(unw_word_t start_base, unw_word_t fde_base) const {
    std::array<T, 6> out;
    for (std::size_t i = 0; i < 3; ++i) {
      out[2 * i] = static_cast<T>(k_code + 0x1000 * i - start_base);
      out[2 * i + 1] = static_cast<T>(fdes[i] - fde_base);
    }
    return out;
  }
  void use(int format, const void* info, int size) {
    describe = [=](unw_proc_info_t* found) {
      found->format = format;
      found->unwind_info = const_cast<void*>(info);
      found->unwind_info_size = size;
    };
  }

  std::array<unw_word_t, 3> fdes{};
};

/// The tables are in the target and need not be copied.
// covers: AC03 AC05 DY42 DY43 DY44 DY45
TEST_F(TableFormats, FromCallbacksAreWalked) {
  put_section();
  auto near = pairs<std::int32_t>(k_section, k_section);
  auto by_start = pairs<std::int32_t>(k_code, k_section);
  auto wide = pairs<std::int64_t>(0, 0);
  put(0x50000, near.data(), sizeof near);
  put(0x51000, by_start.data(), sizeof by_start);
  put(0x52000, wide.data(), sizeof wide);

  unw_dyn_table_info_t table{0, k_section, sizeof near / 8, reinterpret_cast<unw_word_t*>(near.data())};
  use(UNW_INFO_FORMAT_TABLE, &table, sizeof table);
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
  unw_dyn_remote_table_info_t remote{0, k_section, sizeof near / 8, 0x50000};
  use(UNW_INFO_FORMAT_REMOTE_TABLE, &remote, sizeof remote);
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
  remote = {0, 0, sizeof wide / 8, 0x52000};
  use(UNW_INFO_FORMAT_REMOTE_TABLE_64, &remote, sizeof remote);
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
  // First members count from start_ip, which is that of the whole table.
  remote = {0, k_section, sizeof by_start / 8, 0x51000};
  use(UNW_INFO_FORMAT_IP_OFFSET, &remote, sizeof remote);
  describe = [use_table = describe](unw_proc_info_t* found) {
    use_table(found);
    found->start_ip = k_code;
    found->end_ip = k_code + 0x3000;
  };
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
  EXPECT_EQ(target.count("find"), 12u);
  EXPECT_EQ(target.count("put"), 12u);
}

/// Code and entries less than 2 GiB apart, as pairs of 32 bits need it.
alignas(0x1000) std::array<unsigned char, 0x3000> code_here;
std::array<unsigned char, 256> section_here;

/// A table's name is that of all its procedures, here and in a target, and offsets count from its first address.
// covers: DY58
TEST_F(TableFormats, HaveOneNameForAGroup) {
  const auto address = [](const void* object) { return reinterpret_cast<std::uintptr_t>(object); };
  const auto expect_group = [](unw_addr_space_t of, void* argument, const unw_dyn_info_t& info) {
    for (const unw_word_t procedure : {0x0ul, 0x1000ul, 0x2000ul}) {
      const unw_word_t ip = info.start_ip + procedure + 5;
      std::array<char, 32> name{};
      unw_word_t offset = 0;
      const int found = unw_get_proc_name_by_ip(of, ip, name.data(), name.size(), &offset, argument);
      EXPECT_EQ(found, info.u.rti.name_ptr ? 0 : -UNW_ENOINFO);
      EXPECT_STREQ(name.data(), info.u.rti.name_ptr ? "three stubs" : "");
      EXPECT_EQ(offset, info.u.rti.name_ptr ? procedure + 5 : 0);
      unw_proc_info_t described{};
      EXPECT_EQ(unw_get_proc_info_by_ip(of, ip, &described, argument), 0);
      EXPECT_EQ(described.start_ip, info.start_ip + procedure);
    }
  };
  const auto put_group = [&](unw_dyn_info_t& info, unw_word_t code, unw_word_t section) {
    info.start_ip = code;
    info.end_ip = code + 0x3000;
    info.u.rti.segbase = section;
    const auto members = pairs<std::int32_t>(section + k_code - code, k_section);
    info.u.rti.table_len = sizeof members / sizeof(unw_word_t);
    return members;
  };
  const char* const text = "three stubs";
  const auto here = section_of(address(code_here.data()));
  std::ranges::copy(here, section_here.begin());
  put_section();
  put(0x53000, text, 12);
  create();
  for (const int format : {UNW_INFO_FORMAT_TABLE, UNW_INFO_FORMAT_REMOTE_TABLE})
    for (const bool is_named : {true, false}) {
      unw_dyn_info_t local{}, listed{};
      local.format = listed.format = format;
      const auto members = put_group(local, address(code_here.data()), address(section_here.data()));
      local.u.rti.table_data = address(members.data());
      local.u.rti.name_ptr = is_named ? address(text) : 0;
      _U_dyn_register(&local);
      expect_group(unw_local_addr_space, nullptr, local);
      _U_dyn_cancel(&local);

      const auto listed_members = put_group(listed, k_code, k_section);
      put(0x50000, listed_members.data(), sizeof listed_members);
      listed.u.rti.table_data = 0x50000;
      listed.u.rti.name_ptr = is_named ? 0x53000 : 0;
      put(0x55000, &listed, sizeof listed);
      target.memory[0x54000] = 1;
      target.memory[0x54008] = 0x55000;
      target.list = 0x54000;
      target.find = nullptr;
      expect_group(space, &target, listed);
    }
}

// covers: AC05
TEST_F(TableFormats, UnusableAnswersAreErrors) {
  unw_cursor_t cursor;
  const auto step = [&] {
    EXPECT_EQ(start(cursor), 0);
    return unw_step(&cursor);
  };
  use(UNW_INFO_FORMAT_DYNAMIC, nullptr, sizeof(unw_dyn_proc_info_t));
  EXPECT_EQ(step(), -UNW_EINVAL);
  for (const int size : {-1, 0, 8, 31}) {
    use(UNW_INFO_FORMAT_DYNAMIC, &frame.info, size);
    EXPECT_EQ(step(), -UNW_EINVAL) << size;
  }
  for (const int format : {-1, static_cast<int>(UNW_INFO_FORMAT_ARM_EXIDX), 99}) {
    use(format, &frame.info, sizeof frame.info);
    EXPECT_EQ(step(), -UNW_EINVAL) << format;
  }
  unw_dyn_remote_table_info_t nowhere{0, 0, 8, 0x666000};
  use(UNW_INFO_FORMAT_REMOTE_TABLE, &nowhere, sizeof nowhere);
  target.unreadable = -4711;
  EXPECT_EQ(step(), -4711);
  EXPECT_EQ(target.count("put"), target.count("find"));
}

/// Errors in a table are found by its reader, in steps and when procedures are asked for.
// covers: LU11 PI05
TEST_F(TableFormats, OfAnUnknownVersionAreRefused) {
  put_section();
  const auto near = pairs<std::int32_t>(k_section, k_section);
  put(0x50000, near.data(), sizeof near);
  unw_dyn_info_t table{};
  table.end_ip = ~unw_word_t{0};
  table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  table.u.rti = {0, k_section, sizeof near / 8, 0x50000};
  target.find = [&](unw_word_t ip, unw_proc_info_t* found, int need) {
    return UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, found, need, &target);
  };
  unw_cursor_t cursor;
  unw_proc_info_t info;
  ASSERT_EQ(start(cursor), 0);
  EXPECT_EQ(unw_get_proc_info(&cursor, &info), 0);
  target.memory[k_section + 8] ^= 9 ^ 1;  // the version, behind length and id
  EXPECT_EQ(unw_get_proc_info(&cursor, &info), -UNW_EBADVERSION);
  EXPECT_EQ(unw_get_proc_info_by_ip(space, k_code, &info, &target), -UNW_EBADVERSION);
  EXPECT_EQ(unw_step(&cursor), -UNW_EBADVERSION);
  EXPECT_EQ(reg(cursor, UNW_REG_IP), k_code + 0x20);
  target.failures["find without"] = -UNW_EUNSPEC;
  EXPECT_EQ(unw_get_proc_info(&cursor, &info), -UNW_EUNSPEC);
}

/// An entry of which only the beginning can be read.
// covers: AC17
TEST_F(TableFormats, ErrorsOfMemoryInEntriesReachTheCaller) {
  put_section();
  const auto near = pairs<std::int32_t>(k_section, k_section);
  put(0x50000, near.data(), sizeof near);
  unw_dyn_remote_table_info_t remote{0, k_section, sizeof near / 8, 0x50000};
  use(UNW_INFO_FORMAT_REMOTE_TABLE, &remote, sizeof remote);
  target.unreadable = -4711;
  for (unw_word_t word = fdes[0] & ~unw_word_t{7}; word < fdes[0] + 32; word += 8) {
    const auto kept = target.memory.extract(word);
    unw_cursor_t cursor;
    ASSERT_EQ(start(cursor), 0);
    EXPECT_EQ(unw_step(&cursor), -4711) << word - fdes[0];
    target.memory.insert({kept.key(), kept.mapped()});
  }
  EXPECT_EQ(walk(), (std::pair{all_ips(), 0}));
}

/// perf's callback makes the descriptor of a module's table and passes the answer on. Bases may be 0, and nothing
/// behind the descriptor is read.
// covers: AC05 DY43
TEST_F(TableFormats, MayBeSearchedByTheCallback) {
  put_section();
  const auto near = pairs<std::int32_t>(k_section, k_section);
  const auto absolute = pairs<std::int32_t>(0, 0);
  put(0x50000, near.data(), sizeof near);
  put(0x51000, absolute.data(), sizeof absolute);
  const LastPage page;
  auto* const table = new (page.last<unw_dyn_info_t>()) unw_dyn_info_t{};
  table->start_ip = k_code;
  table->end_ip = k_code + 0x3000;
  table->format = UNW_INFO_FORMAT_REMOTE_TABLE;
  target.find = [this, table](unw_word_t ip, unw_proc_info_t* found, int need) {
    return UNW_OBJ(dwarf_search_unwind_table)(space, ip, table, found, need, &target);
  };
  for (const auto& of_table : {unw_dyn_remote_table_info_t{0, k_section, sizeof near / 8, 0x50000},
                               unw_dyn_remote_table_info_t{0, 0, sizeof absolute / 8, 0x51000},
                               unw_dyn_remote_table_info_t{0x4711, 0, sizeof absolute / 8, 0x51000}}) {
    table->u.rti = of_table;
    EXPECT_EQ(walk(), (std::pair{all_ips(), 0})) << of_table.segbase;
    unw_proc_info_t info;
    ASSERT_EQ(unw_get_proc_info_by_ip(space, k_code + 0x1001, &info, &target), 0);
    EXPECT_EQ(info.start_ip, k_code + 0x1000);
    EXPECT_EQ(info.end_ip, k_code + 0x1040);
    EXPECT_EQ(unw_get_proc_info_by_ip(space, k_code + 0x41, &info, &target), -UNW_ENOINFO);
  }
}

}  // namespace
}  // namespace jitunwind::test
