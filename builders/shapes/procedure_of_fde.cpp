#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"

#include <cstdint>

namespace jitunwind {
namespace {

/// A table with one entry. Its pair in format IP_OFFSET is relative to "start_ip, segbase", and segbase is the FDE.
/// Code, table and FDE can therefore be any distance apart.
struct Pair {
  std::int32_t start;
  std::int32_t fde;
};
constexpr Pair k_start_and_segbase{0, 0};
/// A table with the same content at another address, which marks procedures without a personality routine.
constexpr Pair k_without_personality{0, 0};
constexpr unw_word_t k_words = sizeof(Pair) / sizeof(std::uintptr_t);  // words of this CPU

}  // namespace

unw_dyn_info_t procedure_of_fde(AddrRange code, Addr fde, Addr name) noexcept {
  unw_dyn_info_t info{};
  info.start_ip = code.begin;
  info.end_ip = code.end;
  info.format = UNW_INFO_FORMAT_IP_OFFSET;
  info.u.rti.name_ptr = name;
  if (fde == 0) return info;
  info.u.rti.segbase = fde;
  info.u.rti.table_len = k_words;
  info.u.rti.table_data = reinterpret_cast<std::uintptr_t>(&k_start_and_segbase);
  return info;
}

unw_dyn_info_t procedure_without_personality(AddrRange code, Addr fde) noexcept {
  unw_dyn_info_t info = procedure_of_fde(code, fde);
  if (fde != 0) info.u.rti.table_data = reinterpret_cast<std::uintptr_t>(&k_without_personality);
  return info;
}

bool may_have_other_personality(const unw_dyn_info_t& info) noexcept {
  return info.format == UNW_INFO_FORMAT_IP_OFFSET &&
         info.u.rti.table_data == reinterpret_cast<std::uintptr_t>(&k_without_personality);
}

}  // namespace jitunwind
