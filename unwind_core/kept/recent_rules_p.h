// Rules that were found last, at places that their addresses say without an index.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/kept/caller_rule_p.h"
#include "jitunwind/unwind_core/kept/code_table_p.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Copies of entries of a table. A walk needs each rule before it can read the next return address. It waits for one
/// load here, and for three in the table, of which each needs the result of the one before. Thread-safe, signal-safe,
/// nobody waits. A copy holds as its entry does, by its key. All zeros to begin with.
class RecentRules {
 public:
  using Table = CodeTable<CallerRule>;

  /// Sets `out` to the rule of an address, without a link. False: it is not here. `cipher_of(rule)` as for
  /// Table::find(). A jump decides whether the rule holds, since a walk would wait for a value that depends on it.
  template <class CipherOf>
  [[gnu::always_inline]] bool find(Addr at, CipherOf cipher_of, CallerRule& out) const noexcept {
    const Copy& copy = copies_[table_place(at, k_bits)];
    out = copy.value();
    return copy.holds(out, at, cipher_of(out));
  }
  /// Copies an entry that held for the address. The key is copied, too: one that was made of the version of now would
  /// let the rule stand for code that has replaced the other meanwhile.
  void put(Addr at, const Table::Entries& entries, const Table::Found& found) noexcept {
    copies_[table_place(at, k_bits)].set(found.value, entries.key(entries.in_bounds(found.number)));
    if (!is_used_.load(std::memory_order_relaxed)) is_used_.store(true, std::memory_order_relaxed);
  }
  /// Nothing is here any more. Nobody else uses it meanwhile.
  void clear() noexcept {
    if (!is_used_.exchange(false, std::memory_order_relaxed)) return;
    for (Copy& copy : copies_) copy.set({}, 0);
  }

 private:
  using Copy = CodeEntry<CallerRule>;
  static constexpr unsigned k_bits = 12;
  std::array<Copy, std::size_t{1} << k_bits> copies_{};
  std::atomic<bool> is_used_{false};  // what was not written is not cleared, which would take memory for it
};

}  // namespace jitunwind
#pragma GCC visibility pop
