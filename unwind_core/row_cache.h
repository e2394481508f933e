// Rows that were found before, by address. A step through code that was walked before makes no row again: it looks one
// up, sees that nothing has changed since, and applies it (compact_row.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "unwind_core/code_changes.h"
#include "unwind_core/code_table.h"
#include "unwind_core/compact_row.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// One loaded module, told from all that were loaded before it where it is now.
struct ModuleVersion {
  AddrRange range{};
  std::uint64_t version = 0;  ///< 0: cannot be told
  bool is_lasting = false;    ///< it stays loaded until the process ends
};

/// Tells modules from those that were there before.
class ModuleVersions {
 public:
  /// The module that covers `at`; false: none does. Signal-safe.
  virtual bool find(Addr at, ModuleVersion& out) const noexcept = 0;

 protected:
  ~ModuleVersions() = default;
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
  const CodeChanges& changes;  ///< of what is registered
  const ModuleVersions& modules;
  KeptRows& table;

  /// Looks `at` up in a table of this space. True: it is there. False: `question` is by what to keep the answer once it
  /// is found. `walked` is the module that the walk met last, or empty: modules with code on a stack stay loaded while
  /// the stack is walked. Signal-safe.
  template <class Answer>
  bool find(const CodeTable<Answer>& in, Addr at, ModuleVersion& walked, CodeQuestion& question,
            Answer& out) const noexcept;
  /// The row as it can be kept; false: it is not compact, or depends on more than the code.
  bool to_keep(const FrameRow& row, CompactRow& out) const noexcept;
  /// Keeps the row if it can be kept; false: it cannot.
  bool keep(const CodeQuestion& question, const FrameRow& row, KeptRow& kept) const noexcept;

 private:
  /// Out of line, lest the question goes through memory where the module need not be known.
  bool find_module(Addr at, ModuleVersion& walked) const noexcept;
  /// What is registered comes before what modules say, so that both count everywhere. Never 0 but where the module's
  /// version is. Where a module lasts no other code was or will be: it need not be known to find what is kept there.
  static std::uint64_t version_in(const ModuleVersion& module, std::uint64_t registrations) noexcept {
    if (module.is_lasting) return registrations;
    if (module.version == 0) return 0;
    const std::uint64_t version = module.version + spread(registrations);
    return version == 0 ? 1 : version;
  }
};

template <class Answer>
[[gnu::always_inline]] inline bool RowCache::find(const CodeTable<Answer>& in, Addr at, ModuleVersion& walked,
                                                  CodeQuestion& question, Answer& out) const noexcept {
  const std::uint64_t registrations = changes.number(at) + 1;
  if (walked.range.contains(at)) {
    question = {at, version_in(walked, registrations)};
    return in.find(question, out);
  }
  // Code in no module is asked for first: that there is none costs a search of them all.
  question = {at, registrations};
  if (in.find(question, out)) return true;
  if (!find_module(at, walked)) return false;
  question = {at, version_in(walked, registrations)};
  return in.find(question, out);
}

}  // namespace jitunwind
#pragma GCC visibility pop
