// Methods of Intel's interface for JITs, by the numbers that engines give them.
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/sdk/dialects/itt_event.h"
#include "jitunwind/unwind_core/memory/local.h"

namespace jitunwind {
namespace {

constinit const LocalMemory k_own_memory;

/// Engines announce the end of a method by its number. Guarded by names_lock; never destroyed, since engines call until
/// the end.
constinit std::map<std::uint32_t, AddrRange>* methods = nullptr;

void note_loaded(std::uint32_t method, const AddrRange& code) {
  keep_names_whole_in_forks();
  const std::lock_guard lock(names_lock);
  if (methods == nullptr) methods = new std::map<std::uint32_t, AddrRange>();
  methods->insert_or_assign(method, code);
}

/// Empty: the method was not loaded.
AddrRange take_unloaded(std::uint32_t method) noexcept {
  const std::lock_guard lock(names_lock);
  if (methods == nullptr) return {};
  const auto gone = methods->extract(method);
  return gone ? gone.mapped() : AddrRange{};
}

}  // namespace

void forget_itt_methods_in_child() noexcept { methods = nullptr; }

void hear_itt_event(std::int32_t event, const void* data) noexcept {
  try {
    auto read = read_itt_event(event, reinterpret_cast<std::uintptr_t>(data), k_own_memory);
    if (!read || read->kind == IttEvent::Kind::other) return;
    if (read->kind == IttEvent::Kind::unloaded) return say_gone(Dialect::itt, take_unloaded(read->method));
    note_loaded(read->method, read->code);
    say_name(Dialect::itt, read->code, read->name);
    if (listens_to(Dialect::itt)) add_lines(read->code.begin, std::move(read->lines));
  } catch (const std::bad_alloc&) {
    note_unheard({ErrorCode::out_of_memory, 0, "no memory for an event of ITT"});
  }
}

}  // namespace jitunwind
