// An agent of Intel's interface for JITs: INTEL_JIT_PROFILER64 names this library to an engine, which loads it and
// calls these two functions (jitprofiling.c of ittapi).
#include <map>
#include <mutex>
#include <utility>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/sdk/dialects/itt_event.h"
#include "jitunwind/unwind_core/memory/local.h"

namespace jitunwind {
namespace {

constinit const LocalMemory k_memory;
constinit std::mutex methods_lock;
/// Engines say that a method is gone by its number.
std::map<std::uint32_t, AddrRange>& methods() {
  static auto* const all = new std::map<std::uint32_t, AddrRange>();  // until the end of the process
  return *all;
}

void hear(IttEvent&& event) {
  const std::lock_guard lock(methods_lock);
  if (event.kind == IttEvent::Kind::loaded) {
    methods()[event.method] = event.code;
    say_name(Dialect::itt, event.code, event.name);
    say_lines(Dialect::itt, event.code.begin, std::move(event.lines));
  } else if (event.kind == IttEvent::Kind::unloaded) {
    const auto gone = methods().find(event.method);
    if (gone == methods().end()) return;
    say_gone(Dialect::itt, gone->second);
    methods().erase(gone);
  }
}

}  // namespace
}  // namespace jitunwind

extern "C" [[gnu::visibility("default")]] unsigned Initialize() { return 1; }

/// 1: go on telling.
extern "C" [[gnu::visibility("default")]] int NotifyEvent(int event, void* data) {
  using namespace jitunwind;
  auto read = read_itt_event(event, reinterpret_cast<std::uintptr_t>(data), k_memory);
  if (read && read->kind != IttEvent::Kind::other) hear(std::move(*read));
  return 1;
}
