// The result of a builder: an immutable description of one procedure or of many alike, or the reasons for a refusal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/builders/shapes/frame_shape.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

struct ProcedureHandlers;

/// A counted reference to the exception handlers of a procedure, or to none. Thread-safe; not signal-safe.
class HandlersRef {
 public:
  HandlersRef() noexcept = default;
  /// Takes over an object that was made by new and has no other user.
  explicit HandlersRef(const ProcedureHandlers* made) noexcept : handlers_(made) {}
  HandlersRef(const HandlersRef& other) noexcept;
  HandlersRef(HandlersRef&& other) noexcept : handlers_(std::exchange(other.handlers_, nullptr)) {}
  HandlersRef& operator=(HandlersRef other) noexcept {
    std::swap(handlers_, other.handlers_);
    return *this;
  }
  ~HandlersRef();

  explicit operator bool() const noexcept { return handlers_ != nullptr; }
  const ProcedureHandlers* operator->() const noexcept { return handlers_; }
  /// Number of references at this moment, this one included. Precondition: not empty.
  std::size_t users() const noexcept;

 private:
  const ProcedureHandlers* handlers_ = nullptr;
};

/// The reasons why build() refused: every finding, warnings included, each with region, directive, offset and reason.
struct BuildError {
  std::vector<Finding> findings;

  std::string text() const;                  ///< one line per finding
  const Finding& decisive() const noexcept;  ///< the first that is no warning; if all are warnings, the first
};

/// Describes how to unwind a procedure, independent of the address of its code. register_code() registers it any number
/// of times. Immutable; copies are cheap and share the frame shape. Thread-safe as a const object.
class Description {
 public:
  Description(const Description& other);
  Description(Description&& other) noexcept;
  Description& operator=(const Description& other);
  Description& operator=(Description&& other) noexcept;
  ~Description();

  const Arch& arch() const noexcept { return shape_.arch(); }
  const FrameShape& shape() const noexcept { return shape_; }
  /// UNW_INFO_FORMAT_DYNAMIC for directives, UNW_INFO_FORMAT_IP_OFFSET for rows.
  int format() const noexcept;

  const std::string& name() const noexcept { return facts_.name; }
  /// Returns this description for a procedure of another name.
  Description renamed(std::string name) const;
  Addr personality() const noexcept { return facts_.personality; }
  Addr lsda() const noexcept { return facts_.lsda; }
  Addr gp() const noexcept { return facts_.gp; }
  /// Owner of lsda()'s memory for call sites or a frame handler, else empty. Registered procedures share it.
  const HandlersRef& handlers() const noexcept { return facts_.handlers; }
  /// The only size in bytes that the description fits; none if any size from min_size() on fits.
  std::optional<std::uint64_t> size() const noexcept { return facts_.size; }
  std::uint64_t min_size() const noexcept;
  /// Checks that a procedure of `bytes` can have this description. Errors: e_range, e_overlap, e_landing_pad.
  Status check_size(std::uint64_t bytes) const noexcept;

  /// Findings about legal constructs that may be a mistake.
  std::span<const Finding> warnings() const noexcept { return facts_.warnings; }

  /// The row at a code offset of a procedure of `bytes`, for a pc that is exact there. The row's expressions belong to
  /// the shape. Error e_range when offset >= bytes; errors of check_size().
  Result<FrameRow> row(std::uint64_t offset, std::uint64_t bytes) const noexcept;

  /// Every row of a procedure of `bytes` with its offset, one per line: "+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]".
  std::string to_text(std::uint64_t bytes) const;
  /// The rows for size(), or for min_size() when the description has no fixed size.
  std::string to_text() const { return to_text(size().value_or(min_size())); }

 private:
  friend class DraftBuild;
  struct Facts {
    std::string name;
    Addr personality = 0;
    Addr lsda = 0;
    Addr gp = 0;
    std::optional<std::uint64_t> size;
    std::vector<Finding> warnings;
    HandlersRef handlers;
  };
  Description(FrameShape shape, Facts facts) noexcept;

  FrameShape shape_;
  Facts facts_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
