// The executable text form of rows.
//
//   row      = "cfa=" cfa { " " register "=" rule } [ " args=" number ] [ " signal" ]
//   cfa      = reg [off] | "[" reg [off] "]" [off] | "expr(" hex ")"
//   rule     = "same" | "undefined" | "[cfa" [off] "]" | "cfa" [off] | reg | "[" reg [off] "]" | reg off
//            | "[expr(" hex ")]" | "expr(" hex ")" | number                      (number: constant)
//   register = name of the CPU's table, or "ra" for the return address column, or "r" number where there is no name
//   off      = ("+" | "-") number
//   hex      = pairs of hex digits: the bytes of a DWARF expression
//   number   = decimal, or 0x and hex digits
//
// A register rule "reg" with an offset, even "rsp+0", is is_reg; without one it is in_reg. Rules are printed in the
// order of register numbers, then the return address as "ra", then pseudo registers; a CFA's offset 0 is omitted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Returns a text such as "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]". Allocates.
std::string to_text(const FrameRow& row, const Arch& arch);

/// Writes the same text, cut to into.size() - 1 bytes and NUL-terminated, or nothing when `into` is empty. Returns the
/// length of the whole text. Signal-safe.
std::size_t write_text(const FrameRow& row, const Arch& arch, std::span<char> into) noexcept;

/// Returns the text of a row at a code offset: "+4: cfa=..." (offset in hex).
std::string to_text(std::uint64_t offset, const FrameRow& row, const Arch& arch);

/// The bytes of parsed expressions, to which rows point. Their addresses stay valid when the pool grows.
class ExpressionPool {
 public:
  ExpressionPool() noexcept;
  ExpressionPool(const ExpressionPool&) = delete;
  ExpressionPool& operator=(const ExpressionPool&) = delete;
  ~ExpressionPool();

  /// Takes ownership of the bytes.
  Expression add(std::vector<std::byte> bytes);

 private:
  std::vector<std::vector<std::byte>> blocks_;  // the vectors move when this grows, but their bytes do not
};

/// The result of parsing a text.
struct ParsedRow {
  std::optional<std::uint64_t> offset;  ///< the number in a leading "+offset:"
  FrameRow row;
};

/// Error::at is the character position where the text went wrong.
Result<ParsedRow> parse_row(std::string_view text, const Arch& arch, ExpressionPool& pool);

}  // namespace jitunwind
#pragma GCC visibility pop
