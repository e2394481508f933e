// An AArch64 target in either byte order: three procedures with `stp x29,x30,[sp,#-32]!; str d8,[sp,#16]` behind them,
// each called by the next; the last has no caller. Included behind <libunwind-aarch64.h>.
#pragma once

#include <cstring>
#include <map>

#include "tests/support/cfi_assembler.h"

namespace jitunwind::test {

struct CrossStack {
  static constexpr unw_word_t k_code = 0x40'0000;
  static constexpr unw_word_t k_stack = 0x7fff'0000;

  explicit CrossStack(bool big) : big_endian(big) {
    for (unw_word_t i = 0; i < 3; ++i) {
      const unw_word_t sp = k_stack + 32 * i;
      memory[sp] = 0x2900 + i;
      memory[sp + 8] = i == 2 ? 0 : ip_of(i + 1);
      memory[sp + 16] = 0xd800 + i;
    }
    put_table();
  }

  static unw_word_t ip_of(unw_word_t frame) { return k_code + 0x1000 * frame + 0x20; }

  /// Bytes of the target, which its owner reads by words.
  void put(unw_word_t at, const Bytes& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const unw_word_t place = at + i;
      const unsigned shift = 8 * static_cast<unsigned>(big_endian ? 7 - place % 8 : place % 8);
      unw_word_t& word = memory[place & ~unw_word_t{7}];
      word = (word & ~(unw_word_t{0xff} << shift)) | std::to_integer<unw_word_t>(bytes.vector()[i]) << shift;
    }
  }

  int find(unw_word_t ip, unw_proc_info_t* info) {
    if (ip < k_code || ip >= k_code + 0x3000) return -UNW_ENOINFO;
    std::memset(info, 0, sizeof *info);
    info->start_ip = ip & ~unw_word_t{0xfff};
    info->end_ip = info->start_ip + 0x40;
    info->format = UNW_INFO_FORMAT_REMOTE_TABLE;
    info->unwind_info = &table;
    info->unwind_info_size = sizeof table;
    return 0;
  }

  bool big_endian;
  std::map<unw_word_t, unw_word_t> memory;  ///< words, in host byte order
  std::map<int, unw_word_t> registers{{UNW_AARCH64_PC, ip_of(0)}, {UNW_AARCH64_SP, k_stack}, {UNW_AARCH64_X29, 0x29},
                                      {UNW_AARCH64_X30, 0x30},    {UNW_AARCH64_X19, 0x19},   {UNW_AARCH64_X0, 0xa0}};
  unw_dyn_remote_table_info_t table{};

 private:
  void put_table() {
    constexpr Addr k_section = 0x30000, k_table = 0x50000;
    CfiSection section(k_section, CfiContext::Format::eh_frame, false, big_endian);
    const Addr cie =
        section.cie({.return_address = 30, .instructions{0x0c, 31, 32, 0x80 | 29, 4, 0x80 | 30, 3, 0x05, 72, 2}});
    Bytes pairs = section.bytes();
    for (Addr i = 0; i < 3; ++i) {
      const Addr start = k_code + 0x1000 * i;
      const Addr fde = section.fde(cie, start, 0x40, {});
      pairs.u32(start - k_section).u32(fde - k_section);
    }
    Bytes bytes = section.data();
    put(k_section, bytes.fill(64, 0));
    put(k_table, pairs);
    table.segbase = k_section;
    table.table_len = pairs.size() / 8;
    table.table_data = k_table;
  }
};

}  // namespace jitunwind::test
