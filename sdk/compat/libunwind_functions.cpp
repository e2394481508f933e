// libunwind's C interface over the engine's cursor. It only translates; no unwinding is done here.
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "jitunwind/sdk/compat/callback_space_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/sdk/compat/target_registers_p.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "jitunwind/unwind_core/walk/resume.h"

#include <libunwind.h>

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
