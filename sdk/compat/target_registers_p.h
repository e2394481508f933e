// The registers of another target's innermost frame, which belong to its owner.
#pragma once

#include <cfloat>
#include <cstdint>
#include <cstring>

#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

// unw_fpreg_t has 16 bytes, and the machine's long double may have fewer: it is only copied as bytes.

/// Calls preserve the low 8 bytes of vector registers (AAPCS64, 6.1.2): only these are known for a frame.
inline std::uint64_t low_half(const unw_fpreg_t& value) noexcept {
  std::uint64_t low;
  std::memcpy(&low, &value, sizeof low);  // host byte order, little
  return low;
}
inline void set_low_half(unw_fpreg_t& value, std::uint64_t low) noexcept { std::memcpy(&value, &low, sizeof low); }
/// Sets the low half; the rest is 0.
inline void set_to_low_half(unw_fpreg_t& value, std::uint64_t low) noexcept {
  std::memset(&value, 0, sizeof value);
  set_low_half(value, low);
}
/// Converts an argument: bytes that a long double of this machine does not have are 0.
inline void set_to_passed(unw_fpreg_t& value, const unw_fpreg_t& passed) noexcept {
  constexpr std::size_t k_bytes = LDBL_MANT_DIG == 64 ? 10 : sizeof passed;  // x87's
  std::memset(&value, 0, sizeof value);
  std::memcpy(&value, &passed, k_bytes);
}

/// access_reg and access_fpreg. Functions return 0 or a negative error, which is the callback's unchanged result.
class TargetRegisters {
 public:
  TargetRegisters(unw_addr_space& owner, void* argument) noexcept : owner_(&owner), argument_(argument) {}

  /// Returns an error if the frame could not be distinguished from another one.
  Result<RegisterFile> of_innermost_frame(const Arch& arch) const noexcept;
  int read(const RegisterInfo& reg, unw_word_t& value) const noexcept;
  int write(const RegisterInfo& reg, unw_word_t value) const noexcept;
  int read(const RegisterInfo& reg, unw_fpreg_t& value) const noexcept;
  int write(const RegisterInfo& reg, unw_fpreg_t& value) const noexcept;
  /// Writes those registers of the cursor's frame to the target that differ.
  int establish(const Cursor& at) const noexcept;

 private:
  int establish(const RegisterInfo& reg, std::uint64_t wanted) const noexcept;
  int establish_fp(const RegisterInfo& reg, std::uint64_t wanted) const noexcept;

  unw_addr_space* owner_;
  void* argument_;
};

}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind
