#include "jitunwind/dyn_info/registry/observers_internal.h"

#include <algorithm>
#include <array>
#include <optional>

#include "jitunwind/dyn_info/registry/registry_internal.h"
#include "jitunwind/dyn_info/registry/registry_state_p.h"
#include "jitunwind/dyn_info/registry/take_out_p.h"
#include "jitunwind/unwind_core/heap_internal.h"

namespace jitunwind {

constinit ObserverList observers;
constinit std::atomic<bool (*)(Addr start) noexcept> is_in_file{nullptr};

namespace {

/// Lists the registered procedures, oldest first, and returns how many there are, or nothing if `into` is too small.
std::optional<std::size_t> list_registered(std::span<RegisteredProcedure> into) noexcept {
  std::size_t count = 0;
  bool complete = true;
  registry.lock.lock();
  for (NodeId id = registry.list.first(); id != 0 && complete;) {
    const ProcedureNode& node = registry.nodes[id];
    const NodeState state(node.state.load(std::memory_order_acquire));
    complete = count < into.size();
    if (state.live() && complete)
      into[count++] = {node.info.load(std::memory_order_relaxed), {state.registration(), id}};
    id = node.list_next.load(std::memory_order_relaxed);
  }
  (void)unlock(nullptr);
  if (!complete) return std::nullopt;
  std::ranges::reverse(into.first(count));
  return count;
}

}  // namespace

bool tell_of_all(RegistryObserver& observer) noexcept {
  for (;;) {
    // The memory is allocated without the lock: else retire could find the lock held by a thread that waits for
    // malloc's.
    const std::size_t room = registry_statistics().registered + 64;
    const HeapArray<RegisteredProcedure> all(
        static_cast<RegisteredProcedure*>(allocate(room * sizeof(RegisteredProcedure))));
    if (!all) return false;
    const auto count = list_registered({all.get(), room});
    if (!count) continue;
    if (*count != 0) observer.registered({all.get(), *count});
    return true;
  }
}

void ObserverList::add(RegistryObserver& observer) noexcept {
  observer.next_ = first_.load(std::memory_order_relaxed);
  first_.store(&observer, std::memory_order_seq_cst);
}

bool ObserverList::remove(RegistryObserver& observer) noexcept {
  RegistryObserver* before = nullptr;
  for (RegistryObserver* o = first_.load(std::memory_order_relaxed); o != nullptr; before = o, o = o->next_) {
    if (o != &observer) continue;
    if (before != nullptr)
      before->next_ = o->next_;
    else
      first_.store(o->next_, std::memory_order_seq_cst);
    return true;
  }
  return false;
}

bool ObserverList::contains(const RegistryObserver& observer) const noexcept {
  const RegistryObserver* o = first_.load(std::memory_order_relaxed);
  while (o != nullptr && o != &observer) o = o->next_;
  return o != nullptr;
}

constinit thread_local Addr ToldLater::start_ = 0;

void tell_registered(std::span<unw_dyn_info_t* const> procedures) noexcept {
  constexpr std::size_t k_at_once = 256;
  std::array<RegisteredProcedure, k_at_once> some;
  const WritingScope writing;
  const ObserversScope scope;
  while (!procedures.empty()) {
    const auto part = procedures.first(std::min(procedures.size(), k_at_once));
    procedures = procedures.subspan(part.size());
    std::transform(part.begin(), part.end(), some.begin(), [](unw_dyn_info_t* info) {
      return RegisteredProcedure{info, registration_of(info)};
    });
    observers.tell([&](RegistryObserver& o) { o.registered({some.data(), part.size()}); });
  }
}

void tell_cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept {
  const WritingScope writing;
  const ObserversScope scope;
  observers.tell([&](RegistryObserver& o) { o.cancelled(procedures); });
}

Status attach_in_scope(RegistryObserver& observer) noexcept {
  if (observers.contains(observer)) return Error{ErrorCode::already_registered, 0, "observer is attached"};
  observers.add(observer);
  if (tell_of_all(observer)) return Done{};
  (void)observers.remove(observer);
  return Error{ErrorCode::out_of_memory, 0, "no memory for the list of what is registered"};
}

Status attach_observer(RegistryObserver& observer) noexcept {
  if (WritingScope::active()) return refused_to_interrupter();
  const WritingScope writing;
  const ObserversScope scope;
  return attach_in_scope(observer);
}

Status detach_observer(RegistryObserver& observer) noexcept {
  if (WritingScope::active()) return refused_to_interrupter();
  const WritingScope writing;
  const ObserversScope scope;
  if (observers.remove(observer)) return Done{};
  return Error{ErrorCode::not_registered, 0, "observer is not attached"};
}

}  // namespace jitunwind
