// Rows that were found before, by address. A step through code that was walked before makes no row again: it looks one
// up, sees that nothing has changed since, and applies it (compact_row.h).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

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

/// 8192 rows of one address space, two places for each address, in 512 KiB that are touched where they are used.
/// Thread-safe, signal-safe, nobody waits: a reader that meets a writer finds nothing, a writer that meets another
/// leaves. Constant-initialised.
class RowTable {
 public:
  struct Question {
    Addr at = 0;                ///< CodeAddress::lookup()
    std::uint64_t version = 0;  ///< as it was before the row was looked for; 0 finds and keeps nothing
  };
  struct Answer {
    CompactRow row;
    RowOrigin origin = RowOrigin::none;
  };

  bool find(const Question& question, Answer& out) const noexcept;
  /// Forgets an older row in its place.
  void keep(const Question& question, const Answer& answer) noexcept;

 private:
  static constexpr std::size_t k_sets = 4096;

  struct alignas(64) Entry {
    std::atomic<std::uint64_t> sequence{0};  // odd while it is written
    std::atomic<std::uint64_t> at{0};
    std::atomic<std::uint64_t> version{0};
    std::array<std::atomic<std::uint64_t>, 2> row{};
    std::atomic<std::uint64_t> origin{0};
  };
  using Set = std::array<Entry, 2>;

  static std::size_t set_of(Addr at) noexcept {
    // Fibonacci hashing (Knuth, TAOCP 3, 6.4).
    return static_cast<std::size_t>(at * 0x9e3779b97f4a7c15u >> 52);
  }
  static bool read(const Entry& entry, const Question& question, Answer& out) noexcept;

  std::array<Set, k_sets> sets_{};
};

/// What an address space needs to keep rows. Immutable but for the table.
struct RowCache {
  CompactLayout layout;
  const CodeVersions& versions;
  RowTable& table;

  RowTable::Question question(Addr at, ModuleVersion& walked) const noexcept {
    return {at, versions.version(at, walked)};
  }
  /// Keeps the row if it is compact and depends on nothing but the code.
  void keep(const RowTable::Question& question, const FrameRow& row) const noexcept;
};

}  // namespace jitunwind
#pragma GCC visibility pop
