// Converts a shape of rows to the table of one procedure: one entry, and the call frame information it refers to.
#pragma once

#include <cstddef>

#include "jitunwind/builders/shapes/frame_shape.h"
#include "jitunwind/builders/shapes/shape_pool_p.h"
#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"

namespace jitunwind {

/// Format IP_OFFSET: a pair of 32-bit numbers, the first relative to start_ip, the second to the table, so that code
/// and table may be any distance apart. The .eh_frame bytes with one CIE and one FDE follow.
class RowTable {
 public:
  struct Procedure {
    AddrRange code;
    Addr personality;
    Addr lsda;
  };

  /// Computes the values that all procedures of a shape with these rows share: the size in bytes, and the unit of
  /// slots. Error: a row that call frame information cannot express; `at` is the row's index in the list.
  static Status measure(ShapeContent& content) noexcept;
  static std::size_t max_bytes(const FrameShape& shape) noexcept;

  /// Writes the table to `into`, which has max_bytes() and is aligned for a word, and describes it in `out`.
  static Status write(const FrameShape& shape, const Procedure& procedure, std::byte* into,
                      unw_dyn_remote_table_info_t& out) noexcept;

 private:
  static Status encode(const ShapeContent& content, const Procedure& procedure, EhFrameWriter& writer,
                       std::size_t& fde_at) noexcept;
};

}  // namespace jitunwind
