// Places in a procedure, as arguments of builders.
#pragma once

#include <concepts>
#include <cstdint>

#pragma GCC visibility push(default)
namespace jitunwind {

/// The bytes of one instruction: begin inclusive, end exclusive, as offsets in the procedure. Negative offsets count
/// from the procedure's end, so that an epilogue can be described before the size is known: {-1, 0} is the last byte.
struct Instruction {
  std::int64_t begin;
  std::int64_t end;

  // Takes any integer types, because code offsets come as size_t, uint32_t and int.
  template <std::integral Begin, std::integral End>
  constexpr Instruction(Begin b, End e) noexcept
      : begin(static_cast<std::int64_t>(b)), end(static_cast<std::int64_t>(e)) {}

  constexpr bool from_end() const noexcept { return begin < 0; }
};

}  // namespace jitunwind
#pragma GCC visibility pop
