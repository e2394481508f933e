// The target of the included headers: the interface is compiled once for each CPU, by libunwind-<target>.h. Its cursor,
// whose memory holds the engine's. Second names for functions of the interface.
#pragma once

#include <array>
#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/walk/cursor.h"

#include <libunwind.h>

/// An inner namespace of jitunwind, so that one program can link the libraries of several targets.
#define JITUNWIND_COMPAT UNW_PASTE(compat_, UNW_TARGET)

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {

inline const Arch& target_arch() noexcept { return arch::UNW_TARGET; }

static_assert(sizeof(Cursor) <= sizeof(unw_cursor_t) && alignof(Cursor) <= alignof(unw_cursor_t));

/// A caller's buffer for a name, empty at first. A buffer without room is replaced by a private one.
class NameBuffer {
 public:
  NameBuffer(char* buffer, std::size_t size) noexcept : into_(size == 0 ? nothing_ : std::span<char>(buffer, size)) {
    into_[0] = '\0';
  }
  NameBuffer(const NameBuffer&) = delete;
  NameBuffer& operator=(const NameBuffer&) = delete;
  operator std::span<char>() const noexcept { return into_; }

 private:
  std::array<char, 1> nothing_;
  std::span<char> into_;
};

inline Cursor& cursor_of(unw_cursor_t* cursor) noexcept { return *std::launder(reinterpret_cast<Cursor*>(cursor)); }

/// False: the cursor is all zeros, as most programs' cursors are before they are initialised.
inline bool is_made(unw_cursor_t* cursor) noexcept { return cursor_of(cursor).is_made(); }

// The registers of another target's innermost frame, which belong to its owner.

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

#define JITUNWIND_TEXT2(x) #x
#define JITUNWIND_TEXT(x) JITUNWIND_TEXT2(x)
#define JITUNWIND_ALIAS(name, of) \
  extern __typeof__(of) name __attribute__((alias(JITUNWIND_TEXT(of)), visibility("default")));

/// The name that programs with UNW_LOCAL_ONLY use.
#define JITUNWIND_LOCAL(name) \
  JITUNWIND_ALIAS(UNW_PASTE(UNW_PASTE(UNW_PASTE(_UL, UNW_TARGET), _), name), UNW_ARCH_OBJ(name))

// Functions that only the drop-in libraries call, since those have another function under the usual name.

extern "C" {

/// dwarf_search_unwind_table(), which takes another descriptor there.
extern decltype(UNW_OBJ(dwarf_search_unwind_table)) UNW_OBJ(search_unwind_table);

/// unw_get_proc_name(); if no symbol covers the address, the name of the last symbol before it in its section, which is
/// usually that of other code.
extern decltype(unw_get_proc_name) UNW_OBJ(get_nearest_proc_name);
}
