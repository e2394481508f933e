#include "jitunwind/unwind_core/modules/object_list_internal.h"

#include <link.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <span>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/modules/local_modules_p.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

// A static program has none.
#pragma weak _DYNAMIC

namespace jitunwind {
namespace {

// glibc does not free the list's lock in a child (2.36). If another thread has it when fork is called, nobody will ever
// list objects there. So fork waits for those of our threads that have it, which is short, and they wait for fork.
constinit std::atomic<int> listers{0};
constinit std::atomic<bool> forking{false};
constinit std::atomic<bool> lost{false};  // somebody has the lock who is not in this child
constinit thread_local bool this_thread_lists = false;

void before_fork() noexcept {
  forking.store(true, std::memory_order_seq_cst);
  // Somebody may have forked inside of dl_iterate_phdr(), and they wait for that thread: not for ever, but longer than
  // a processor keeps them waiting.
  const ErrnoKeeper keep_errno;
  constexpr int k_yields = 100, k_patience = 10'000;
  for (int i = 0; i < k_patience && listers.load(std::memory_order_seq_cst) > int{this_thread_lists}; ++i)
    i < k_yields ? (void)::sched_yield() : sleep_for_nanoseconds(100'000);
}
void after_fork() noexcept { forking.store(false, std::memory_order_seq_cst); }
void after_fork_in_child() noexcept {
  listers.store(this_thread_lists, std::memory_order_relaxed);
  // This thread, when a signal handler forked, or one that loads or unloads.
  if (this_thread_lists || !is_linker_consistent()) lost.store(true, std::memory_order_relaxed);
  after_fork();
}

}  // namespace

[[gnu::hot]] void watch_forks_of_object_list() noexcept {
  constinit static std::atomic<bool> watching{false};
  if (watching.exchange(true)) return;
  (void)::pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

namespace {

/// A fork may come before the first use.
[[gnu::constructor]] void watch_forks_from_the_start() { watch_forks_of_object_list(); }

using Callback = int(dl_phdr_info*, std::size_t, void*);

void iterate(Callback* callback, void* argument) noexcept {
  if (lost.load(std::memory_order_relaxed)) return;
  this_thread_lists = true;
  while (listers.fetch_add(1, std::memory_order_seq_cst), forking.load(std::memory_order_seq_cst)) {
    listers.fetch_sub(1, std::memory_order_seq_cst);
    ::sched_yield();
  }
  ::dl_iterate_phdr(callback, argument);
  listers.fetch_sub(1, std::memory_order_seq_cst);
  this_thread_lists = false;
}

struct Visit {
  ObjectVisitor& visitor;
  Addr first = 0;  // dynamic section of the first object of our own namespace
  ListVersion version{};
};

ListVersion version_of(const dl_phdr_info& info, std::size_t size) noexcept {
  if (size < offsetof(dl_phdr_info, dlpi_subs) + sizeof info.dlpi_subs) return {};
  return {info.dlpi_adds, info.dlpi_subs};
}

int visit_own(dl_phdr_info* info, std::size_t size, void* argument) noexcept {
  Visit& visit = *static_cast<Visit*>(argument);
  visit.version = version_of(*info, size);
  for (const ElfW(Phdr) & header : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    if (header.p_type != PT_DYNAMIC) continue;
    const Addr dynamic = info->dlpi_addr + header.p_vaddr;
    if (visit.first == 0) visit.first = dynamic;
    visit.visitor.visit({info->dlpi_addr, dynamic, info->dlpi_name != nullptr ? info->dlpi_name : ""});
  }
  return 0;
}

int visit_others(dl_phdr_info*, std::size_t, void* argument) noexcept {
  const Visit& visit = *static_cast<Visit*>(argument);
  const auto dynamic = [](const link_map* object) { return Addr{reinterpret_cast<std::uintptr_t>(object->l_ld)}; };
  for (const LinkerSpace* space = linker_spaces(); space != nullptr; space = space->next) {
    const link_map* object = space->head.r_map;
    if (object != nullptr && dynamic(object) == visit.first) continue;
    for (; object != nullptr; object = object->l_next)
      visit.visitor.visit({object->l_addr, dynamic(object), object->l_name});
  }
  return 1;
}

}  // namespace

void visit_objects(ObjectVisitor& visitor) noexcept {
  Visit visit{visitor};
  iterate(visit_own, &visit);
  iterate(visit_others, &visit);
}

ListVersion visit_own_objects(ObjectVisitor& visitor) noexcept {
  Visit visit{visitor};
  iterate(visit_own, &visit);
  return visit.version;
}

Addr own_dynamic_section() noexcept { return reinterpret_cast<std::uintptr_t>(&_DYNAMIC); }

constinit std::atomic<std::uint64_t> own_loads{0};

ListVersion list_version() noexcept {
  renew_linked_objects();
  ListVersion version;
  iterate(
      [](dl_phdr_info* info, std::size_t size, void* argument) {
        *static_cast<ListVersion*>(argument) = version_of(*info, size);
        return 1;
      },
      &version);
  return version;
}

namespace {

struct Call {
  void (*action)(void*);
  void* argument;
  const ListVersion* expected = nullptr;
  bool done = false;
};

int run_call(dl_phdr_info* info, std::size_t size, void* of) noexcept {
  Call& call = *static_cast<Call*>(of);
  if (call.expected != nullptr && version_of(*info, size) != *call.expected) return 1;
  call.action(call.argument);
  call.done = true;
  return 1;
}

}  // namespace

void with_object_list(void (*action)(void*), void* argument) noexcept {
  Call call{action, argument};
  iterate(run_call, &call);
}

bool with_object_list(const ListVersion& expected, void (*action)(void*), void* argument) noexcept {
  Call call{action, argument, &expected};
  iterate(run_call, &call);
  return call.done;
}

}  // namespace jitunwind
