#include "jitunwind/adapters/system_unwinder/refusals_p.h"

#include <array>
#include <atomic>

namespace jitunwind {
namespace {

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
