// One row as bytes that may be kept, copied and handed to others: call frame information with a single row, which any
// address may hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A head of 8 bytes, and as many bytes behind it as that says.
struct RowState {
  static constexpr std::size_t k_most = 1024;  ///< 40 rules of at most 12 bytes, and 256 bytes of expressions
  static constexpr std::uint32_t k_magic = 0x6a775253;

  std::uint32_t magic = k_magic;
  std::uint32_t size = 0;  ///< of what is behind the head
  std::array<std::byte, k_most> bytes;

  /// Of head and bytes.
  std::size_t whole_size() const noexcept { return k_head_size + size; }
  static constexpr std::size_t k_head_size = 2 * sizeof(std::uint32_t);
};
static_assert(sizeof(RowState) == RowState::k_head_size + RowState::k_most);

/// `code` is what the row holds for, and not empty. Error of the row, or of what call frame information cannot say
/// (EhFrameWriter::row); row_too_wide: it takes more bytes. Signal-safe.
Status write_row_state(const FrameRow& row, AddrRange code, const Arch& arch, RowState& out) noexcept;

/// The row again, of bytes that may be anything; its expressions lie in `state`. Error unsupported_version: they are no
/// such bytes; or what is wrong with them. Signal-safe.
Status read_row_state(std::span<const std::byte> state, const Arch& arch, FrameRow& out) noexcept;

/// The entry of .eh_frame that holds the row, as if the first byte of `state` were at `begin`. Errors as above.
/// Signal-safe.
Result<Addr> entry_of_row_state(std::span<const std::byte> state, Addr begin, const Arch& arch) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
