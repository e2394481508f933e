#include "jitunwind/sdk/compat/target_registers_p.h"

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/sdk/compat/callback_space_p.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {
namespace {

bool is_word(const RegisterInfo& reg) noexcept {
  return reg.column >= 0 && reg.libunwind >= 0 && reg.reg_class == RegClass::general;
}
/// Registers whose value in a frame is known; the others are scratch.
bool is_preserved_fp(const RegisterInfo& reg) noexcept {
  return reg.column >= 0 && reg.libunwind >= 0 && reg.reg_class == RegClass::vector;
}

}  // namespace

int TargetRegisters::read(const RegisterInfo& reg, unw_word_t& value) const noexcept {
  const auto access = owner_->accessors.access_reg;
  return access ? checked(access(owner_, reg.libunwind, &value, false, argument_)) : -UNW_EBADREG;
}

int TargetRegisters::write(const RegisterInfo& reg, unw_word_t value) const noexcept {
  const auto access = owner_->accessors.access_reg;
  return access ? checked(access(owner_, reg.libunwind, &value, true, argument_)) : -UNW_EREADONLYREG;
}

int TargetRegisters::read(const RegisterInfo& reg, unw_fpreg_t& value) const noexcept {
  const auto access = owner_->accessors.access_fpreg;
  return access ? checked(access(owner_, reg.libunwind, &value, false, argument_)) : -UNW_EBADREG;
}

int TargetRegisters::write(const RegisterInfo& reg, unw_fpreg_t& value) const noexcept {
  const auto access = owner_->accessors.access_fpreg;
  return access ? checked(access(owner_, reg.libunwind, &value, true, argument_)) : -UNW_EREADONLYREG;
}

Result<RegisterFile> TargetRegisters::of_innermost_frame(const Arch& arch) const noexcept {
  if (!owner_->accessors.access_reg) return Error{ErrorCode::invalid_argument, 0, "access_reg"};
  RegisterFile registers;
  for (const RegisterInfo& reg : arch.registers) {
    if (is_word(reg)) {
      unw_word_t value = 0;
      const int returned = read(reg, value);
      if (returned == UNW_ESUCCESS)
        registers.set_from_register(reg.column, value, reg.dwarf);
      else if (reg.dwarf == arch.pc || reg.dwarf == arch.sp)
        return callback_error(returned, "access_reg");
    } else if (is_preserved_fp(reg)) {
      unw_fpreg_t value;
      set_to_low_half(value, 0);
      if (read(reg, value) == UNW_ESUCCESS) registers.set_from_register(reg.column, low_half(value), reg.dwarf);
    }
  }
  return registers;
}

int TargetRegisters::establish(const RegisterInfo& reg, std::uint64_t wanted) const noexcept {
  unw_word_t present = 0;
  if (read(reg, present) == UNW_ESUCCESS && present == wanted) return UNW_ESUCCESS;
  return write(reg, unw_word_t{wanted});
}

int TargetRegisters::establish_fp(const RegisterInfo& reg, std::uint64_t wanted) const noexcept {
  unw_fpreg_t present;
  set_to_low_half(present, 0);
  const int returned = read(reg, present);
  if (returned != UNW_ESUCCESS || low_half(present) == wanted) return returned;
  set_low_half(present, wanted);
  return write(reg, present);
}

int TargetRegisters::establish(const Cursor& at) const noexcept {
  const Arch& arch = at.space().arch;
  for (const RegisterInfo& reg : arch.registers) {
    auto wanted = at.registers().get(reg.column);
    if (reg.dwarf == arch.pc) wanted = at.pc();
    if (reg.dwarf == arch.sp) wanted = at.sp() + at.pushed_arguments();
    int returned = UNW_ESUCCESS;
    if (wanted && is_word(reg)) returned = establish(reg, *wanted);
    if (wanted && is_preserved_fp(reg)) returned = establish_fp(reg, *wanted);
    if (returned != UNW_ESUCCESS) return returned;
  }
  return UNW_ESUCCESS;
}

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind
