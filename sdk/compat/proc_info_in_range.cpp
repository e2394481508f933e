// Procedure information by an .eh_frame_hdr that only the caller knows: that of a file mapped by hand, or of a target.
#include <array>
#include <cstring>
#include <limits>

#include "jitunwind/sdk/compat/callback_space_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {
namespace {

/// `size` 0: not known.
Result<EhFrameHdr> read_eh_frame_hdr(Addr at, std::uint64_t size, Lookup& lookup) noexcept {
  std::array<std::byte, k_max_eh_frame_hdr> bytes;
  const std::size_t readable = lookup.space.memory.read(at, bytes, lookup.window);
  if (readable == 0) return unreadable(lookup.window, at, ".eh_frame_hdr");
  const SectionBytes head{std::span<const std::byte>(bytes).first(readable), at};
  const auto parse = [&] {
    return parse_eh_frame_hdr(head, size == 0 ? std::numeric_limits<std::uint64_t>::max() : size, lookup.space.arch);
  };
  const auto parsed = parse();
  if (!parsed || parsed->table.count != 0) return parsed;
  // There is no table, or it cannot be searched: linkers encode entries in a form that can be.
  std::byte& encoding = bytes[3];
  if (encoding == std::byte{dwarf::pe_omit}) return parsed;
  encoding = std::byte{dwarf::pe_datarel | dwarf::pe_sdata4};
  if (const auto usual = parse(); usual && usual->table.count == 0) return parsed;
  return Error{ErrorCode::bad_encoding, at, "table of .eh_frame_hdr"};
}

Found find_by_hdr(Addr hdr_at, std::uint64_t size, Lookup& lookup, ProcedureInfo& out) noexcept {
  const auto hdr = read_eh_frame_hdr(hdr_at, size, lookup);
  if (!hdr) return hdr.error();
  const Arch& arch = lookup.space.arch;
  const Memory& memory = lookup.space.memory;
  std::array<std::byte, 4096> buffer;  // holds any entry that compilers make
  MemoryView bytes(memory, lookup.window, buffer);
  const Addr pc = lookup.at.lookup();
  Fde fde;
  const auto covers = [&](Addr entry) { return read_fde_for(pc, bytes, CfiContext{arch}, entry, fde); };
  const Found found = find_covering(hdr->table, pc, covers, arch.big_endian, memory, lookup.window);
  if (!found || !*found) return found;
  if (const Status described = read_procedure(fde, arch, memory, lookup.window, out); !described)
    return described.error();
  return true;
}

}  // namespace
}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

extern "C" {

int unw_get_proc_info_in_range(unw_word_t start_ip, unw_word_t end_ip, unw_word_t eh_frame_table,
                               unw_word_t eh_frame_table_len, unw_word_t, unw_word_t, unw_addr_space_t space,
                               unw_word_t ip, unw_proc_info_t* info, int need_unwind_info, void* argument) {
  std::memset(info, 0, sizeof *info);
  if (!space) return -UNW_EINVAL;
  if (ip < start_ip || ip >= end_ip || eh_frame_table == 0) return -UNW_ENOINFO;
  jitunwind::ProcedureInfo found;
  const auto known = jitunwind::with_room([&] {
    jitunwind::MemoryWindow window;
    window.argument = argument;
    jitunwind::Lookup lookup(jitunwind::space_of(*space), jitunwind::CodeAddress::interrupted(ip), window);
    return jitunwind::find_by_hdr(eh_frame_table, eh_frame_table_len, lookup, found);
  });
  const int returned = jitunwind::answer(known, found, *info);
  if (returned == UNW_ESUCCESS && need_unwind_info) jitunwind::mark_as_fde(*info);
  return returned;
}

JITUNWIND_LOCAL(get_proc_info_in_range)
}
