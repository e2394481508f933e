// Redirection of unwinders whose _Unwind_Find_FDE precedes this library's in the order of the symbol search. libgcc_s
// calls the function through a word in its own memory, its jump slot, and that word is redirected to this library. The
// former target, be it libgcc_s's own function, another copy of this library or a foreign one, serves all code that is
// not registered.
//
// Nothing here takes a lock. Threads that look at the same time do the same work, and a compare-exchange of the slot
// decides.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "jitunwind/adapters/system_unwinder/find_fde/next_definition_p.h"
#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"

namespace jitunwind {

// The copies of libgcc_s in this process: the system's, copies that come with other libraries under names of their own,
// and those of other namespaces (dlmopen). Each unwinds exceptions of the objects that are bound to it.

/// An object that defines both functions. Its way to _Unwind_Find_FDE may be different: the jump slot may be missing,
/// or not used.
struct UnwinderCopy {
  std::uintptr_t* slot =
      nullptr;  ///< the word through which it calls _Unwind_Find_FDE; null: there is none that can be read
  FindFde* definition = nullptr;  ///< its own definition
  FindEnclosingFunction* ask = nullptr;
  Addr bias = 0;
  bool stays = false;  ///< it stays loaded, and relocated, as long as this library
};

/// None: the object is no such copy. Reads memory only.
std::optional<UnwinderCopy> read_unwinder_copy(const ListedObject& object) noexcept;

/// The state of the slot of a copy that may be about to be loaded, or to be used for the first time.
enum class SlotState : std::uint8_t {
  unrelocated,  ///< the dynamic linker has not relocated it yet
  unbound,      ///< the first call will bind it
  bound,
};
SlotState state_of_slot(const UnwinderCopy& copy, std::uintptr_t value) noexcept;

/// Keeps the object that has `code` loaded, if it may be unloaded and is not the copy itself: foreign code has put it
/// into the slot. Memory outside of objects is not affected. Not signal-safe.
void keep_loaded(FindFde* code, const UnwinderCopy& copy) noexcept;

class JumpSlots {
 public:
  constexpr JumpSlots() noexcept = default;

  /// Examines every copy of libgcc_s in the process and takes the slots of those whose lookups do not reach this
  /// library. Copies that stay loaded are probed. Other copies could be unloaded during a probe: their slots are taken
  /// while the list of objects is locked, wherever they lead. Not signal-safe; thread-safe. Does not wait for foreign
  /// constructors.
  void look() noexcept;

  /// True when every examined slot of a copy that stays loaded has the value of that time. Costs one load per slot.
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
    unsigned unreached = 0;  ///< copies whose lookups do not reach this library
    const char* why = "";    ///< reason for one of the latter; static storage
    bool again = false;      ///< an object is being loaded or bound: look again soon
  };
  /// The result of the last look().
  Seen seen() const noexcept;

  /// Called before this library's code is unloaded: afterwards no slot, and no function that replaced a slot since,
  /// leads here any more.
  void give_back() noexcept;

 private:
  static constexpr std::size_t k_most_slots = 16;
  static constexpr std::size_t k_most_entries = 64;

  /// The target of a slot: one function of this library each, with the slot's former target. It is never reused for
  /// another slot or another next definition, since a thread may be about to enter it.
  struct Entry {
    NextDefinition next{nullptr};  ///< begins to be when the entry is taken
    std::atomic<std::uintptr_t*> word{nullptr};
    std::atomic<FindFde*> lead{nullptr};  ///< the function, or its forwarder; null: not made yet
  };
  /// The slot of a copy that stays loaded.
  struct Slot {
    std::atomic<std::uintptr_t*> word{nullptr};
    std::atomic<std::uintptr_t> left{0};
  };
  class Visitor;

  static const void* find(void* pc, EhBases* bases, const void* caller, Entry& entry) noexcept;
  template <std::size_t k_index>
  static const void* function(void* pc, EhBases* bases) noexcept;
  template <class Indices>
  struct Functions;
  static std::array<Entry, k_most_entries> entries_;

  static std::uintptr_t load(const std::uintptr_t* word) noexcept { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
  std::size_t entries_used() const noexcept;
  bool is_ours(std::uintptr_t value) const noexcept;
  Entry* entry_for(std::uintptr_t* word, FindFde* next) noexcept;
  void leave(std::uintptr_t* word, std::uintptr_t value) noexcept;

  // These return the reason why the slot is not taken; null: it is taken.
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

// Forwarders call a target that can be replaced. They serve as pointers to code of a library that may be unloaded while
// others keep the pointers. Their memory is never freed.

/// Null: there is no executable memory. Not signal-safe.
FindFde* make_forwarder(FindFde* target) noexcept;

/// On return no thread is in a call of the former target that was made through the forwarder. The wait ends after a
/// second: a thread that is still counted has left the call by a jump, or belongs to the parent of a forked process.
/// Not signal-safe.
void redirect(FindFde* forwarder, FindFde* target) noexcept;

}  // namespace jitunwind
