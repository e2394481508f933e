// Questions of unwinders whose _Unwind_Find_FDE comes before ours in the order of the symbol search: libgcc_s calls the
// function through a word in its own memory, its jump slot, and that word is made to lead here. What stood there, be it
// libgcc_s's own function, another copy of this library or somebody else's, is asked for all code but registered one.
//
// Nothing here has a lock. Threads that look at the same time do the same, and a compare-exchange of the slot decides.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "jitunwind/adapters/system_unwinder/find_fde/next_definition_p.h"
#include "jitunwind/adapters/system_unwinder/find_fde/unwinder_copies_p.h"

namespace jitunwind {

class JumpSlots {
 public:
  constexpr JumpSlots() noexcept = default;

  /// Looks at every copy of libgcc_s in the process and takes the slots of those whose questions do not arrive. Of
  /// copies that stay that is tried out. Others could be unloaded while they are asked: their slots are taken while the
  /// list of objects is locked, wherever they lead. Not signal-safe; thread-safe. Does not wait for constructors of
  /// others.
  void look() noexcept;

  /// In every slot that was looked at, and that stays, stands what stood there then. A load for each.
  bool are_as_left() const noexcept {
    for (const Slot& slot : slots_) {
      const std::uintptr_t* const word = slot.word.load(std::memory_order_acquire);
      if (word == nullptr) break;
      if (load(word) != slot.left.load(std::memory_order_relaxed)) return false;
    }
    return true;
  }

  struct Seen {
    unsigned taken = 0;      ///< copies whose slots lead here
    unsigned unreached = 0;  ///< those that do not ask here
    const char* why = "";    ///< of one of the latter; static storage
    bool again = false;      ///< something is being loaded or bound: look again soon
  };
  /// At the last look.
  Seen seen() const noexcept;

  /// For the moment when this library's code goes: no slot, and nobody who has taken a slot since, leads here any more.
  void give_back() noexcept;

 private:
  static constexpr std::size_t k_most_slots = 16;
  static constexpr std::size_t k_most_entries = 64;

  /// Where a slot leads: a function of this library for each, that knows what stood there. Never used for another slot,
  /// nor with another next definition, since a thread may be on its way into it.
  struct Entry {
    constexpr explicit Entry(FindFde* function) noexcept : next(function) {}
    NextDefinition next;
    std::atomic<std::uintptr_t*> word{nullptr};
    std::atomic<FindFde*> lead{nullptr};  ///< the function, or what forwards to it; null: not made yet
  };
  /// Of a copy that stays.
  struct Slot {
    std::atomic<std::uintptr_t*> word{nullptr};
    std::atomic<std::uintptr_t> left{0};
  };
  class Visitor;

  template <std::size_t k_index>
  static const void* function(void* pc, EhBases* bases) noexcept;
  template <std::size_t... k_indices>
  static constexpr std::array<Entry, sizeof...(k_indices)> make_entries(std::index_sequence<k_indices...>) noexcept;
  static std::array<Entry, k_most_entries> entries_;

  static std::uintptr_t load(const std::uintptr_t* word) noexcept { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
  std::size_t entries_used() const noexcept;
  bool is_ours(std::uintptr_t value) const noexcept;
  Entry* entry_for(std::uintptr_t* word, FindFde* next) noexcept;
  void leave(std::uintptr_t* word, std::uintptr_t value) noexcept;

  // Why it is not taken; null: it is.
  const char* take_in_passing(const UnwinderCopy& copy, bool& again) noexcept;
  const char* take(const UnwinderCopy& copy, std::uintptr_t& left) noexcept;
  const char* reach(const UnwinderCopy& copy, std::uintptr_t& left) noexcept;

  std::array<Slot, k_most_slots> slots_{};
  std::atomic<unsigned> entries_used_{0};
  std::atomic<unsigned> taken_{0};
  std::atomic<unsigned> unreached_{0};
  std::atomic<const char*> why_{""};
  std::atomic<bool> again_{false};
};

extern constinit JumpSlots jump_slots;

}  // namespace jitunwind
