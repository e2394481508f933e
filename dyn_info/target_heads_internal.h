// Where the lists of registered procedures of a target begin that is known by its mappings: docs/registry.md "Finding
// the list".
#pragma once

#include <array>
#include <span>
#include <vector>

#include "jitunwind/dyn_info/list_index_internal.h"
#include "jitunwind/dyn_info/target_list.h"
#include "jitunwind/unwind_core/targets/mapped_modules.h"

namespace jitunwind {

/// By the note of every copy of the library; where no object has one by the symbol _U_dyn_info_list of the dynamic
/// symbols, or else of the symbols of the program and of libraries that are called after libunwind. A head that the
/// target's memory does not hold, as that of a sample, is none. Looks when it is first asked, and again after
/// look_again(). Used by one thread at a time.
class TargetHeads final : public ListHead {
 public:
  TargetHeads(const Memory& memory, const Arch& arch, const MappedModules& modules, const TargetFiles& files) noexcept
      : memory_(memory), arch_(arch), modules_(modules), files_(files) {}

  Result<Addr> list_head(std::size_t number, MemoryWindow& window) const noexcept override;
  const Memory* memory_now() const noexcept override { return memory_now_; }
  ListIndex* index_of(std::size_t number, bool is_changing) const noexcept override {
    return number < k_most ? &(is_changing ? changing_ : indexes_)[number] : nullptr;
  }

  Changes changes_of(std::size_t number) const noexcept override {
    return number < lists_.size() ? lists_[number].changes : Changes{};
  }

  /// What is known of the lists' procedures stays, as long as their generations do.
  void look_again() noexcept { has_looked_ = false; }
  /// What is known of every list becomes what it is now; `changed` becomes the code of the procedures by which the
  /// lists differ from what they were when something was last asked of them. False: that is not known. Of a list that
  /// was never asked, or is about to change, it is not; nor where there are other lists than before.
  bool learn_changes(std::vector<AddrRange>& changed) noexcept;
  /// It may be another program by now.
  void forget() noexcept {
    has_looked_ = false;
    for (ListIndex& index : indexes_) index.forget();
    forget_changing();
  }
  struct List {
    Addr head = 0;
    Changes changes{};
  };
  /// Those that were found.
  std::span<const List> known() const noexcept { return lists_; }
  /// As memory_now() says; null: the target stands still.
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
  mutable std::array<ListIndex, k_most> indexes_;
  // Of lists that the target was stopped in the middle of changing: as they are in this moment alone. What was known of
  // them before stays in indexes_, and becomes what they are by the changes since.
  mutable std::array<ListIndex, k_most> changing_;
  mutable bool has_looked_ = false;
};

}  // namespace jitunwind
