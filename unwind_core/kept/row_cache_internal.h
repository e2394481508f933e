// Rows that were found before, by address. A step through code that was walked before makes no row again. It looks the
// row up, sees that nothing has changed since, and applies it (compact_step_p.h). The protocol is in docs/caches.md.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/kept/caller_rule_p.h"
#include "jitunwind/unwind_core/kept/code_changes_internal.h"
#include "jitunwind/unwind_core/kept/code_table_p.h"
#include "jitunwind/unwind_core/kept/compact_row_internal.h"
#include "jitunwind/unwind_core/kept/rule_place.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/trace/counters.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Compact rows without their CFA's offset, by numbers from 1 on. Compilers push registers in one order: the million
/// rows of LLVM's libraries have some sixty shapes. Once there are k_most no other shape gets a number. Entries stay as
/// they are. Thread-safe, signal-safe, nobody waits. Constant-initialised.
class SaveShapes {
 public:
  static constexpr unsigned k_most = 767;
  static_assert(k_most <= CallerRule::k_most_shape);

  /// 0: there is no room. Two threads that are first at the same time may get two numbers.
  unsigned number_of(const CompactRow& row) noexcept {
    const Words shape = words_of(row);
    const std::size_t home = table_place(hash_with(spread(shape[0]), shape[1]), k_place_bits);
    for (std::size_t i = 0; i < k_probes; ++i) {
      std::atomic<std::uint16_t>& place = places_[(home + i) % places_.size()];
      const unsigned number = place.load(std::memory_order_acquire);
      if (number == 0) return add(shape, place);
      if (load(number) == shape) return number;
    }
    return 0;
  }

  /// Precondition: a number that number_of() gave. It copies word by word. A processor waits for two words that were
  /// just stored and are loaded as one vector, as copies of structures do.
  void row(unsigned number, std::uint16_t cfa_words, CompactRow& out) const noexcept {
    const Words shape = load(number);
    const std::uint64_t first = shape[0] | cfa_words, second = shape[1];
    auto* const bytes = reinterpret_cast<std::byte*>(&out);
    std::memcpy(bytes, &first, sizeof first);
    std::memcpy(bytes + sizeof first, &second, sizeof second);
  }

  /// No shape has a number any more. Nobody else uses it meanwhile.
  void clear() noexcept {
    if (taken_.exchange(0, std::memory_order_relaxed) == 0) return;
    for (std::atomic<std::uint16_t>& place : places_) place.store(0, std::memory_order_relaxed);
  }

  /// Has the page that most programs need.
  void touch() noexcept { places_[0].fetch_or(0, std::memory_order_relaxed); }

 private:
  using Words = std::array<std::uint64_t, sizeof(CompactRow) / sizeof(std::uint64_t)>;
  static constexpr unsigned k_place_bits = 10;
  static constexpr std::size_t k_probes = 32;

  static constexpr std::uint64_t k_cfa_words = 0xffff;
  static Words words_of(const CompactRow& row) noexcept {
    const auto words = std::bit_cast<Words>(row);
    return {words[0] & ~k_cfa_words, words[1]};
  }
  Words load(unsigned number) const noexcept {
    const auto& shape = shapes_[number - 1];
    return {shape[0].load(std::memory_order_relaxed), shape[1].load(std::memory_order_relaxed)};
  }
  unsigned add(const Words& shape, std::atomic<std::uint16_t>& place) noexcept {
    if (taken_.load(std::memory_order_relaxed) >= k_most) return 0;
    const unsigned number = taken_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number > k_most) return 0;
    for (std::size_t i = 0; i < shape.size(); ++i) shapes_[number - 1][i].store(shape[i], std::memory_order_relaxed);
    std::uint16_t none = 0;
    place.compare_exchange_strong(none, static_cast<std::uint16_t>(number), std::memory_order_release);
    return number;
  }

  alignas(4096) std::atomic<unsigned> taken_{0};
  std::array<std::atomic<std::uint16_t>, std::size_t{1} << k_place_bits> places_{};  ///< numbers by shape
  std::array<std::array<std::atomic<std::uint64_t>, 2>, k_most> shapes_{};
};
static_assert(sizeof(CompactRow) == 2 * sizeof(std::uint64_t) && offsetof(CompactRow, cfa_words) == 0);
static_assert(std::endian::native == std::endian::little);

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
    const Copy& copy = copies_[place(at)];
    out = copy.value();
    return copy.holds(out, at, cipher_of(out));
  }
  /// Copies an entry that held for the address. The key is copied, too: one that was made of the version of now would
  /// let the rule stand for code that has replaced the other meanwhile.
  void put(Addr at, const Table::Entries& entries, const Table::Found& found) noexcept {
    copies_[place(at)].set(found.value, entries.key(entries.in_bounds(found.number)));
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
  /// The return address says it, which a walk has just read.
  static constexpr std::size_t place(Addr at) noexcept { return table_place(at + 1, k_bits); }
  std::array<Copy, std::size_t{1} << k_bits> copies_{};
  std::atomic<bool> is_used_{false};  // what was not written is not cleared, which would take memory for it
};

/// The versions of the modules of one target.
class ModuleVersions {
 public:
  /// The module that covers `at`; false: none does. Signal-safe.
  virtual bool find(Addr at, ModuleVersion& out) const noexcept = 0;

 protected:
  ~ModuleVersions() = default;
};

/// The rows of one address space.
struct KeptRules {
  using Table = CodeTable<CallerRule>;
  Table table;
  RecentRules recent;
  SaveShapes shapes;

  /// No rule is kept any more. False: memory was reserved for more, and all is as it was. Nobody else uses it
  /// meanwhile.
  bool clear() noexcept {
    if (!table.clear()) return false;
    recent.clear();
    shapes.clear();
    return true;
  }

  /// Writes to the first pages, so that the first walk has no page faults there. Thread-safe, signal-safe.
  void touch() noexcept {
    table.touch();
    shapes.touch();
  }
};

struct KeptRow {
  CompactRow row;
  CallerRule rule;  ///< as it was when it held
};

/// A row that the sources were asked for because it was not kept.
struct NewRow : AnyRow {
  using AnyRow::AnyRow;
  bool is_full = true;      ///< `full` is the row; false: only its origin, keeps_by and range are set
  bool is_compact = false;  ///< `compact` is the row
  /// `compact` is the row but for the signature of the return address. Walks of addresses strip that, and keep it so.
  bool is_compact_but_signed = false;
  bool is_made = false;  ///< CodeShapes::find_rule() has made `compact`, the row, and no source needs to be asked
  KeptBy kept_by = KeptBy::nothing;
  CallerRule rule{};  ///< RowCache::rule_of()
  /// Precondition: !is_full.
  FrameRow expanded() const noexcept;
  const FrameRow& complete() noexcept {
    if (!is_full) full = expanded();
    is_full = true;
    return full;
  }
};

/// A ticket has what a row is kept by: its place, and its version as far as it is known before the row is looked for.
/// An answer that has become old meanwhile is then kept under an old version, where nobody finds it.
struct KeepTicket {
  // Not initialised: find() sets both, and is called for every frame.
  Addr at;                      ///< CodeAddress::lookup()
  std::uint64_t registrations;  ///< CodeChanges::number()
  CallerRule partial{};         ///< the rule that holds, if it does not say where all registers are; else none
  RulePlace callee{};
  std::uint32_t before = RulePlace::k_none;  ///< number of the entry of the address that holds no more
};

/// The rules of code alike. A shape has room for the first rules of its places, whose links are the offsets. While that
/// is empty, there are no others. These have a table of their own, so that they take no room of rules by address.
struct AlikeRules {
  const CodeShapes& shapes;
  KeptRules::Table& table;

  static constexpr std::uint64_t k_cipher = KeptRules::Table::cipher(0);
  /// None: no rule is kept there.
  CallerRule find(AlikePlace place) const noexcept {
    const CallerRule first = place.first().load(std::memory_order_acquire);
    if (first.kept_by() == KeptBy::nothing) return {};
    return first.linked(0) == place.offset() ? first.with_link(0) : find_in_table(place);
  }
  /// False: another one has the room.
  static bool keep_first(AlikePlace place, CallerRule rule) noexcept {
    CallerRule none;
    return place.first().compare_exchange_strong(none, rule.with_link(place.offset()), std::memory_order_acq_rel);
  }

 private:
  [[gnu::noinline]] CallerRule find_in_table(AlikePlace place) const noexcept {
    const KeptRules::Table::Found found = table.find(place.at(), [](CallerRule) { return k_cipher; });
    return found.holds ? found.value : CallerRule{};
  }
};

/// The parts that an address space needs to keep rows. Immutable but for the rules.
struct RowCache {
  CompactLayout layout;
  const CodeChanges& changes;  ///< of what is registered
  const ModuleVersions& modules;
  KeptRules& rules;
  const AlikeRules* alike = nullptr;     ///< null: each procedure is by itself
  const UnknownCode* unknown = nullptr;  ///< null: all sources are asked each time
  /// No source is asked before the tables of modules where nothing was ever registered.
  bool tables_are_first = false;

  /// True: `hit` is the row at `at`. False: it is not known, or not compact. Either way keep() takes the ticket, for
  /// the row once it is found, or for more that depends on the code. `walked` is the module that the walk met last, or
  /// empty: modules with code on a stack stay loaded while the stack is walked. Signal-safe.
  bool find(Addr at, ModuleVersion& walked, RulePlace& place, KeptRow& hit, KeepTicket& ticket) const noexcept;
  /// Finds the row at `at` by the link of `place` alone, which goes on there. False: it may be known nevertheless.
  /// `registrations` is set to CodeChanges::number().
  bool find_linked(Addr at, RulePlace& place, KeptRow& hit, std::uint64_t& registrations) const noexcept;
  /// find() where find_linked() has found nothing, and has set the ticket's registrations.
  bool find_otherwise(Addr at, ModuleVersion& walked, RulePlace& place, KeptRow& hit,
                      KeepTicket& ticket) const noexcept;
  /// Finds the rule of code alike; none: there is no such rule. If that is wanted, the rule is kept by the address,
  /// too. Precondition: none holds by the address. Needs room on the stack (small_stack_internal.h), and is
  /// signal-safe. `row` is for find_new(), which is called next.
  CallerRule find_alike(KeepTicket& ticket, RulePlace& place, NewRow& row) const noexcept {
    return alike && changes.may_count(ticket.at) ? find_shared(ticket, place, row) : CallerRule{};
  }
  /// Finds the row of code alike. False: it is not known, or not compact.
  bool find_alike(KeepTicket& ticket, RulePlace& place, NewRow& row, KeptRow& hit) const noexcept;
  /// Asks the sources of the lookup's address space for the row, and keeps it for code alike.
  RowAnswer find_new(Lookup& lookup, NewRow& out) const noexcept;
  /// Keeps what find_new() found after find() had not. Returns the rule that is kept; none: it is not.
  CallerRule keep(const KeepTicket& ticket, Lookup& lookup, const NewRow& row, RulePlace& place,
                  CallerRule::Handler handler = CallerRule::Handler::unknown) const noexcept;

  /// Whether a row says that there is no caller, whatever the registers are. No compact row does.
  bool says_end(const FrameRow& row) const noexcept;
  /// Keeps such a row; of others it does nothing.
  void keep_end(const KeepTicket& ticket, Lookup& lookup, const NewRow& row) const noexcept;

  /// Keeps a rule in the place of what was kept of the address before, with the shape of `row` unless that is null.
  /// `module` covers the address, if the rule is kept by its module. Returns nowhere: the rule is not wanted yet.
  RulePlace keep(const KeepTicket& ticket, CallerRule rule, const CompactRow* row,
                 const ModuleVersion& module) const noexcept;
  /// Links the one entry to the other: walks that leave the one come to the other.
  void link(RulePlace from, KeptRules::Table::Number to) const noexcept;

  /// Sets `module` to the one of `at`, unless the walk met that one last. Version 0: there is none, or it cannot be
  /// told.
  const ModuleVersion& module_of(Addr at, ModuleVersion& walked) const noexcept;
  /// The version of a place: what is kept of it holds as long as this is the same. The only formula; docs/caches.md
  /// says when it is taken and when it is checked. `registrations`: CodeChanges::number() of the place. `by`: whether
  /// `module`, which covers the place, is a part of it.
  static std::uint64_t version_of(std::uint64_t registrations, KeptBy by, const ModuleVersion& module) noexcept {
    return by == KeptBy::module ? registrations + spread(module.version) : registrations;
  }
  /// The version by which a row of the sources can be cached. Walks take an address whose row is kept for code, so it
  /// is kept only where AddressSpace::expect_code() takes it as well: a frame that was interrupted may be anywhere.
  static KeptBy kept_by(const FrameRow& row, Lookup& lookup) noexcept;
  /// The module of the lookup, if there is one.
  static ModuleVersion module_of(Lookup& lookup) noexcept {
    const Module* const module = lookup.module();
    return module ? jitunwind::version_of(*module) : ModuleVersion{};
  }
  /// The rule of a row: pc, SP and frame pointer. None where a rule cannot say it.
  [[gnu::always_inline]] CallerRule rule_of(const CompactRow& row, RowOrigin origin, KeptBy by) const noexcept {
    const std::size_t fp_slot = layout.fp_slot();
    if (fp_slot >= layout.size() || by == KeptBy::nothing) return {};
    const bool by_fp = row.base == layout.fp_column();
    if (!by_fp && row.base != layout.sp_column()) return {};
    const std::uint8_t ra = row.slots[CompactLayout::k_return_address], fp = row.slots[fp_slot];
    if (layout.arch().calls_push() ? ra != 1 : fp != 0 && ra + 1 != fp) return {};
    return CallerRule(row, origin, by, by_fp, fp_slot);
  }

 private:
  CallerRule find_shared(KeepTicket& ticket, RulePlace& place, NewRow& row) const noexcept;
  CallerRule keep_alike(NewRow& row) const noexcept;
  RulePlace keep_wanted(const KeepTicket& ticket, CallerRule rule, const ModuleVersion& module) const noexcept;
};

inline RulePlace RulePlace::at(std::uint32_t number, CallerRule rule) noexcept { return {number, rule.linked(number)}; }

[[gnu::always_inline]] inline bool RowCache::find_linked(Addr at, RulePlace& place, KeptRow& hit,
                                                         std::uint64_t& registrations) const noexcept {
  using Table = KeptRules::Table;
  const Table::Entries entries = rules.table.entries();
  const Table::Number number = entries.in_bounds(place.next);
  const CallerRule rule = entries.value(number);
  registrations = changes.number(at);
  if (rule.is_of_module() || !rule.is_whole() || !entries.holds(number, rule, at, Table::cipher(registrations)))
      [[unlikely]]
    return false;
  count_warm_event(Counter::kept_row_used);
  place = RulePlace::at(number, rule);
  hit.rule = rule;
  rules.shapes.row(rule.shape(), rule.cfa_words(), hit.row);
  return true;
}

[[gnu::always_inline]] inline bool RowCache::find(Addr at, ModuleVersion& walked, RulePlace& place, KeptRow& hit,
                                                  KeepTicket& ticket) const noexcept {
  if (!find_linked(at, place, hit, ticket.registrations)) [[unlikely]]
    return find_otherwise(at, walked, place, hit, ticket);
  ticket.at = at;
  ticket.before = place.number;
  return true;
}

}  // namespace jitunwind
#pragma GCC visibility pop
