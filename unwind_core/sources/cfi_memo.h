// What a walk remembers of the call frame information that it met: neighbours on a stack are mostly of one module, and
// most FDEs of a module share one CIE.
#pragma once

#include <array>
#include <cstddef>

#include "unwind_core/sources/cfi.h"
#include "unwind_core/sources/fde_table.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Of modules that stay as they are for as long as this is used. Not to be copied into other walks; some 900 bytes.
struct CfiMemo {
  const Module* module = nullptr;    ///< the one met last, described for good
  const Module* table_of = nullptr;  ///< whose table of FDEs `table` is
  FdeTable table{};
  Fde fde{};             ///< read last; its CIE need not be read again
  bool has_cie = false;  ///< it is of memory that stays as it is

  /// Rows are computed here (CfiProgram), behind the state that the initial instructions of that CIE lead to.
  struct Room {
    Room() noexcept {}  // bytes stay as they are
    alignas(8) std::array<std::byte, 512> bytes;
  } room;
  std::size_t initial_size = 0;  ///< of that state; 0: not known yet
};

}  // namespace jitunwind
#pragma GCC visibility pop
