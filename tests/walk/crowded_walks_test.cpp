// Walks of threads that replace each other's entries in the table of rules.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "jitunwind/builders/registration.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"
#include "slots_code.h"
#include "tests/support/emulated.h"

#include <libunwind.h>

namespace jitunwind::test {
namespace {

using Callee = void (*)(void* self, void* argument);

struct Kind {
  explicit Kind(std::size_t slots) : code(slots), description(SlotsCode::described(slots, "slots").build().value()) {}
  SlotsCode code;
  Description description;
};

/// More procedures than there are entries.
class Crowd {
 public:
  static constexpr std::size_t k_size = KeptRules::Table::k_size * 5 / 4;

  Crowd() {
    memory_ = ::mmap(nullptr, k_bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    auto* code = static_cast<std::uint8_t*>(memory_);
    const std::array kinds{Kind(1), Kind(3)};
    std::mt19937 random(7);
    for (std::size_t i = 0; i < k_size; ++i) {
      const Kind& kind = kinds[random() % kinds.size()];
      const std::vector<std::uint8_t>& bytes = kind.code.bytes;
      std::memcpy(code, bytes.data(), bytes.size());
      registrations_.push_back(register_code(kind.description, code, bytes.size()).value());
      procedures_.push_back(reinterpret_cast<void (*)(Callee, void*)>(code));
      return_addresses_.push_back(reinterpret_cast<std::uintptr_t>(code) + kind.code.after_call);
      code += k_room;
    }
    __builtin___clear_cache(static_cast<char*>(memory_), static_cast<char*>(memory_) + k_bytes);
  }
  ~Crowd() {
    for (Registration& registration : registrations_) (void)registration.cancel();
    ::munmap(memory_, k_bytes);
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  std::size_t size() const { return procedures_.size(); }
  void call(std::size_t which, Callee callee, void* argument) const { procedures_[which](callee, argument); }
  Addr return_address(std::size_t which) const { return return_addresses_[which]; }
  bool contains(Addr pc) const { return pc - reinterpret_cast<std::uintptr_t>(memory_) < k_bytes; }

 private:
  static constexpr std::size_t k_room = 16;
  static constexpr std::size_t k_bytes = k_size * k_room;

  void* memory_ = nullptr;
  std::vector<void (*)(Callee, void*)> procedures_;
  std::vector<Addr> return_addresses_;
  std::vector<Registration> registrations_;
};

struct Stack {
  const Crowd& crowd;
  std::mt19937 random;
  std::vector<Addr> calls;  ///< return addresses in procedures, from the outermost one
  std::size_t walks = 0;
  std::size_t wrong = 0;
};

void check(Stack& stack) {
  std::array<void*, 128> listed;
  const auto count = static_cast<std::size_t>(unw_backtrace(listed.data(), static_cast<int>(listed.size())));
  auto expected = stack.calls.rbegin();
  for (std::size_t i = 0; i < count; ++i) {
    const Addr pc = reinterpret_cast<std::uintptr_t>(listed[i]);
    if (!stack.crowd.contains(pc)) continue;
    if (expected == stack.calls.rend() || *expected != pc) break;
    ++expected;
  }
  ++stack.walks;
  stack.wrong += expected != stack.calls.rend();
}

void descend(void*, void* of) {
  constexpr std::size_t k_depth = 12;
  Stack& stack = *static_cast<Stack*>(of);
  if (stack.calls.size() == k_depth) return check(stack);
  const std::size_t which = stack.random() % stack.crowd.size();
  stack.calls.push_back(stack.crowd.return_address(which));
  stack.crowd.call(which, descend, of);
  stack.calls.pop_back();
}

TEST(CrowdedWalks, TakeEachOthersPlacesAndNotTheirRules) {
  const Crowd crowd;
#ifdef __SANITIZE_THREAD__
  constexpr std::size_t k_walks = 2'000;
#else
  constexpr std::size_t k_walks = repetitions(20'000);
#endif
  std::atomic<std::size_t> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    threads.emplace_back([&crowd, &wrong, seed] {
      Stack stack{crowd, std::mt19937(seed), {}};
      while (stack.walks < k_walks) descend(nullptr, &stack);
      wrong += stack.wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace jitunwind::test
