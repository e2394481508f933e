#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"

#include "jitunwind/adapters/gdb_jit/jit_lists_p.h"

extern "C" {
// Weak: where LLVM is linked statically as well, its strong definitions count for both.
[[gnu::weak, gnu::visibility("default")]] constinit jit_descriptor __jit_debug_descriptor{1, 0, nullptr, nullptr};
[[gnu::weak, gnu::visibility("default"), gnu::noinline]] void __jit_debug_register_code() {
  asm volatile("" ::: "memory");
}
}

namespace jitunwind {
namespace {

constexpr std::uint32_t k_register = 1;    // JIT_REGISTER_FN
constexpr std::uint32_t k_unregister = 2;  // JIT_UNREGISTER_FN

class LockScope {
 public:
  explicit LockScope(WriterLock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~LockScope() { (void)lock_.unlock(); }
  LockScope(const LockScope&) = delete;
  LockScope& operator=(const LockScope&) = delete;

 private:
  WriterLock& lock_;
};

/// Code of the object itself need not fear that it goes.
bool may_go(const JitList& list) noexcept { return !list.lasts && list.object != own_dynamic_section(); }

/// The function may be of an object that is being loaded, and not relocated yet. It is there for a breakpoint, and
/// empty wherever it is known.
void tell_list(const JitList& list, std::uint32_t action, jit_code_entry& entry) noexcept {
  list.descriptor->relevant_entry = &entry;
  list.descriptor->action_flag = action;
  list.breakpoint();
  // A debugger that comes later reads the list alone.
  list.descriptor->action_flag = 0;
  list.descriptor->relevant_entry = nullptr;
}

}  // namespace

bool JitInterface::open(std::span<const std::byte> empty_file) noexcept {
  if (own_ == nullptr) own_ = JitSharedLists::make();
  if (own_ == nullptr || empty_file.size() > own_->empty_file.size()) return false;
  // Whoever it meets may be about to go.
  while (JitSharedLists* const others = open_own(empty_file))
    if (open_of(*others)) break;
  return true;
}

/// Null: it is open. Others: they were there first.
JitSharedLists* JitInterface::open_own(std::span<const std::byte> empty_file) noexcept {
  const LockScope scope(own_->lock);
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
  const LockScope scope(others.lock);
  if (others.copies == 0) return false;
  ++others.copies;
  shared_ = &others;
  (void)others.look();
  others.put_in(__jit_debug_descriptor, &__jit_debug_register_code);
  return true;
}

void JitInterface::close() noexcept {
  const LockScope scope(shared_->lock);
  if (--shared_->copies == 0) {
    shared_->take_out_all();
    // A debugger that came later has read them.
    for (JitList& list : shared_->lists)
      if (list.descriptor != nullptr) tell(k_unregister, list.guard);
    tell(k_unregister, shared_->first_entry);
    tell(k_unregister, shared_->last_entry);
  }
  shared_ = nullptr;
}

unsigned JitInterface::users() const noexcept {
  if (!is_open()) return 0;
  const LockScope scope(shared_->lock);
  return shared_->copies;
}

void JitInterface::add(jit_code_entry& entry) noexcept {
  const LockScope scope(shared_->lock);
  (void)shared_->look();
  jit_code_entry& first = shared_->first_entry;
  entry.prev_entry = &first;
  entry.next_entry = first.next_entry;
  entry.next_entry->prev_entry = &entry;
  store(first.next_entry, &entry);
  tell(k_register, entry);
}

void JitInterface::remove(jit_code_entry& entry) noexcept {
  const LockScope scope(shared_->lock);
  entry.next_entry->prev_entry = entry.prev_entry;
  store(entry.prev_entry->next_entry, entry.next_entry);
  tell(k_unregister, entry);
}

/// LLDB has a breakpoint in one of the functions, and which is not known here. GDB has one in each, and would take an
/// entry that it is told of twice for two.
void JitInterface::tell(std::uint32_t action, jit_code_entry& entry) noexcept {
  ++stops_;
  for (JitList& list : shared_->lists) list.is_told = false;
  const bool once = tracer_.kind() == TracerKind::gdb;
  if (tell_lists(action, entry, once)) return;
  (void)shared_->look();
  (void)tell_lists(action, entry, once);
}

/// False: some may have gone and were not told.
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
