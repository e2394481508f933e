// Known machine code at an address, and the check whether a number is a return address.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "jitunwind/unwind_core/address_space.h"

namespace jitunwind {

/// Finds the first pattern that matches the code around `pc`, with `pc` at the pattern's offset; null: there is none.
/// `cut_off`, if given, is set when there is none, to the address at which memory ends within a possible pattern, whose
/// byte at the pc is readable; it stays empty otherwise.
const CodePattern* find_pattern(std::span<const CodePattern> patterns, Addr pc, const Memory& memory,
                                MemoryWindow& window, std::optional<Addr>* cut_off = nullptr) noexcept;

/// The range of the code of a matching pattern.
inline AddrRange range_of(const CodePattern& pattern, Addr pc) noexcept {
  const Addr begin = pc - pattern.pc_offset;
  return {begin, begin + pattern.bytes.size()};
}

/// Fills in the procedure at `pc`, whose range is known if the code matched a pattern. False: it did not match.
inline bool procedure_of(const CodePattern* matching, Addr pc, RowOrigin origin, ProcedureInfo& out) noexcept {
  if (!matching) return false;
  out = {};
  out.range = range_of(*matching, pc);
  out.origin = origin;
  return true;
}

/// The bytes before a return address, as many as the longest call has.
class CodeBefore {
 public:
  static constexpr std::size_t k_size = 8;

  /// Precondition: address != 0.
  CodeBefore(Addr address, const Memory& memory, MemoryWindow& window) noexcept;
  /// 0: they cannot be read.
  std::size_t size() const noexcept { return size_; }
  /// Precondition: count <= size().
  std::span<const std::byte> last(std::size_t count) const noexcept { return std::span(bytes_).last(count); }
  bool ends_with(const CodePattern& pattern) const noexcept;
  /// The call at the end of these bytes; null: there is none.
  const CodePattern* find_call(const Arch& arch) const noexcept;
  bool is_call(const Arch& arch) const noexcept { return find_call(arch) != nullptr; }

 private:
  std::array<std::byte, k_size> bytes_;
  std::size_t size_ = 0;
};

/// The code around `at`, as much as one lookup tells: an executable segment of a module, or an executable page. If the
/// memory does not tell permissions, all readable memory counts as code made at run time. Empty: `at` is no code.
AddrRange code_around(const AddressSpace& space, MemoryWindow& window, Addr at) noexcept;
inline bool is_code(const AddressSpace& space, MemoryWindow& window, Addr at) noexcept {
  return code_around(space, window, at).contains(at);
}

/// Whether a call could have pushed `address`: the instruction before it is a call, and it is code. About one in
/// 150 random numbers that happen to be addresses of code passes.
bool is_after_call(const AddressSpace& space, MemoryWindow& window, Addr address) noexcept;

}  // namespace jitunwind
