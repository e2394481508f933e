// Structures of libunwind 1.5 to 1.8 that have another layout in its later headers, or that are in no header.
#pragma once

#include <cstddef>
#include <cstdint>

#include <libunwind.h>

namespace jitunwind::release_1_6 {

/// unw_dyn_info_t: a word more in front of the union. The first two words are links, which belong to the library.
struct DynInfo {
  void* shadow;
  std::uintptr_t shadow_state;
  unw_word_t start_ip;
  unw_word_t end_ip;
  unw_word_t gp;
  std::int32_t format;
  std::int32_t pad;
  unw_word_t load_offset;
  decltype(unw_dyn_info_t::u) u;
};
static_assert(sizeof(DynInfo) == 88 && offsetof(DynInfo, u) == 56);

inline unw_dyn_info_t in_todays_layout(const DynInfo& info) noexcept {
  return {nullptr, nullptr, info.start_ip, info.end_ip, info.gp, info.format, 0, info.u};
}

/// elf_image: a file in memory, which the caller of the function unmaps.
struct MappedFile {
  void* bytes;
  std::size_t size;
};

/// elf_dyn_info: the tables of a mapped file. A table is known if its format is not -1; the caller writes -1 before.
struct FileTables {
  MappedFile file;
  DynInfo eh_frame;
  DynInfo debug_frame;
};
static_assert(sizeof(FileTables) == 192);

/// unw_accessors_t without newer members.
struct Accessors {
  decltype(unw_accessors_t::find_proc_info) find_proc_info;
  decltype(unw_accessors_t::put_unwind_info) put_unwind_info;
  decltype(unw_accessors_t::get_dyn_info_list_addr) get_dyn_info_list_addr;
  decltype(unw_accessors_t::access_mem) access_mem;
  decltype(unw_accessors_t::access_reg) access_reg;
  decltype(unw_accessors_t::access_fpreg) access_fpreg;
  decltype(unw_accessors_t::resume) resume;
  decltype(unw_accessors_t::get_proc_name) get_proc_name;
};
static_assert(sizeof(Accessors) == 64 && offsetof(unw_accessors_t, get_elf_filename) == sizeof(Accessors));

}  // namespace jitunwind::release_1_6
