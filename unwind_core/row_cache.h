// Rows that were found before, by address. A step through code that was walked before makes no row again: it looks one
// up, sees that nothing has changed since, and applies it (compact_row.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "unwind_core/code_table.h"
#include "unwind_core/compact_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// One loaded module, told from all that were loaded before it where it is now.
struct ModuleVersion {
  AddrRange range{};
  std::uint64_t version = 0;  ///< 0: cannot be told
};

/// Tells whether what is known of some code may have changed.
class CodeVersions {
 public:
  /// A number that differs from what it was before any such change; 0: not known, nothing can be kept. `walked` is the
  /// module that the walk met last, or empty: modules with code on a stack stay loaded while the stack is walked.
  /// Signal-safe.
  virtual std::uint64_t version(Addr at, ModuleVersion& walked) const noexcept = 0;

 protected:
  ~CodeVersions() = default;
};

struct KeptRow {
  CompactRow row;
  RowOrigin origin = RowOrigin::none;
  std::array<std::uint8_t, 7> rest_of_word{};  ///< a CodeTable copies words: padding has no value
};
/// The rows of one address space.
using KeptRows = CodeTable<KeptRow>;

/// What an address space needs to keep rows. Immutable but for the table.
struct RowCache {
  CompactLayout layout;
  const CodeVersions& versions;
  KeptRows& table;

  KeptRows::Question question(Addr at, ModuleVersion& walked) const noexcept {
    return {at, versions.version(at, walked)};
  }
  /// The row as it can be kept; false: it is not compact, or depends on more than the code.
  bool to_keep(const FrameRow& row, CompactRow& out) const noexcept;
  /// Keeps the row if it can be kept.
  void keep(const KeptRows::Question& question, const FrameRow& row) const noexcept;
};

}  // namespace jitunwind
#pragma GCC visibility pop
