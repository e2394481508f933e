// libunwind's C interface over the engine's cursor. It only translates; no unwinding is done here.
#include <libunwind.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include "jitunwind/sdk/compat/callback_space_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/unwind_core/emit/row_state.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "jitunwind/unwind_core/walk/resume.h"

namespace {

using jitunwind::checked;
using jitunwind::Cursor;
using jitunwind::cursor_of;
using jitunwind::is_made;
using jitunwind::negated;
using jitunwind::RegisterInfo;
using jitunwind::TargetRegisters;

const RegisterInfo* register_of(const Cursor& cursor, int reg) noexcept {
  const RegisterInfo* info = cursor.space().arch.by_libunwind(reg);
  return info && info->column >= 0 ? info : nullptr;
}

/// The registers of another target, which its owner has. Empty: the cursor walks this process.
std::optional<TargetRegisters> owner_of(const Cursor& cursor) noexcept {
  unw_addr_space& handle = jitunwind::handle_of(cursor.space());
  if (jitunwind::is_local(handle)) return std::nullopt;
  return TargetRegisters(handle, cursor.argument());
}

const RegisterInfo* fp_register_of(const Cursor& cursor, int reg) noexcept {
  const RegisterInfo* const info = cursor.space().arch.by_libunwind(reg);
  return info && info->reg_class == jitunwind::RegClass::vector ? info : nullptr;
}

struct FpHolder {
  std::optional<TargetRegisters> owner;
  const RegisterInfo* reg = nullptr;  ///< null: it is in memory, or has no value
};

/// The register of the innermost frame that still has the value. Registers that calls do not preserve have a value only
/// in that frame.
FpHolder holder_of_fp(const Cursor& at, const RegisterInfo& reg) noexcept {
  const auto owner = owner_of(at);
  if (!owner) return {};
  if (at.depth() == 0 || reg.column < 0) return {owner, at.depth() == 0 ? &reg : nullptr};
  const jitunwind::SaveLocation place = at.location(reg.dwarf);
  return {owner, place.kind == jitunwind::SaveLocation::Kind::reg ? at.space().arch.by_dwarf(place.reg) : nullptr};
}

}  // namespace

extern "C" {

int unw_step(unw_cursor_t* cursor) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  const auto moved = cursor_of(cursor).step();
  return moved ? *moved : negated(moved.error());
}

int unw_get_reg(unw_cursor_t* cursor, unw_regnum_t reg, unw_word_t* value) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  const Cursor& at = cursor_of(cursor);
  if (reg == UNW_REG_IP) {
    *value = at.pc();
    return UNW_ESUCCESS;
  }
  if (reg == UNW_REG_SP || reg == JITUNWIND_TDEP_CFA) {
    *value = at.sp();
    return UNW_ESUCCESS;
  }
  const RegisterInfo* info = register_of(at, reg);
  if (!info) return -UNW_EBADREG;
  const auto found = at.get(info->dwarf);
  if (!found && at.depth() == 0)
    if (const auto owner = owner_of(at)) return owner->read(*info, *value);
  if (!found) return negated(found.error());
  *value = *found;
  return UNW_ESUCCESS;
}

int unw_set_reg(unw_cursor_t* cursor, unw_regnum_t reg, unw_word_t value) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  Cursor& at = cursor_of(cursor);
  const jitunwind::Arch& arch = at.space().arch;
  if (reg == JITUNWIND_TDEP_CFA && reg != UNW_REG_SP) return -UNW_EREADONLYREG;
  const RegisterInfo* info = register_of(at, reg);
  if (reg == UNW_REG_IP) info = arch.by_dwarf(arch.pc);
  if (reg == UNW_REG_SP) info = arch.by_dwarf(arch.sp);
  if (!info) return -UNW_EBADREG;
  const jitunwind::SaveLocation place = at.location(info->dwarf);
  if (const auto owner = owner_of(at); owner && place.kind == jitunwind::SaveLocation::Kind::reg) {
    const int returned = owner->write(*arch.by_dwarf(place.reg), value);
    if (returned != UNW_ESUCCESS) return returned;
  }
  const auto written = at.set(info->dwarf, value);
  return written ? UNW_ESUCCESS : negated(written.error());
}

int unw_resume(unw_cursor_t* cursor) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  const Cursor& at = cursor_of(cursor);
  const auto owner = owner_of(at);
  if (!owner) return negated(jitunwind::resume(at).error());
  const unw_addr_space_t handle = &jitunwind::handle_of(at.space());
  if (!handle->accessors.resume) return -UNW_EINVAL;
  if (const int returned = owner->establish(at); returned != UNW_ESUCCESS) return returned;
  return checked(handle->accessors.resume(handle, cursor, at.argument()));
}

int unw_get_fpreg(unw_cursor_t* cursor, unw_regnum_t reg, unw_fpreg_t* value) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  const Cursor& at = cursor_of(cursor);
  const RegisterInfo* const info = fp_register_of(at, reg);
  if (!info) return -UNW_EBADREG;
  if (const auto [owner, holder] = holder_of_fp(at, *info); holder) return owner->read(*holder, *value);
  const auto found = at.get(info->dwarf);
  if (!found) return negated(found.error());
  jitunwind::set_to_low_half(*value, *found);
  return UNW_ESUCCESS;
}

int unw_set_fpreg(unw_cursor_t* cursor, unw_regnum_t reg, unw_fpreg_t value) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  Cursor& at = cursor_of(cursor);
  const RegisterInfo* const info = fp_register_of(at, reg);
  if (!info) return -UNW_EBADREG;
  if (const auto [owner, holder] = holder_of_fp(at, *info); holder) {
    unw_fpreg_t whole;
    jitunwind::set_to_passed(whole, value);
    const int returned = owner->write(*holder, whole);
    if (returned != UNW_ESUCCESS || info->column < 0) return returned;
  }
  const auto written = at.set(info->dwarf, jitunwind::low_half(value));
  return written ? UNW_ESUCCESS : negated(written.error());
}

int unw_get_save_loc(unw_cursor_t* cursor, int reg, unw_save_loc_t* location) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  const Cursor& at = cursor_of(cursor);
  const RegisterInfo* info = register_of(at, reg);
  if (reg == UNW_REG_IP) info = at.space().arch.by_dwarf(at.space().arch.pc);
  if (!info) return -UNW_EBADREG;
  std::memset(location, 0, sizeof *location);
  const jitunwind::SaveLocation saved = at.location(info->dwarf);
  switch (saved.kind) {
    case jitunwind::SaveLocation::Kind::none:
      location->type = UNW_SLT_NONE;
      break;
    case jitunwind::SaveLocation::Kind::memory:
      location->type = UNW_SLT_MEMORY;
      location->u.addr = saved.at;
      break;
    case jitunwind::SaveLocation::Kind::reg: {
      const RegisterInfo* holder = at.space().arch.by_dwarf(saved.reg);
      location->type = UNW_SLT_REG;
      location->u.regnum = holder ? holder->libunwind : -1;
      break;
    }
  }
  return UNW_ESUCCESS;
}

int unw_set_guesses(unw_cursor_t* cursor, unw_guesses_t guesses) {
  if (!is_made(cursor) || (guesses != UNW_GUESSES_CONFIRMED && guesses != UNW_GUESSES_BOLD)) return -UNW_EINVAL;
  cursor_of(cursor).set_guesses(guesses == UNW_GUESSES_BOLD ? jitunwind::Guesses::bold : jitunwind::Guesses::confirmed);
  return UNW_ESUCCESS;
}

int unw_is_guess(unw_cursor_t* cursor) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  return jitunwind::is_guess(cursor_of(cursor).origin()) ? 1 : 0;
}

int unw_is_signal_frame(unw_cursor_t* cursor) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  const auto is = cursor_of(cursor).is_signal_frame();
  return is ? *is : negated(is.error());
}

int unw_is_interrupted_frame(unw_cursor_t* cursor) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  return !cursor_of(cursor).address().is_return_address();
}

int unw_is_plt_entry(unw_cursor_t* cursor) {
  if (!is_made(cursor)) return -UNW_EINVAL;
  const Cursor& at = cursor_of(cursor);
  return jitunwind::with_room(&at, [&] {
    jitunwind::MemoryWindow window;
    jitunwind::Lookup lookup(at.space(), at.address(), window);
    jitunwind::FrameRow row;
    const auto found = jitunwind::plt_stub_source().find_row(lookup, row);
    return found && *found;
  });
}

int unw_get_proc_info(unw_cursor_t* cursor, unw_proc_info_t* info) {
  std::memset(info, 0, sizeof *info);
  if (!is_made(cursor)) return -UNW_EINVAL;
  const auto found = cursor_of(cursor).procedure();
  if (!found) return negated(found.error());
  fill(*found, *info);
  return UNW_ESUCCESS;
}

const char* unw_regname(unw_regnum_t reg) {
  const RegisterInfo* info = jitunwind::target_arch().by_libunwind(reg);
  return info ? info->libunwind_name : "???";
}

const char* unw_strerror(int error) {
  static constexpr std::array k_texts{"no error",
                                      "unspecified (general) error",
                                      "out of memory",
                                      "bad register number",
                                      "attempt to write read-only register",
                                      "stop unwinding",
                                      "invalid IP",
                                      "bad frame",
                                      "unsupported operation or bad value",
                                      "unwind info has unsupported version",
                                      "no unwind info found"};
  static_assert(UNW_ESUCCESS == 0 && k_texts.size() == UNW_ENOINFO + 1);
  const std::int64_t code = -std::int64_t{error};
  return code < 0 || code > UNW_ENOINFO ? "invalid error code" : k_texts[static_cast<std::size_t>(code)];
}

int unw_tdep_is_fpreg(int reg) {
  const RegisterInfo* info = jitunwind::target_arch().by_libunwind(reg);
  return info && info->reg_class == jitunwind::RegClass::vector;
}

// The names that programs with UNW_LOCAL_ONLY use.
JITUNWIND_LOCAL(step)
JITUNWIND_LOCAL(get_reg)
JITUNWIND_LOCAL(get_fpreg)
JITUNWIND_LOCAL(set_reg)
JITUNWIND_LOCAL(set_fpreg)
JITUNWIND_LOCAL(resume)
JITUNWIND_LOCAL(get_save_loc)
JITUNWIND_LOCAL(is_signal_frame)
JITUNWIND_LOCAL(set_guesses)
JITUNWIND_LOCAL(is_guess)
JITUNWIND_LOCAL(is_interrupted_frame)
JITUNWIND_LOCAL(is_plt_entry)
JITUNWIND_LOCAL(get_proc_info)
}

// Procedure information by an .eh_frame_hdr that only the caller knows: that of a file mapped by hand, or of a target.
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

// The rows of a procedure as bytes that may be kept.
namespace jitunwind {
inline namespace JITUNWIND_COMPAT {
namespace {

constexpr unsigned k_most_states = 1u << 20;  // in one procedure; no code has more

/// The row at an address of a procedure, and its range.
Result<AddrRange> row_from(Addr at, AddrRange procedure, const Cursor& cursor, FrameRow& out) noexcept {
  MemoryWindow window;
  window.argument = cursor.argument();
  Lookup lookup(cursor.space(), CodeAddress::interrupted(at), window);
  const Found found = cursor.space().find_row(lookup, out);
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::no_info, at, "no unwind information for this pc"};
  // Rows of aliases are valid only at the looked up address.
  const Addr end = out.range.contains(at) ? std::min(out.range.end, procedure.end) : at + cursor.space().arch.unit;
  return AddrRange{at, end};
}

/// The state from an address of a procedure on, and its range.
Result<AddrRange> state_from(Addr at, AddrRange procedure, const Cursor& cursor, RowState& out) noexcept {
  FrameRow row;
  const auto code = row_from(at, procedure, cursor, row);
  if (!code) return code;
  if (const Status written = write_row_state(row, *code, cursor.space().arch, out); !written) return written.error();
  return code;
}

Result<bool> step_by_state(Cursor& cursor, const void* data) noexcept {
  // The head has the length of the bytes; the program that kept them must not have changed it.
  std::uint32_t size = 0;
  std::memcpy(&size, static_cast<const std::byte*>(data) + sizeof(std::uint32_t), sizeof size);
  const std::size_t whole = RowState::k_head_size + std::min<std::size_t>(size, RowState::k_most);
  FrameRow row;
  const std::span bytes(static_cast<const std::byte*>(data), whole);
  if (const Status read = read_row_state(bytes, cursor.space().arch, row); !read) return read.error();
  return cursor.step_by(row);
}

}  // namespace
}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

extern "C" {

int unw_reg_states_iterate(unw_cursor_t* cursor, unw_reg_states_callback callback, void* token) {
  if (!jitunwind::is_made(cursor)) return -UNW_EINVAL;
  jitunwind::Cursor& at = jitunwind::cursor_of(cursor);
  const auto procedure = at.procedure();
  if (!procedure) return jitunwind::negated(procedure.error());
  unsigned states = 0;
  for (jitunwind::Addr begin = procedure->range.begin; begin < procedure->range.end;) {
    if (++states > jitunwind::k_most_states) return -UNW_EBADFRAME;
    jitunwind::RowState state;
    const auto code =
        jitunwind::with_room(&at, [&] { return jitunwind::state_from(begin, procedure->range, at, state); });
    if (!code) return jitunwind::negated(code.error());
    const std::size_t size = state.whole_size();
    if (const int returned = callback(token, &state, size, code->begin, code->end); returned != 0) return returned;
    begin = code->end;
  }
  return UNW_ESUCCESS;
}

int unw_apply_reg_state(unw_cursor_t* cursor, void* data) {
  if (!jitunwind::is_made(cursor)) return -UNW_EINVAL;
  jitunwind::Cursor& at = jitunwind::cursor_of(cursor);
  const auto moved = jitunwind::with_room(&at, [&] { return jitunwind::step_by_state(at, data); });
  return moved ? int{UNW_ESUCCESS} : jitunwind::negated(moved.error());
}

JITUNWIND_LOCAL(reg_states_iterate)
JITUNWIND_LOCAL(apply_reg_state)
}
