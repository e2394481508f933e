// Registering fails if a mapping fails; cancelling works even if all fail.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <vector>

#include "jitunwind/builders/registration.h"
#include "tests/registry/procedures.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/jit_frame.h"

namespace {

/// Mappings of this thread are counted, and the failing ones fail, while this is set.
struct Mappings {
  unsigned asked = 0;
  unsigned fails = 0;  ///< which one, from 1; 0: all
};
thread_local constinit Mappings* mappings = nullptr;

}  // namespace

extern "C" void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) noexcept {
  if (mappings != nullptr && (++mappings->asked == mappings->fails || mappings->fails == 0)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
}

namespace {

using namespace jitunwind;
using namespace registry_test;
using jitunwind::test::JitFrame;
using jitunwind::test::NoMemory;

constexpr std::uint64_t k_code = 0x40000000;

/// Makes mappings fail within a scope.
class FailingMappings {
 public:
  explicit FailingMappings(unsigned which) : state_{0, which} { mappings = &state_; }
  ~FailingMappings() { mappings = nullptr; }
  FailingMappings(const FailingMappings&) = delete;
  FailingMappings& operator=(const FailingMappings&) = delete;
  unsigned asked() const { return state_.asked; }

 private:
  Mappings state_;
};

/// Returns whether a throw through `frame` arrives.
bool can_be_thrown_through(const JitFrame& frame) {
  try {
    frame([](void*) -> void* { throw 1; }, nullptr);
  } catch (int) {
    return true;
  }
  return false;
}

enum Outcome { passed = 17, mapped_less = 18 };

/// Makes the first registration of a process, with its n-th mapping failing.
[[noreturn]] void register_first(unsigned n) {
  unw_dyn_info_t first = procedure(k_code, 16);
  unsigned asked = 0;
  std::optional<Status> registered;
  {
    const FailingMappings failing(n);
    registered = register_procedure(&first);
    asked = failing.asked();
  }
  if (!*registered && registered->error().code != ErrorCode::out_of_memory) _exit(1);
  if (!*registered && (lookup(k_code) != nullptr || !listed().empty())) _exit(2);
  if (!*registered && !register_procedure(&first)) _exit(3);
  const JitFrame frame;  // finds ready whatever the first one made ready
  if (!can_be_thrown_through(frame) || lookup(k_code) != &first || !cancel_procedure(&first)) _exit(4);
  _exit(asked < n ? mapped_less : passed);
}

/// Returns the status of a child that registers with the n-th mapping failing.
int outcome(unsigned n) {
  const pid_t child = fork();
  if (child == 0) register_first(n);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  return WEXITSTATUS(status);
}

TEST(NoMemoryForTheRegistry, OneMappingThatFailsIsReportedOrMadeUpFor) {
  unsigned n = 1;
  for (; outcome(n) == passed; ++n) ASSERT_LT(n, 100u);
  EXPECT_EQ(outcome(n), mapped_less) << "mapping " << n;
  std::printf("%u mappings\n", n - 1);
  EXPECT_GT(n, 5u);
}

TEST(NoMemoryForTheRegistry, BatchIsTakenOutAllTheSame) {
  const auto description = jitunwind::test::host::describe("code").build();
  ASSERT_TRUE(description);
  unsigned asked = 0;
  {
    RegistrationBatch batch;
    for (std::uint64_t i = 0; i < 3; ++i) {
      auto one = register_code(*description, Code{.start = k_code + 64 * i, .size = 64});
      ASSERT_TRUE(one);
      ASSERT_TRUE(batch.add(std::move(*one)));
    }
    const NoMemory no_memory;
    const FailingMappings failing(0);
    batch = {};
    asked = failing.asked();
  }
  EXPECT_EQ(asked, 0u);
  EXPECT_EQ(registry_statistics().registered, 0u);
}

// Batches that nobody has reclaimed use up the records of batches.
TEST(NoMemoryForTheRegistry, BatchIsTakenOutWithoutARecord) {
  std::vector<unw_dyn_info_t> retired(300, procedure(k_code, 16));
  std::array<unw_dyn_info_t, 3> cancelled{procedure(k_code + 64, 16), procedure(k_code + 128, 16),
                                          procedure(k_code, 8)};
  for (unw_dyn_info_t& info : cancelled) ASSERT_TRUE(register_procedure(&info));
  for (unw_dyn_info_t& info : retired) ASSERT_TRUE(register_procedure(&info));
  int reclaims = 0;
  const auto count = [](void* counter) { ++*static_cast<int*>(counter); };
  std::vector<RetireTicket> tickets;
  const FailingMappings failing(0);
  for (unw_dyn_info_t& info : retired) {
    const auto ticket = retire_procedures(std::array{&info}, count, &reclaims);
    if (!ticket) break;
    tickets.push_back(*ticket);
  }
  ASSERT_LT(tickets.size(), retired.size()) << "there is always another record";
  const Status partly = cancel_procedures(std::array{&cancelled[0], &retired[0], &cancelled[2]});
  ASSERT_EQ(error_of(partly), "not_registered");
  EXPECT_EQ(partly.error().at, reinterpret_cast<std::uintptr_t>(&retired[0]));
  EXPECT_EQ(registry_statistics().registered, 1 + retired.size() - tickets.size());
  for (const RetireTicket& ticket : tickets) EXPECT_TRUE(reclaimed(ticket));
  EXPECT_EQ(reclaims, static_cast<int>(tickets.size()));
  EXPECT_TRUE(cancel_procedure(&cancelled[1]));
  for (std::size_t i = tickets.size(); i < retired.size(); ++i) EXPECT_TRUE(cancel_procedure(&retired[i]));
}

}  // namespace
