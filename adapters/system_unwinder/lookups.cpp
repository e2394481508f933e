#include "jitunwind/adapters/system_unwinder/frames/registered_fde_p.h"

#include <array>
#include <atomic>

#include "jitunwind/dyn_info/registry/registry_internal.h"

namespace jitunwind {
namespace {

// Unwinders call back on the thread of the caller. Lookups by other threads, through other copies of libgcc_s, prove
// nothing.
constinit thread_local bool probe_has_come = false;

/// The thread that has the number writes the entry. A read is valid if the number is the same at its end.
struct Entry {
  std::atomic<std::uint64_t> number{0};
  std::atomic<Addr> pc{0};
  std::atomic<const char*> what{""};
  std::atomic<ErrorCode> code{ErrorCode::unspecified};
};

constexpr std::size_t k_entries = 8;
constinit std::array<Entry, k_entries> entries;
constinit std::atomic<std::uint64_t> count{0};

}  // namespace

constinit std::byte probe_place[2]{};
constinit std::atomic<unsigned> own_runtime_questions{0};

void note_probe() noexcept { probe_has_come = true; }

[[gnu::hot]] bool question_arrives(FindEnclosingFunction* ask) noexcept {
  if (ask == nullptr) return false;
  const unsigned before = own_runtime_questions.load(std::memory_order_relaxed);
  probe_has_come = false;
  (void)ask(&probe_place[1]);
  return probe_has_come || own_runtime_questions.load(std::memory_order_relaxed) != before;
}

void note_refusal(const Error& error) noexcept {
  const std::uint64_t number = count.fetch_add(1, std::memory_order_relaxed) + 1;
  Entry& entry = entries[number % k_entries];
  entry.number.store(0, std::memory_order_seq_cst);
  entry.pc.store(error.at, std::memory_order_seq_cst);
  entry.what.store(error.what, std::memory_order_seq_cst);
  entry.code.store(error.code, std::memory_order_seq_cst);
  entry.number.store(number, std::memory_order_seq_cst);
}

Refusals refusals() noexcept {
  const std::uint64_t newest = count.load(std::memory_order_seq_cst);
  Refusals all{newest, {}};
  for (std::uint64_t number = newest; number != 0 && number + k_entries > newest; --number) {
    const Entry& entry = entries[number % k_entries];
    if (entry.number.load(std::memory_order_seq_cst) != number) continue;
    all.latest = {entry.code.load(), entry.pc.load(), entry.what.load()};
    if (entry.number.load(std::memory_order_seq_cst) == number) return all;
  }
  all.latest = {};
  return all;
}

}  // namespace jitunwind
