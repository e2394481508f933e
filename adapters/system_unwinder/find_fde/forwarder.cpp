#include "jitunwind/adapters/system_unwinder/find_fde/jump_slots_p.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>

#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

// The code that is copied: unwind_core/arch/*/forwarder.S.
extern "C" [[gnu::visibility("hidden")]] const char jitunwind_forwarder[];
extern "C" [[gnu::visibility("hidden")]] const char jitunwind_forwarder_end[];
/// Distance from the code to its data: no smaller than any page of the CPU.
extern "C" [[gnu::visibility("hidden")]] const std::uintptr_t jitunwind_forwarder_data;

namespace jitunwind {
namespace {

/// The data lies after the code, on another page.
struct Data {
  std::atomic<FindFde*> target;
  struct alignas(64) Counter {
    std::atomic<std::intptr_t> calls;
  };
  std::array<Counter, 4> counters;
};
static_assert(offsetof(Data, counters) == 64 && sizeof(Data) <= k_page_size);

Data& data_of(FindFde* forwarder) noexcept {
  return *reinterpret_cast<Data*>(reinterpret_cast<std::uintptr_t>(forwarder) + jitunwind_forwarder_data);
}

}  // namespace

FindFde* make_forwarder(FindFde* target) noexcept {
  const auto size = static_cast<std::size_t>(jitunwind_forwarder_end - jitunwind_forwarder);
  const std::size_t whole = jitunwind_forwarder_data + std::size_t{k_page_size};
  void* const memory = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const forwarder = reinterpret_cast<FindFde*>(memory);
  std::memcpy(memory, jitunwind_forwarder, size);
  new (&data_of(forwarder)) Data{target, {}};
  __builtin___clear_cache(static_cast<char*>(memory), static_cast<char*>(memory) + size);
  if (::mprotect(memory, jitunwind_forwarder_data, PROT_READ | PROT_EXEC) == 0) return forwarder;
  ::munmap(memory, whole);
  return nullptr;
}

void redirect(FindFde* forwarder, FindFde* target) noexcept {
  constexpr int k_patience = 50'000;  // number of pauses in a second
  Data& data = data_of(forwarder);
  data.target.store(target, std::memory_order_seq_cst);
  int pauses = 0;
  for (const Data::Counter& counter : data.counters)
    while (counter.calls.load(std::memory_order_seq_cst) != 0 && pauses++ < k_patience) sleep_for_nanoseconds(20'000);
}

}  // namespace jitunwind
