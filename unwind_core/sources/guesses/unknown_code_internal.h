// A cache of code that no source of rows covers, which is known only after a lookup in all sources. It also keeps the
// facts that a guess needs of the code: they do not depend on the stack.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/kept/sequenced_entry_internal.h"
#include "jitunwind/unwind_core/sources/guesses/code_flow_p.h"

namespace jitunwind {

/// The place where code leaves its return address, by following it to a return.
struct WayOut {
  enum class Known : std::uint8_t {
    not_followed,
    nowhere,  // base unknown: on any stack; else as long as `loaded` is the word where the return address would be
    jumps,
    returns,
    // The code returns by a link register that was signed before this place; in the order of the keys.
    authenticates_a,
    authenticates_b,
    at_once,  // returns without a call in between, and leaves preserved registers as they are
  };
  static constexpr int k_returns = static_cast<int>(Known::returns);

  std::int32_t offset = 0;  ///< offset of SP there
  std::uint16_t below = 0;  ///< words from there down to the return address; 0: it is where calls leave it
  StackPlace::Base base = StackPlace::Base::unknown;
  Known known = Known::not_followed;
  std::uint64_t loaded = 0;  ///< registers that were loaded from the stack before, a bit for each place; or a word

  StackPlace sp() const noexcept { return {base, offset}; }
  bool returns() const noexcept { return known >= Known::returns; }
  /// Precondition: it returns, and not at once. any: nothing is signed.
  SigningKey key() const noexcept { return static_cast<SigningKey>(static_cast<int>(known) - k_returns); }
  static Known that_returns(SigningKey key) noexcept { return static_cast<Known>(k_returns + static_cast<int>(key)); }
};

/// The code that no source of an address space knows. Registering or loading code changes the generation at once.
/// Changes of other memory are not announced, so that no entry is valid for longer than a moment. Thread-safe,
/// signal-safe.
class UnknownCode {
  static constexpr unsigned k_bits = 8;
  struct Key {
    Addr at;
    std::uint64_t version;
  };

 public:
  using Table = std::array<SequencedEntry<Key, WayOut>, std::size_t{1} << k_bits>;

  /// `table`: zeros, not touched until an entry is stored. Most processes never store one.
  constexpr explicit UnknownCode(Table& table) noexcept : table_(table) {}

  /// Whether no source needs to be asked. The lookup says then under which version more of the code is kept.
  bool covers(Lookup& lookup, const RowCache& rows) const noexcept {
    return keeps_any_.load(std::memory_order_relaxed) && finds_kept(lookup, rows);
  }
  /// Notes that the sources of the lookup's space, which were asked, know nothing; if they still say so.
  RowAnswer ask_again(Lookup& lookup, AnyRow& out) const noexcept;

  /// False: it is not known to be unknown.
  bool find(CodeAddress at, std::uint64_t version, WayOut& out) const noexcept {
    return version != 0 && entry_of(at).find({key_of(at), version}, out);
  }
  void keep(CodeAddress at, std::uint64_t version, const WayOut& out) const noexcept {
    if (version == 0) return;
    keeps_any_.store(true, std::memory_order_relaxed);
    entry_of(at).keep({key_of(at), version}, out);
  }

 private:
  /// The present generation of the place (RowCache::version_of). 0: entries cannot be stored.
  static std::uint64_t version(Addr at, const RowCache& rows) noexcept;
  bool finds_kept(Lookup& lookup, const RowCache& rows) const noexcept;
  /// The key of a return address differs, since it is looked up at another instruction. Never 0: that is the key of a
  /// new entry.
  static constexpr Addr key_of(CodeAddress at) noexcept { return at.value() << 1 | (at.is_return_address() ? 1 : 0); }
  Table::value_type& entry_of(CodeAddress at) const noexcept { return table_[table_place(at.value(), k_bits)]; }

  Table& table_;
  mutable std::atomic<bool> keeps_any_{false};
};

}  // namespace jitunwind
