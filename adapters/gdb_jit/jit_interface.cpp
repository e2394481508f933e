#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"

#include <mutex>

#include "jitunwind/adapters/gdb_jit/jit_lists_p.h"

extern "C" {
// The definitions are weak: if LLVM is linked statically as well, its strong definitions serve both.
[[gnu::weak, gnu::visibility("default")]] constinit jit_descriptor __jit_debug_descriptor{1, 0, nullptr, nullptr};
[[gnu::weak, gnu::visibility("default"), gnu::noinline]] void __jit_debug_register_code() {
  asm volatile("" ::: "memory");
}
}

namespace jitunwind {
namespace {

constexpr std::uint32_t k_register = 1;    // JIT_REGISTER_FN
constexpr std::uint32_t k_unregister = 2;  // JIT_UNREGISTER_FN

/// Whether the list's object may be unloaded meanwhile; the object of this code cannot be.
bool may_go(const JitList& list) noexcept { return !list.lasts && list.object != object_of_own_gdb_list(); }

/// The function may be in an object that is being loaded and is not relocated yet. Calling it is safe: it exists for a
/// breakpoint, and is empty in every known definition.
void tell_list(const JitList& list, std::uint32_t action, jit_code_entry& entry) noexcept {
  list.descriptor->relevant_entry = &entry;
  list.descriptor->action_flag = action;
  list.breakpoint();
  // A debugger that attaches later must read the list only.
  list.descriptor->action_flag = 0;
  list.descriptor->relevant_entry = nullptr;
}

}  // namespace

bool JitInterface::open(std::span<const std::byte> empty_file) noexcept {
  if (own_ == nullptr) own_ = JitSharedLists::make();
  if (own_ == nullptr || empty_file.size() > own_->empty_file.size()) return false;
  gdb_was_first_ = tracer_.kind() == TracerKind::gdb;
  // The copy that made the other lists may be about to close them.
  while (JitSharedLists* const others = open_own(empty_file))
    if (open_of(*others)) break;
  return true;
}

/// Null: the interface is open. Otherwise the lists of another copy, which were there first.
JitSharedLists* JitInterface::open_own(std::span<const std::byte> empty_file) noexcept {
  const std::lock_guard scope(own_->lock);
  if (own_->copies == 0) {
    own_->start(empty_file);
    if (JitSharedLists* const others = own_->look()) return others;
    own_->put_in(__jit_debug_descriptor, &__jit_debug_register_code);
  }
  ++own_->copies;
  shared_ = own_;
  return nullptr;
}

bool JitInterface::open_of(JitSharedLists& others) noexcept {
  const std::lock_guard scope(others.lock);
  if (others.copies == 0) return false;
  ++others.copies;
  shared_ = &others;
  (void)others.look();
  others.put_in(__jit_debug_descriptor, &__jit_debug_register_code);
  return true;
}

/// A debugger that attached later has read these entries. GDB complains of those that it has not read.
void JitInterface::tell_that_guards_go() noexcept {
  for (JitList& list : shared_->lists)
    if (list.descriptor != nullptr) tell(k_unregister, list.guard);
  tell(k_unregister, shared_->first_entry);
  tell(k_unregister, shared_->last_entry);
}

void JitInterface::close() noexcept {
  const std::lock_guard scope(shared_->lock);
  if (--shared_->copies == 0) {
    shared_->take_out_all();
    if (!gdb_was_first_) tell_that_guards_go();
  }
  shared_ = nullptr;
}

unsigned JitInterface::users() const noexcept {
  if (!is_open()) return 0;
  const std::lock_guard scope(shared_->lock);
  return shared_->copies;
}

void JitInterface::add(jit_code_entry& entry) noexcept {
  const std::lock_guard scope(shared_->lock);
  (void)shared_->look();
  jit_code_entry& first = shared_->first_entry;
  entry.prev_entry = &first;
  entry.next_entry = first.next_entry;
  entry.next_entry->prev_entry = &entry;
  store(first.next_entry, &entry);
  tell(k_register, entry);
}

void JitInterface::remove(jit_code_entry& entry) noexcept {
  const std::lock_guard scope(shared_->lock);
  entry.next_entry->prev_entry = entry.prev_entry;
  store(entry.prev_entry->next_entry, entry.next_entry);
  tell(k_unregister, entry);
}

/// LLDB has a breakpoint in one of the functions, and its choice is not known here. GDB has one in each, and would
/// count an entry twice if it is told twice.
void JitInterface::tell(std::uint32_t action, jit_code_entry& entry) noexcept {
  ++stops_;
  for (JitList& list : shared_->lists) list.is_told = false;
  const bool once = tracer_.kind() == TracerKind::gdb;
  if (tell_lists(action, entry, once)) return;
  (void)shared_->look();
  (void)tell_lists(action, entry, once);
}

/// False: objects may have been unloaded, and their lists were not told.
bool JitInterface::tell_lists(std::uint32_t action, jit_code_entry& entry, bool first_alone) noexcept {
  bool all = true;
  const JitList* const first = shared_->first();
  for (JitList& list : shared_->lists) {
    if (list.descriptor == nullptr || list.is_told || (first_alone && &list != first)) continue;
    if (may_go(list)) {
      list.is_told = while_they_stay(shared_->seen, [&] { tell_list(list, action, entry); });
    } else {
      tell_list(list, action, entry);
      list.is_told = true;
    }
    all = all && list.is_told;
  }
  return all;
}

}  // namespace jitunwind
