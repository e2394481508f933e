// libunwind's C interface over the engine's cursor. Only translation: no unwinding is done here.
#include <cstring>
#include <new>

#include "sdk/compat/callback_space_p.h"
#include "sdk/compat/cursor_p.h"
#include "sdk/compat/local_names_p.h"
#include "sdk/local_space.h"
#include "sdk/walk.h"
#include "unwind_core/resume.h"
#include "unwind_core/sources/sources.h"

#include <libunwind.h>

namespace {

using jitunwind::checked;
using jitunwind::Cursor;
using jitunwind::cursor_of;
using jitunwind::negated;
using jitunwind::RegisterInfo;

const RegisterInfo* register_of(const Cursor& cursor, int reg) noexcept {
  const RegisterInfo* info = cursor.space().arch.by_libunwind(reg);
  return info && info->column >= 0 ? info : nullptr;
}

int init(unw_cursor_t* cursor, const unw_context_t* context, Cursor::Top top) noexcept {
  const jitunwind::AddressSpace& space = jitunwind::space_of(jitunwind::local_handle());
  new (cursor) Cursor(space, jitunwind::registers_from_ucontext(context, space.arch), top, nullptr,
                      reinterpret_cast<std::uintptr_t>(context));
  return UNW_ESUCCESS;
}

/// Of another target, whose owner has its registers. Nothing where the cursor walks this process.
unw_addr_space_t owner_of(const Cursor& cursor) noexcept {
  unw_addr_space& handle = jitunwind::handle_of(cursor.space());
  return jitunwind::is_local(handle) ? nullptr : &handle;
}

/// What a register of the innermost frame holds, by its owner's word.
int read_of_owner(unw_addr_space_t owner, const Cursor& at, const RegisterInfo& info, unw_word_t& value) noexcept {
  const auto access_reg = owner->accessors.access_reg;
  return access_reg ? checked(access_reg(owner, info.libunwind, &value, false, at.argument())) : -UNW_EBADREG;
}
int write_of_owner(unw_addr_space_t owner, const Cursor& at, const RegisterInfo& info, unw_word_t value) noexcept {
  const auto access_reg = owner->accessors.access_reg;
  return access_reg ? checked(access_reg(owner, info.libunwind, &value, true, at.argument())) : -UNW_EREADONLYREG;
}

/// The registers of the cursor's frame into the target's, as far as they are others.
int establish(unw_addr_space_t owner, const Cursor& at) noexcept {
  const jitunwind::Arch& arch = at.space().arch;
  for (const RegisterInfo& info : arch.registers) {
    if (!jitunwind::is_word_of_target(info)) continue;
    auto wanted = at.registers().get(info.column);
    if (info.dwarf == arch.pc) wanted = at.pc();
    if (info.dwarf == arch.sp) wanted = at.sp() + at.pushed_arguments();
    if (!wanted) continue;
    unw_word_t present = 0;
    if (read_of_owner(owner, at, info, present) == UNW_ESUCCESS && present == *wanted) continue;
    if (const int returned = write_of_owner(owner, at, info, *wanted); returned != UNW_ESUCCESS) return returned;
  }
  return UNW_ESUCCESS;
}

}  // namespace

void jitunwind::fill(const ProcedureInfo& from, unw_proc_info_t& to) noexcept {
  to.start_ip = from.range.begin;
  to.end_ip = from.range.end;
  to.lsda = from.lsda;
  to.handler = from.handler;
  to.gp = from.gp;
  to.flags = from.flags;
  to.format = from.format;
  to.unwind_info = reinterpret_cast<void*>(static_cast<std::uintptr_t>(from.unwind_info));
  to.unwind_info_size = static_cast<int>(from.unwind_info_size);
}

extern "C" {

int unw_init_local(unw_cursor_t* cursor, unw_context_t* context) {
  return init(cursor, context, Cursor::Top::returned_to);
}

int unw_init_local2(unw_cursor_t* cursor, unw_context_t* context, int flag) {
  if (flag == 0) return init(cursor, context, Cursor::Top::returned_to);
  if (flag == UNW_INIT_SIGNAL_FRAME) return init(cursor, context, Cursor::Top::interrupted);
  return -UNW_EINVAL;
}

int unw_step(unw_cursor_t* cursor) {
  const auto moved = cursor_of(cursor).step();
  return moved ? *moved : negated(moved.error());
}

int unw_get_reg(unw_cursor_t* cursor, unw_regnum_t reg, unw_word_t* value) {
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
    if (const unw_addr_space_t owner = owner_of(at)) return read_of_owner(owner, at, *info, *value);
  if (!found) return negated(found.error());
  *value = *found;
  return UNW_ESUCCESS;
}

int unw_set_reg(unw_cursor_t* cursor, unw_regnum_t reg, unw_word_t value) {
  Cursor& at = cursor_of(cursor);
  const jitunwind::Arch& arch = at.space().arch;
  if (reg == JITUNWIND_TDEP_CFA) return -UNW_EREADONLYREG;
  const RegisterInfo* info = register_of(at, reg);
  if (reg == UNW_REG_IP) info = arch.by_dwarf(arch.pc);
  if (reg == UNW_REG_SP) info = arch.by_dwarf(arch.sp);
  if (!info) return -UNW_EBADREG;
  const unw_addr_space_t owner = owner_of(at);
  const jitunwind::SaveLocation place = at.location(info->dwarf);
  if (owner && place.kind == jitunwind::SaveLocation::Kind::reg) {
    const int returned = write_of_owner(owner, at, *arch.by_dwarf(place.reg), value);
    if (returned != UNW_ESUCCESS) return returned;
  }
  const auto written = at.set(info->dwarf, value);
  return written ? UNW_ESUCCESS : negated(written.error());
}

int unw_set_fpreg(unw_cursor_t*, unw_regnum_t, unw_fpreg_t) { return -UNW_EBADREG; }

int unw_resume(unw_cursor_t* cursor) {
  const Cursor& at = cursor_of(cursor);
  const unw_addr_space_t owner = owner_of(at);
  if (!owner) return negated(jitunwind::resume(at).error());
  if (!owner->accessors.resume) return -UNW_EINVAL;
  if (const int returned = establish(owner, at); returned != UNW_ESUCCESS) return returned;
  return checked(owner->accessors.resume(owner, cursor, at.argument()));
}

int unw_get_fpreg(unw_cursor_t*, unw_regnum_t, unw_fpreg_t*) { return -UNW_EBADREG; }

int unw_get_save_loc(unw_cursor_t* cursor, int reg, unw_save_loc_t* location) {
  const Cursor& at = cursor_of(cursor);
  const RegisterInfo* info = register_of(at, reg);
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

int unw_is_signal_frame(unw_cursor_t* cursor) {
  const auto is = cursor_of(cursor).is_signal_frame();
  return is ? *is : negated(is.error());
}

int unw_is_plt_entry(unw_cursor_t* cursor) {
  const Cursor& at = cursor_of(cursor);
  jitunwind::MemoryWindow window;
  jitunwind::Lookup lookup(at.space(), at.address(), window);
  jitunwind::FrameRow row;
  const auto found = jitunwind::plt_stub_source().find_row(lookup, row);
  return found && *found;
}

int unw_get_proc_info(unw_cursor_t* cursor, unw_proc_info_t* info) {
  std::memset(info, 0, sizeof *info);
  const auto found = cursor_of(cursor).procedure();
  if (!found) return negated(found.error());
  fill(*found, *info);
  return UNW_ESUCCESS;
}

int unw_get_proc_name(unw_cursor_t* cursor, char* buffer, size_t size, unw_word_t* offset) {
  const jitunwind::NameBuffer into(buffer, size);
  const auto name = cursor_of(cursor).name(into);
  if (!name) return negated(name.error());
  if (offset) *offset = cursor_of(cursor).pc() - name->start;
  return name->truncated ? -UNW_ENOMEM : UNW_ESUCCESS;
}

const char* unw_regname(unw_regnum_t reg) {
  const RegisterInfo* info = jitunwind::local_space().arch.by_libunwind(reg);
  return info ? info->libunwind_name : "???";
}

const char* unw_strerror(int error) {
  switch (error) {
    case UNW_ESUCCESS:
      return "no error";
    case -UNW_EUNSPEC:
      return "unspecified (general) error";
    case -UNW_ENOMEM:
      return "out of memory";
    case -UNW_EBADREG:
      return "bad register number";
    case -UNW_EREADONLYREG:
      return "attempt to write read-only register";
    case -UNW_ESTOPUNWIND:
      return "stop unwinding";
    case -UNW_EINVALIDIP:
      return "invalid IP";
    case -UNW_EBADFRAME:
      return "bad frame";
    case -UNW_EINVAL:
      return "unsupported operation or bad value";
    case -UNW_EBADVERSION:
      return "unwind info has unsupported version";
    case -UNW_ENOINFO:
      return "no unwind info found";
    default:
      return "invalid error code";
  }
}

int unw_tdep_is_fpreg(int reg) {
  const RegisterInfo* info = jitunwind::local_space().arch.by_libunwind(reg);
  return info && info->reg_class == jitunwind::RegClass::vector;
}

int unw_backtrace2(void** addresses, int size, unw_context_t* context, int flag) {
  if (!addresses || size <= 0) return 0;
  if (!context) return unw_backtrace(addresses, size);
  if (flag != 0 && flag != UNW_INIT_SIGNAL_FRAME) return 0;
  const auto top = flag == 0 ? Cursor::Top::returned_to : Cursor::Top::interrupted;
  return static_cast<int>(jitunwind::backtrace(context, top, {addresses, static_cast<std::size_t>(size)}));
}

// The names that programs with UNW_LOCAL_ONLY use.
JITUNWIND_LOCAL(init_local)
JITUNWIND_LOCAL(init_local2)
JITUNWIND_LOCAL(step)
JITUNWIND_LOCAL(get_reg)
JITUNWIND_LOCAL(get_fpreg)
JITUNWIND_LOCAL(set_reg)
JITUNWIND_LOCAL(set_fpreg)
JITUNWIND_LOCAL(resume)
JITUNWIND_LOCAL(get_save_loc)
JITUNWIND_LOCAL(is_signal_frame)
JITUNWIND_LOCAL(is_plt_entry)
JITUNWIND_LOCAL(get_proc_info)
JITUNWIND_LOCAL(get_proc_name)
}
