// Walks of threads that take each other's places in the table of rules.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "jitunwind/builders/procedure_builder.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"

#include <libunwind.h>

namespace jitunwind::test {
namespace {

using Callee = void (*)(void* self, void* argument);

/// void procedure(Callee f, void* argument), which calls f(f, argument) in a frame of `pushes` words.
struct Kind {
  std::vector<std::uint8_t> code;
  std::size_t after_call;
  Description description;
};

std::string row_behind(std::size_t pushes) {
  const std::string cfa = "cfa=rsp+" + std::to_string(8 + 8 * pushes);
  return cfa + (pushes > 0 ? " rbx=[cfa-16]" : "") + " ra=[cfa-8]";
}

Kind kind_of(std::size_t pushes) {
  std::vector<std::uint8_t> code(pushes, 0x53);  // push %rbx
  code.insert(code.end(), {0xff, 0xd7});         // call *%rdi
  code.insert(code.end(), pushes, 0x5b);         // pop %rbx
  code.push_back(0xc3);                          // ret
  auto procedure = x86_64::describe("pushes");
  for (std::size_t i = 0; i <= pushes; ++i) procedure.row_at(static_cast<std::int64_t>(i), row_behind(i));
  for (std::size_t i = 1; i <= pushes; ++i)
    procedure.row_at(static_cast<std::int64_t>(pushes + 2 + i), row_behind(pushes - i));
  return {code, pushes + 2, procedure.build().value()};
}

/// More procedures than there are entries.
class Crowd {
 public:
  static constexpr std::size_t k_size = KeptRules::Table::k_size * 5 / 4;

  Crowd() {
    memory_ = ::mmap(nullptr, k_bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    auto* code = static_cast<std::uint8_t*>(memory_);
    const std::array kinds{kind_of(1), kind_of(3)};
    std::mt19937 random(7);
    for (std::size_t i = 0; i < k_size; ++i) {
      const Kind& kind = kinds[random() % kinds.size()];
      std::memcpy(code, kind.code.data(), kind.code.size());
      registrations_.push_back(register_code(kind.description, code, kind.code.size()).value());
      procedures_.push_back(reinterpret_cast<void (*)(Callee, void*)>(code));
      return_addresses_.push_back(reinterpret_cast<std::uintptr_t>(code) + kind.after_call);
      code += k_room;
    }
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
  constexpr std::size_t k_walks = 20'000;
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
