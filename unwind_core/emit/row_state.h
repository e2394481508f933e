// One row as bytes that may be kept, copied and passed on: call frame information with a single row, valid at any
// address.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A head of 8 bytes, and behind it as many bytes as the head says.
struct RowState {
  static constexpr std::size_t k_most = 1024;  ///< 40 rules of at most 12 bytes, and 256 bytes of expressions
  static constexpr std::uint32_t k_magic = 0x6a775253;

  std::uint32_t magic = k_magic;
  std::uint32_t size = 0;  ///< size of the bytes behind the head
  std::array<std::byte, k_most> bytes;

  /// The size of the head and the bytes.
  std::size_t whole_size() const noexcept { return k_head_size + size; }
  static constexpr std::size_t k_head_size = 2 * sizeof(std::uint32_t);
};
static_assert(sizeof(RowState) == RowState::k_head_size + RowState::k_most);

/// `code` is the range that the row holds for; it must not be empty. Fails with the row's error, or when call frame
/// information cannot express the row (EhFrameWriter::row). row_too_wide: the row takes more bytes than k_most.
/// Signal-safe.
Status write_row_state(const FrameRow& row, AddrRange code, const Arch& arch, RowState& out) noexcept;

/// Reads the row from untrusted bytes; its expressions lie in `state`. Fails with unsupported_version when the bytes
/// are no row state, and otherwise with the error of the call frame information. Signal-safe.
Status read_row_state(std::span<const std::byte> state, const Arch& arch, FrameRow& out) noexcept;

/// Returns the address of the .eh_frame entry that holds the row, as if the first byte of `state` were at `begin`.
/// Errors: those of read_row_state(). Signal-safe.
Result<Addr> entry_of_row_state(std::span<const std::byte> state, Addr begin, const Arch& arch) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
