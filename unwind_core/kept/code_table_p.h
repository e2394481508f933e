// A table of what was found of code, by address. An entry holds as long as nothing has changed there. Memory is touched
// in proportion to what is kept, however code is scattered.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/kept/number_index_p.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The words of a value and a key, which are written and read without order:
///   key = address ^ mix(value, version)
/// mix is one-to-one in the version for each value, so that an entry never stands for its address under another
/// version. Words that do not belong together stand for an address with probability 2^-64, as do an entry of another
/// address under another version. So do words of zeros, an empty entry, stand for an address: one that no code has.
/// Thread-safe, signal-safe, nobody waits. Constant-initialised.
///
/// Value: plain data of whole words. `value.digest()` is a word that the key depends on, one-to-one if it can be. It
/// leaves out the parts of a value that may be replaced at any time.
template <class V>
class CodeEntry {
 public:
  using Value = V;

  /// The cipher of a version, by which keys are encrypted. A caller with many lookups under one version makes it once.
  static constexpr std::uint64_t cipher(std::uint64_t version) noexcept { return spread(version) ^ k_cipher_of_none; }
  static constexpr std::uint64_t key_of(Addr at, const Value& value, std::uint64_t cipher_of_version) noexcept {
    return at ^ mix(value, cipher_of_version);
  }

  Value value() const noexcept { return value_of(std::make_index_sequence<k_words>()); }
  std::uint64_t key() const noexcept { return key_.load(std::memory_order_relaxed); }
  /// Whether the entry is of the address under that version. `value`: value(), as it was read.
  bool holds(const Value& value, Addr at, std::uint64_t cipher_of_version) const noexcept {
    return key() == key_of(at, value, cipher_of_version);
  }

  void set(const Value& value, std::uint64_t key) noexcept {
    set(value);
    key_.store(key, std::memory_order_relaxed);
  }
  /// Replaces what digest() leaves out.
  void set(const Value& value) noexcept {
    const Words words = std::bit_cast<Words>(value);
    for (std::size_t i = 0; i < k_words; ++i) words_[i].store(words[i], std::memory_order_release);
  }
  /// Writes what is there.
  void touch() noexcept { key_.fetch_or(0, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t k_words = sizeof(Value) / sizeof(std::uint64_t);
  using Words = std::array<std::uint64_t, k_words>;
  static_assert(sizeof(Words) == sizeof(Value) && std::has_unique_object_representations_v<Value>);

  /// Walks may come to address 0, by a call of null. An empty entry must not stand for it under version 0.
  static constexpr std::uint64_t k_cipher_of_none = 0xd1b54a32d192ed03u;

  /// One-to-one in the cipher, as are odd factors and shifts that are added. Versions that are near each other differ
  /// in all bits of a value.
  static constexpr std::uint64_t mix(const Value& value, std::uint64_t cipher_of_version) noexcept {
    const std::uint64_t mixed = spread(value.digest() ^ cipher_of_version);
    return mixed ^ mixed >> 32;
  }

  /// Copies word by word. A copy of the whole array would read 16 bytes right after two stores of 8, and wait until
  /// both are in the cache.
  template <std::size_t... I>
  [[gnu::always_inline]] Value value_of(std::index_sequence<I...>) const noexcept {
    Value value{};
    const auto copy = [&](auto... words) {
      (std::memcpy(reinterpret_cast<std::byte*>(&value) + I * sizeof words, &words, sizeof words), ...);
    };
    copy(words_[I].load(std::memory_order_acquire)...);
    return value;
  }

  std::array<std::atomic<std::uint64_t>, k_words> words_{};
  std::atomic<std::uint64_t> key_{0};
};

/// Says of a hash whether it was met before, or one that has its bit in common: at most one of four that are new.
/// Begins anew when it has met k_most. Thread-safe, signal-safe, nobody waits: what two threads meet at the same time
/// may get lost. Constant-initialised. A page of memory.
class MetBefore {
 public:
  /// False, and true from now on. `met`: how many times it was, zero to begin with.
  bool has_met(std::uint64_t hash, std::atomic<std::uint32_t>& met) noexcept {
    const auto bit = static_cast<std::size_t>(hash >> (64 - k_bits));
    std::atomic<std::uint64_t>& word = words_[bit / 64];
    const std::uint64_t mask = std::uint64_t{1} << bit % 64;
    const std::uint64_t seen = word.load(std::memory_order_relaxed);
    if ((seen & mask) != 0) return true;
    word.store(seen | mask, std::memory_order_relaxed);
    const std::uint32_t times = met.load(std::memory_order_relaxed);
    met.store(times + 1, std::memory_order_relaxed);  // no locked instruction for a count that need not be exact
    if (times >= k_most) [[unlikely]]
      begin_anew(met);
    return false;
  }

  /// Nothing was met before. Nobody else uses it meanwhile.
  void clear(std::atomic<std::uint32_t>& met) noexcept {
    if (met.load(std::memory_order_relaxed) != 0) begin_anew(met);
  }

  /// Writes to the page, so that the first walk has no page fault there.
  void touch() noexcept { words_[0].fetch_or(0, std::memory_order_relaxed); }

 private:
  static constexpr unsigned k_bits = 15;
  static constexpr std::uint32_t k_most = (1u << k_bits) / 4;

  [[gnu::noinline]] void begin_anew(std::atomic<std::uint32_t>& met) noexcept {
    for (auto& word : words_) word.store(0, std::memory_order_relaxed);
    met.store(0, std::memory_order_relaxed);
  }

  alignas(4096) std::array<std::atomic<std::uint64_t>, (std::size_t{1} << k_bits) / 64> words_{};
};

/// Values by address. Thread-safe, signal-safe, nobody waits. Constant-initialised.
///
/// Entries stand one behind the other in the order in which they were kept, so that those of one stack are neighbours.
/// An index (number_index_p.h) leads from addresses to numbers of entries. An entry that it no longer leads to is found
/// only by those who have the number.
template <class V>
class CodeTable {
  using Entry = CodeEntry<V>;

 public:
  using Value = V;
  using Number = std::uint32_t;
  static constexpr Number k_nowhere = ~Number{0};

  /// The result of a look: an entry that holds, or one that holds no more, for keep().
  struct Found {
    Number number = k_nowhere;
    Value value{};
    bool holds = false;
  };

  static constexpr std::uint64_t cipher(std::uint64_t version) noexcept { return Entry::cipher(version); }

  /// The entries by their numbers, for whoever has a link. holds() says whether an entry holds for an address.
  class Entries {
   public:
    /// The number, if there is such an entry, else another one: numbers of a larger table, too, may be asked for.
    Number in_bounds(Number number) const noexcept { return number < count_ ? number : 0; }
    /// Precondition: in_bounds().
    Value value(Number number) const noexcept { return first_[number].value(); }
    bool holds(Number number, const Value& value, Addr at, std::uint64_t cipher_of_version) const noexcept {
      return first_[number].holds(value, at, cipher_of_version);
    }
    /// Precondition: in_bounds().
    std::uint64_t key(Number number) const noexcept { return first_[number].key(); }

   private:
    friend CodeTable;
    template <class Room>
    explicit Entries(const Room& room) noexcept : first_(room.entries()), count_(room.count()) {}
    const Entry* first_;
    Number count_;
  };
  Entries entries() const noexcept {
    return in_room([](const auto& room) { return Entries(room); });
  }

  /// `cipher_of(value)`: cipher() of the version that such a value must have now.
  template <class CipherOf>
  Found find(Addr at, CipherOf cipher_of) const noexcept {
    return in_room([&](const auto& room) {
      const Entries entries(room);
      const std::uint64_t hash = hash_of(at);
      Found found;
      room.index.visit(hash, [&](Number number) {
        if (room.hash_of(number) != upper(hash)) return false;
        found.number = number;
        found.value = entries.value(number);
        found.holds = entries.holds(number, found.value, at, cipher_of(found.value));
        return found.holds;
      });
      return found;
    });
  }

  /// The number of the entry that find() looks at first, which may be another address's.
  Number likely(Addr at) const noexcept {
    return in_room([&](const auto& room) {
      Number first = 0;
      room.index.visit(hash_of(at), [&](Number number) {
        first = number;
        return true;
      });
      return first;
    });
  }

  /// False: find() finds nothing, which is known in a third of the instructions.
  bool may_have(Addr at) const noexcept {
    return grown_.load(std::memory_order_acquire) || own_index_.index().may_lead(hash_of(at));
  }

  /// Whether to keep() something of the address. Beyond the first page an address is kept when it is met for the second
  /// time, unless somebody has asked for room. Much code is met once, and a page of memory costs more than finding a
  /// dozen rows. `before` is the number of the entry that find() has found, or k_nowhere.
  [[gnu::always_inline]] bool wants(Addr at, Number before) noexcept {
    const bool was_asked_for = grown_.load(std::memory_order_acquire) != nullptr;
    return was_asked_for || before < own_count() || own_taken_.load(std::memory_order_relaxed) < k_of_page ||
           met_before_.has_met(hash_of(at), met_);
  }

  /// Keeps a value in the entry that was found `before`; else in a free one, or in the oldest one once all are taken.
  /// Returns the entry's number.
  Number keep(Addr at, std::uint64_t cipher_of_version, const Value& value, Number before) noexcept {
    return in_room([&](const auto& room) {
      const std::uint64_t hash = hash_of(at);
      const bool is_new = before >= room.count();
      const Number number = is_new ? room.take(hash) : before;
      room.entries()[number].set(value, Entry::key_of(at, value, cipher_of_version));
      if (is_new) room.index.lead(hash, number);
      return number;
    });
  }

  /// Changes what digest() leaves out: `change(value)` is the value from now on.
  template <class Change>
  [[gnu::noinline]] void change(Number number, Change change) noexcept {
    in_room([&](const auto& room) {
      if (number < room.count()) room.entries()[number].set(change(room.entries()[number].value()));
    });
  }

  /// Writes to the pages that a small table needs, so that the first walk has no page faults there.
  void touch() noexcept {
    own_pages_[0].entries[0].touch();
    own_taken_.fetch_or(0, std::memory_order_relaxed);
    met_before_.touch();
  }

  /// Nothing is kept any more. False: memory was reserved, and all is as it was. Nobody else uses it meanwhile. It
  /// writes to what was written to.
  bool clear() noexcept {
    if (grown_.load(std::memory_order_relaxed) != nullptr) return false;
    const std::size_t used = size();
    for (std::size_t page = 0; page * k_of_page < used; ++page) {
      for (Entry& entry : own_pages_[page].entries) entry.set(Value{}, 0);
    }
    own_index_.index().clear();
    own_taken_.store(0, std::memory_order_relaxed);
    met_before_.clear(met_);
    return true;
  }

  /// Makes room for `size` values or more, at most k_most; what is kept stays. It never shrinks. False: no memory, or
  /// too many, and nothing has changed. Thread-safe, not signal-safe.
  bool reserve(std::size_t size) noexcept;

  /// How many values are kept, or were until others took their places.
  std::size_t size() const noexcept {
    return in_room([](const auto& room) { return room.used(); });
  }

 private:
  static_assert(std::has_single_bit(sizeof(Entry)));

  static constexpr std::size_t k_page = 4096;
  static constexpr std::size_t k_units = k_page / sizeof(Entry);
  static constexpr std::size_t k_of_page = k_page / (sizeof(Entry) + sizeof(std::uint32_t));
  /// Numbers count units, of which the last ones of a page are used otherwise: entries are where an array would have
  /// them.
  struct alignas(k_page) Page {
    std::array<Entry, k_of_page> entries{};
    std::array<std::atomic<std::uint32_t>, k_of_page> hashes{};  ///< upper halves of those of the addresses
  };
  static_assert(sizeof(Page) == k_page);
  /// The entries that have room, and what leads to them.
  template <class Index>
  struct Room {
    Page* pages;
    std::size_t capacity;
    std::atomic<std::size_t>& taken;
    Index index;

    Entry* entries() const noexcept { return reinterpret_cast<Entry*>(pages); }
    Number count() const noexcept { return static_cast<Number>(capacity / k_of_page * k_units); }
    std::atomic<std::uint32_t>& hash_at(Number number) const noexcept {
      return pages[number / k_units].hashes[number % k_units];
    }
    std::uint32_t hash_of(Number number) const noexcept { return hash_at(number).load(std::memory_order_relaxed); }
    static constexpr Number number_at(std::size_t place) noexcept {
      return static_cast<Number>(place / k_of_page * k_units + place % k_of_page);
    }
    std::size_t used() const noexcept {
      const std::size_t all = taken.load(std::memory_order_relaxed);
      return all < capacity ? all : capacity;
    }

    /// A new entry's number, or the oldest one's, to which nothing leads any more.
    Number take(std::uint64_t hash) const noexcept {
      const std::size_t turn = taken.fetch_add(1, std::memory_order_relaxed);
      const Number number = number_at(turn < capacity ? turn : turn % capacity);
      // Functions out of line get copies: what they may read is in memory. A thread that grew it may have stood still
      // while others filled it.
      if (turn >= capacity) [[unlikely]]
        Index(index).forget(whole(hash_of(number)), number);
      if (index.is_crowded(turn)) [[unlikely]]
        Room(*this).grow_index(turn < capacity ? turn : capacity);
      hash_at(number).store(upper(hash), std::memory_order_relaxed);
      return number;
    }
    [[gnu::cold, gnu::noinline]] void grow_index(std::size_t entries) const noexcept {
      index.grow(entries, [&](std::size_t place) {
        return typename Index::Lead{whole(hash_of(number_at(place))), number_at(place)};
      });
    }
    /// Copies the entries of a smaller table. Nobody uses this one yet.
    template <class Other>
    [[gnu::cold, gnu::noinline]] void take_over(const Other& other) const noexcept {
      for (std::size_t place = 0; place < other.used(); ++place) {
        const Number number = number_at(place);
        const std::uint64_t key = other.entries()[number].key();
        entries()[number].set(other.entries()[number].value(), key);
        index.lead(whole(other.hash_of(number)), take(whole(other.hash_of(number))));
      }
    }
  };

  static constexpr std::uint64_t hash_of(Addr at) noexcept { return spread(at); }
  // The index needs no more of a hash than is kept with an entry.
  static constexpr std::uint32_t upper(std::uint64_t hash) noexcept { return static_cast<std::uint32_t>(hash >> 32); }
  static constexpr std::uint64_t whole(std::uint32_t upper) noexcept { return std::uint64_t{upper} << 32; }

  using LargeIndex = NumberIndex<Number>;
  struct Grown {
    Page* pages;
    std::size_t capacity;
    std::atomic<std::size_t> taken{0};
    LargeIndex index;
  };

  /// `work(room)` with what there is now. The table's own memory is zeros to begin with, so that it is in no file.
  template <class Work>
  [[gnu::always_inline]] auto in_room(Work work) const noexcept {
    if (Grown* const grown = grown_.load(std::memory_order_acquire)) [[unlikely]]
      return work(room_of(*grown));
    return work(Room<NumberIndex<OwnNumber>>{own_pages_.data(), k_size, own_taken_, own_index_.index()});
  }
  static Room<LargeIndex> room_of(Grown& grown) noexcept {
    return {grown.pages, grown.capacity, grown.taken, grown.index};
  }

  static constexpr std::size_t k_own_pages = 40;
  using OwnNumber = std::uint16_t;
  static_assert(k_own_pages * k_units <= 1u << 16);

 public:
  /// The table's own memory, which it begins with.
  static constexpr std::size_t k_size = k_own_pages * k_of_page;
  static constexpr std::size_t k_most = std::size_t{1} << 28;
  /// Numbers of entries in it are smaller.
  static constexpr Number own_count() noexcept { return static_cast<Number>(k_own_pages * k_units); }

 private:
  mutable std::array<Page, k_own_pages> own_pages_{};
  // These are on one page.
  alignas(k_page) std::atomic<Grown*> grown_{nullptr};
  mutable std::atomic<std::size_t> own_taken_{0};
  std::atomic<std::uint32_t> met_{0};
  alignas(64) mutable NumberIndexFor<OwnNumber, k_size> own_index_{};
  MetBefore met_before_;
};

template <class V>
[[gnu::cold]] bool CodeTable<V>::reserve(std::size_t size) noexcept {
  if (size <= k_size) return true;
  if (size > k_most) return false;
  const std::size_t pages = (size + k_of_page - 1) / k_of_page;
  const std::size_t capacity = pages * k_of_page;
  const std::size_t bytes = pages * sizeof(Page) + LargeIndex::bytes_for(capacity) + sizeof(Grown);
  Grown* before = grown_.load(std::memory_order_acquire);
  if (before && before->capacity >= size) return true;
  auto* const memory = static_cast<std::byte*>(map_memory(bytes));
  if (!memory) return false;
  std::byte* const index = memory + pages * sizeof(Page);
  auto* const larger = new (index + LargeIndex::bytes_for(capacity))
      Grown{reinterpret_cast<Page*>(memory), capacity, 0, LargeIndex::in(index, capacity)};
  in_room([&](const auto& room) { room_of(*larger).take_over(room); });
  // Readers and writers of the table before may go on in it.
  while (!grown_.compare_exchange_weak(before, larger, std::memory_order_acq_rel, std::memory_order_acquire)) {
    if (!before || before->capacity < size) continue;
    unmap_memory(memory, bytes);
    break;
  }
  return true;
}

}  // namespace jitunwind
#pragma GCC visibility pop
