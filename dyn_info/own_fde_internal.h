// The registered procedures that have rows: FDEs of a table format, in their place, and the readability of that memory.
#pragma once

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Whether every reader of .eh_frame understands the form of the FDE. The 64-bit form of LSB 5.0 core, 10.6.1, of FDE
/// or CIE, and return addresses that are signed with key B are not understood by all.
bool has_common_form(const Fde& fde) noexcept;

/// The table pairs of procedures whose FDE was announced to libgcc; their addresses identify these. That memory is
/// probed before it is read. All other registered memory can be read (docs/contracts.md).
struct ToldPairs {
  unw_word_t common = 0;  ///< of FDEs that has_common_form() is true of
  unw_word_t other = 0;
};
extern const ToldPairs told_pairs;
inline bool has_told_pair(const unw_dyn_info_t& info, const unw_word_t& pair) noexcept {
  return info.format == UNW_INFO_FORMAT_IP_OFFSET && info.u.rti.table_data == address_of(&pair);
}
inline bool was_told(const unw_dyn_info_t& info) noexcept {
  return has_told_pair(info, told_pairs.common) || has_told_pair(info, told_pairs.other);
}

/// Returns whether the table has one entry. Each entry of a larger table is the FDE of another procedure. Precondition:
/// a table format.
bool has_one_entry(const unw_dyn_info_t& info, const Arch& arch) noexcept;

/// Returns whether the code matches nothing: "No match" in the table of codes, docs/directives.md "Validation".
/// `unit` is the instruction unit's size, a power of two.
inline bool matches_nothing(const AddrRange& code, unsigned unit) noexcept {
  return code.empty() || (code.size() & (unit - 1)) != 0;
}
inline bool matches_nothing(const unw_dyn_info_t& info, const Arch& arch) noexcept {
  return matches_nothing(code_of(info), arch.unit);
}

/// The FDE that the procedure's table has for `at`; its bytes live as long as the hold on the procedure. Returns false
/// when the table has none. Precondition: a table format. Signal-safe.
Found find_own_fde(const unw_dyn_info_t& info, Addr at, const Arch& arch, MemoryWindow& window, Fde& out) noexcept;

/// Finds the only FDE of the table, if it may be that of `at`, compilers write such, and its CIE is known. Returns its
/// address; 0: in the general way. Such an FDE has_common_form(). Preconditions as above; signal-safe.
Addr find_known_fde(const unw_dyn_info_t& info, Addr at, const Arch& arch, CompactCode& out) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
