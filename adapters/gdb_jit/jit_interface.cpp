#include "adapters/gdb_jit/jit_interface_p.h"

#include <dlfcn.h>

#include <atomic>

// Static programs have none.
#pragma weak dlsym
#pragma weak dladdr

extern "C" {
// Weak: where LLVM is linked statically as well, its strong definitions count for both.
[[gnu::weak, gnu::visibility("default")]] constinit jit_descriptor __jit_debug_descriptor{1, 0, nullptr, nullptr};
[[gnu::weak, gnu::visibility("default"), gnu::noinline]] void __jit_debug_register_code() {
  asm volatile("" ::: "memory");
}
/// Of that descriptor. The number is the layout's.
[[gnu::weak, gnu::visibility("default")]] constinit jitunwind::JitDebugUsers jitunwind_jit_debug_users_1;
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

const void* module_of(const void* at) noexcept {
  Dl_info info;
  return at != nullptr && &dladdr != nullptr && dladdr(at, &info) != 0 ? info.dli_fbase : nullptr;
}

/// The debugger may stop the process between any two stores, and reads the list from its head by `next_entry`.
template <class T>
void store(T*& place, T* value) noexcept {
  std::atomic_ref<T*>(place).store(value, std::memory_order_release);
}

}  // namespace

void JitInterface::find() noexcept {
  descriptor_ = &__jit_debug_descriptor;
  breakpoint_ = &__jit_debug_register_code;
  users_ = &jitunwind_jit_debug_users_1;
  if (&dlsym == nullptr) return;
  void* const descriptor = dlsym(RTLD_DEFAULT, "__jit_debug_descriptor");
  void* const breakpoint = dlsym(RTLD_DEFAULT, "__jit_debug_register_code");
  // A debugger looks for both in one module.
  if (descriptor == nullptr || breakpoint == nullptr || module_of(descriptor) != module_of(breakpoint)) return;
  descriptor_ = static_cast<jit_descriptor*>(descriptor);
  breakpoint_ = reinterpret_cast<void (*)()>(breakpoint);
  if (void* const users = dlsym(RTLD_DEFAULT, "jitunwind_jit_debug_users_1"))
    users_ = static_cast<JitDebugUsers*>(users);
}

void JitInterface::open(std::span<const std::byte> empty_file) noexcept {
  find();
  const LockScope scope(users_->lock);
  ++users_->count;
  jit_code_entry* const others = descriptor_->first_entry;
  first_ = {&last_, nullptr, empty_file.data(), empty_file.size()};
  last_ = {others, &first_, empty_file.data(), empty_file.size()};
  store(descriptor_->first_entry, &first_);
  if (others != nullptr) others->prev_entry = &last_;
}

void JitInterface::close() noexcept {
  {
    const LockScope scope(users_->lock);
    if (last_.next_entry != nullptr) last_.next_entry->prev_entry = first_.prev_entry;
    store(first_.prev_entry != nullptr ? first_.prev_entry->next_entry : descriptor_->first_entry, last_.next_entry);
    // A debugger that came later has read them.
    tell(k_unregister, first_);
    tell(k_unregister, last_);
    --users_->count;
  }
  descriptor_ = nullptr;
}

unsigned JitInterface::users() const noexcept {
  if (!is_open()) return 0;
  const LockScope scope(users_->lock);
  return users_->count;
}

void JitInterface::add(jit_code_entry& entry) noexcept {
  const LockScope scope(users_->lock);
  entry.prev_entry = &first_;
  entry.next_entry = first_.next_entry;
  entry.next_entry->prev_entry = &entry;
  store(first_.next_entry, &entry);
  tell(k_register, entry);
}

void JitInterface::remove(jit_code_entry& entry) noexcept {
  const LockScope scope(users_->lock);
  entry.next_entry->prev_entry = entry.prev_entry;
  store(entry.prev_entry->next_entry, entry.next_entry);
  tell(k_unregister, entry);
}

void JitInterface::tell(std::uint32_t action, jit_code_entry& entry) noexcept {
  ++stops_;
  descriptor_->relevant_entry = &entry;
  descriptor_->action_flag = action;
  breakpoint_();
  // A debugger that comes later reads the list alone.
  descriptor_->action_flag = 0;
  descriptor_->relevant_entry = nullptr;
}

}  // namespace jitunwind
