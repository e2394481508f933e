// The heads of the lists of registered procedures in a target that is known by its mappings: docs/registry.md "Finding
// the list".
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "jitunwind/dyn_info/list_index_internal.h"
#include "jitunwind/dyn_info/target_list.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/targets/mapped_modules.h"

namespace jitunwind {

/// The head of a list of procedures.
struct ListState {
  std::uint32_t generation = 0;  ///< odd while a writer is at work
  Addr first = 0;                ///< descriptor of the newest procedure; 0: there is none
  bool is_changing() const noexcept { return generation % 2 != 0; }
};

/// Reads the unw_dyn_info_list_t at `head`. Errors: those of unreadable(); unsupported_version.
Result<ListState> read_list_state(Addr head, const Memory& memory, const Arch& arch, MemoryWindow& window) noexcept;

/// The number of changes that have made a list, which must not be changing. Empty: the number is not kept, or cannot be
/// read.
std::optional<std::uint64_t> count_changes(const ListHead::Changes& where, const Memory& memory, const Arch& arch,
                                           MemoryWindow& window) noexcept;
/// Reads that list's changes of the numbers from `first` on, the oldest first. Empty: not all of them are kept. Throws
/// std::bad_alloc.
std::optional<std::vector<ListIndex::Change>> read_changes(const ListHead::Changes& where, std::uint64_t first,
                                                           const Memory& memory, const Arch& arch,
                                                           MemoryWindow& window);

/// Finds heads by the note in every copy of the library. If no object has the note, the symbol _U_dyn_info_list leads
/// to them: first as a dynamic symbol, then as a symbol of the program or of libraries whose names contain libunwind. A
/// head that the target's memory does not hold, as in a sample, is ignored. The search is made on the first question,
/// and again after look_again(). One thread at a time may use this object.
class TargetHeads final : public ListHead {
 public:
  TargetHeads(const Memory& memory, const Arch& arch, const MappedModules& modules, const TargetFiles& files) noexcept
      : memory_(memory), arch_(arch), modules_(modules), files_(files) {}

  Result<Addr> list_head(std::size_t number, MemoryWindow& window) const noexcept override;
  const Memory* memory_now() const noexcept override { return memory_now_; }
  WalkedListIndex* index_of(std::size_t number, bool is_changing) const noexcept override {
    return number < k_most ? &(is_changing ? changing_ : indexes_)[number] : nullptr;
  }

  Changes changes_of(std::size_t number) const noexcept override {
    return number < lists_.size() ? lists_[number].changes : Changes{};
  }

  /// Makes the next question search again. The indexes of the lists' procedures stay valid as long as the generations
  /// do.
  void look_again() noexcept { has_looked_ = false; }
  /// Updates the index of every list. Appends to `changed` the code of the procedures by which the lists differ from
  /// their state at the last question. Returns false when these procedures are not known: a list was never asked or is
  /// about to change, or there are other lists than before.
  bool learn_changes(std::vector<AddrRange>& changed) noexcept;
  /// Forgets everything, because the process may run another program now.
  void forget() noexcept {
    has_looked_ = false;
    for (ListIndex& index : indexes_) index.forget();
    forget_changing();
  }
  struct List {
    Addr head = 0;
    Changes changes{};
  };
  /// The lists that were found.
  std::span<const List> known() const noexcept { return lists_; }
  /// Sets the result of memory_now(). Null means that the target is stopped.
  void set_memory_now(const Memory* memory) noexcept { memory_now_ = memory; }

 private:
  std::vector<List> find() const;
  void forget_changing() noexcept {
    for (ListIndex& index : changing_) index.forget();
  }
  bool can_be_read(Addr head) const noexcept;
  void find_notes(std::vector<List>& lists) const;
  void find_exported(std::vector<List>& lists) const;
  void find_symbols(std::vector<List>& lists) const;
  bool learn_changes_of(std::size_t number, Addr head, std::vector<AddrRange>& changed);

  const Memory& memory_;
  const Arch& arch_;
  const MappedModules& modules_;
  const TargetFiles& files_;
  const Memory* memory_now_ = nullptr;
  mutable std::vector<List> lists_;
  mutable std::array<WalkedListIndex, k_most> indexes_;
  // Indexes of lists that the target was changing when it was stopped. They are valid only in this moment. indexes_
  // keeps the previous state, and later changes bring it up to date.
  mutable std::array<WalkedListIndex, k_most> changing_;
  mutable bool has_looked_ = false;
};

}  // namespace jitunwind
