// The pool of frame shapes: one object per structurally different shape, process-wide.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "jitunwind/builders/shapes/frame_shape.h"
#include "jitunwind/builders/shapes/shape_lists_p.h"
#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"

namespace jitunwind {

/// The content by which shapes are compared: directives or rows, never both.
struct ShapeContent {
  const Arch* arch = nullptr;
  RegionList regions;
  RowList rows;
  std::uint64_t min_size = 0;
  // Values of the table that every procedure of a shape of rows has; the rows determine them.
  std::size_t table_bytes = 0;
  std::int64_t data_alignment = 0;

  std::uint64_t hash() const noexcept;
  friend bool operator==(const ShapeContent& a, const ShapeContent& b) noexcept;
};

struct FrameShape::Node {
  Node(ShapeContent&& c, std::vector<Finding>&& w, std::uint64_t h)
      : references(1), hash(h), content(std::move(c)), warnings(std::move(w)) {}

  std::atomic<std::size_t> references;
  std::uint64_t hash;
  ShapeContent content;
  std::vector<Finding> warnings;

  std::size_t bytes() const noexcept { return sizeof(Node) + content.regions.bytes() + content.rows.bytes(); }
};

/// Thread-safe and never destroyed. The lock is held across fork, so that the child can continue.
class ShapePool {
 public:
  static const ShapeContent& content(const FrameShape& shape) noexcept { return shape.node_->content; }
  /// Empty when there is no equal shape.
  static FrameShape find(const ShapeContent& content);
  /// The shape equal to `content`, made from it if there is none.
  static FrameShape intern(ShapeContent&& content, std::vector<Finding>&& warnings);
  static FrameShapeStatistics statistics() noexcept;

 private:
  friend class FrameShape;
  static void acquire(FrameShape::Node& node) noexcept { node.references.fetch_add(1, std::memory_order_relaxed); }
  static void release(FrameShape::Node& node) noexcept;
  struct State;
  static State& state();  ///< precondition: the lock is held
};

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
