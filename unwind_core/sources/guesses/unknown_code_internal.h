// A table of code that no source of rows covers. All sources were asked to find that out. What a guess needs of the
// code is kept as well: it does not depend on the stack.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "jitunwind/unwind_core/kept/sequenced_entry_internal.h"
#include "jitunwind/unwind_core/sources/guesses/code_flow_p.h"

namespace jitunwind {

/// Where code leaves its return address, by following it as far as a return.
struct WayOut {
  enum class Known : std::uint8_t {
    not_followed,
    nowhere,
    jumps,
    returns,
    // By a link register that was signed in front of here; in the order of the keys.
    authenticates_a,
    authenticates_b,
    at_once,  // returns without a call in between, and leaves registers that calls preserve as they are
  };
  static constexpr int k_returns = static_cast<int>(Known::returns);

  std::int32_t offset = 0;  ///< of SP there
  std::uint16_t below = 0;  ///< words below that the return address is; 0: where calls leave it
  StackPlace::Base base = StackPlace::Base::unknown;
  Known known = Known::not_followed;
  std::uint64_t loaded = 0;  ///< registers that were loaded from the stack before, a bit for each place

  StackPlace sp() const noexcept { return {base, offset}; }
  bool returns() const noexcept { return known >= Known::returns; }
  /// Precondition: it returns, and not at once. any: nothing is signed.
  SigningKey key() const noexcept { return static_cast<SigningKey>(static_cast<int>(known) - k_returns); }
  static Known that_returns(SigningKey key) noexcept { return static_cast<Known>(k_returns + static_cast<int>(key)); }
};

/// Of one address space, whose rows are kept, too. What is registered or loaded makes another version at once; of other
/// memory nobody tells when it changes, so that nothing holds longer than a moment. Thread-safe, signal-safe.
class UnknownCode {
  static constexpr unsigned k_bits = 8;

 public:
  using Table = std::array<SequencedEntry<CodeQuestion, WayOut>, std::size_t{1} << k_bits>;

  /// `table`: zeros, not touched until something is kept. In most processes nothing ever is.
  constexpr explicit UnknownCode(Table& table) noexcept : table_(table) {}

  /// The version of the place (RowCache::version_of) in this moment. 0: nothing can be kept of it.
  static std::uint64_t version(Addr at, const RowCache& rows) noexcept;
  /// The version under which it is known that nothing knows the code; 0: it is not.
  std::uint64_t find(CodeAddress at, const RowCache& rows) const noexcept;
  /// False: it is not known to be unknown.
  bool find(CodeAddress at, std::uint64_t version, WayOut& out) const noexcept {
    return version != 0 && entry_of(at).find({key_of(at), version}, out);
  }
  void keep(CodeAddress at, std::uint64_t version, const WayOut& out) noexcept {
    if (version == 0) return;
    keeps_any_.store(true, std::memory_order_relaxed);
    entry_of(at).keep({key_of(at), version}, out);
  }

 private:
  /// A return address is looked up where another instruction begins. Never 0: that would be a new entry's.
  static constexpr Addr key_of(CodeAddress at) noexcept { return at.value() << 1 | (at.is_return_address() ? 1 : 0); }
  Table::value_type& entry_of(CodeAddress at) const noexcept { return table_[table_place(at.value(), k_bits)]; }

  Table& table_;
  std::atomic<bool> keeps_any_{false};
};

}  // namespace jitunwind
