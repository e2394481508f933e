// Frame shapes: how a frame is built and released, independent of the procedure. Procedures with equal descriptions
// share one shape, so that a thousand functions with one prologue own one region list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A place in a procedure of any size: bytes from its start or, if negative, from its end.
using CodeOffset = std::int64_t;

/// One row of a shape that is given as rows, and the offset from which it holds.
struct ShapeRow {
  CodeOffset offset = 0;
  FrameRow row;
};

/// A counted reference to an interned shape: structurally equal shapes are one object process-wide. It lives until its
/// last reference is gone, those of registered procedures included. The shape never changes.
///
/// Thread-safe; not signal-safe. Copying costs one atomic increment. The pool is never destroyed, so that static
/// objects may own shapes.
class FrameShape {
 public:
  /// Makes an empty reference, to assign to.
  FrameShape() noexcept = default;
  FrameShape(const FrameShape& other) noexcept;
  FrameShape(FrameShape&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  FrameShape& operator=(FrameShape other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~FrameShape();

  explicit operator bool() const noexcept { return node_ != nullptr; }
  /// Equal references refer to the same shape.
  friend bool operator==(const FrameShape&, const FrameShape&) noexcept = default;

  // Precondition of everything below: not empty.

  const Arch& arch() const noexcept;
  /// True for a shape of rows, which is registered in table format; false for one of directives.
  bool has_rows() const noexcept;
  /// Null for a leaf and for a shape of rows. Valid as long as a reference is held.
  const unw_dyn_region_info_t* regions() const noexcept;
  /// 0 for a shape of directives.
  std::size_t row_count() const noexcept;
  /// Rows placed from the start come first, each kind in ascending order. Expressions belong to the shape.
  /// Precondition: i < row_count().
  ShapeRow row(std::size_t i) const noexcept;
  CodeOffset row_offset(std::size_t i) const noexcept;
  /// Size in bytes of the smallest procedure of this shape.
  std::uint64_t min_size() const noexcept;
  /// Findings of the check of the directives, warnings only.
  std::span<const Finding> warnings() const noexcept;

  /// Number of references at this moment, this one included.
  std::size_t users() const noexcept;
  /// Bytes of memory that all users share.
  std::size_t bytes() const noexcept;

  /// The directives, one per line: "region 7", "  ADD rsp,24 @3". Allocates.
  std::string directives_text() const;

 private:
  friend class ShapePool;
  struct Node;
  explicit FrameShape(Node* node) noexcept : node_(node) {}

  Node* node_ = nullptr;
};

/// Number and memory of the shapes that exist in this process at this moment.
struct FrameShapeStatistics {
  std::size_t shapes = 0;
  std::size_t bytes = 0;
};
/// Thread-safe.
FrameShapeStatistics frame_shape_statistics() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
