// A child without memory, forked while another thread of its parent held a lock of the C++ library's: that of the pool
// of exceptions for the case that memory is exhausted.
#include <libunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <thread>

#include "jitunwind/builders/procedure_builder.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/dyn_info/registry/observers.h"
#include "tests/registry/procedures.h"
#include "tests/support/failing_memory.h"

#include "frame_code.h"

namespace {

/// The thread with this flag stays in the next lock that it gets.
constinit thread_local bool stays_in_lock = false;
std::atomic<bool> is_in_lock{false}, may_leave{false};

}  // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  using Lock = int (*)(pthread_mutex_t*);
  static constinit std::atomic<Lock> real{nullptr};
  if (real == nullptr) real = reinterpret_cast<Lock>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  const int result = real.load()(mutex);
  if (stays_in_lock) {
    stays_in_lock = false;
    is_in_lock = true;
    while (!may_leave) ::sched_yield();
  }
  return result;
}

namespace {

using namespace jitunwind;
using namespace registry_test;
using test::FailingMemory;

constexpr std::uint64_t k_code = 0x40000000;

void throw_without_memory() {
  const FailingMemory none_at_all(1);
  stays_in_lock = true;
  try {
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
  }
}

class Counter final : public RegistryObserver {
 public:
  void registered(std::span<const RegisteredProcedure> procedures) noexcept override { count += procedures.size(); }
  void cancelled(std::span<unw_dyn_info_t* const>) noexcept override {}
  void retired() noexcept override {}
  std::size_t count = 0;
};

bool is_out_of_memory(const auto& result) { return !result && result.error().code == ErrorCode::out_of_memory; }

/// Registers in each way that allocates, and cancels in each way. Returns the number of the first mistake; 0: there is
/// none.
int use_all_writers(const Description& description, unw_dyn_info_t& info, RegistrationBatch& batch) {
  const FailingMemory none_at_all(1);
  const Code code{.start = k_code, .size = 16};
  if (!is_out_of_memory(register_code(description, code))) return 1;
  const RegistrationBatch::Item item{&description, code};
  RegistrationBatch other;
  if (!is_out_of_memory(other.register_code({&item, 1}))) return 2;
  Counter counter;
  if (!is_out_of_memory(attach_observer(counter))) return 3;
  unw_accessors_t accessors{};
  if (unw_create_addr_space(&accessors, 0) != nullptr) return 4;
  if (!register_procedure(&info) || !cancel_procedure(&info)) return 5;
  const auto ticket = batch.retire();
  return ticket && reclaimed(*ticket) && batch.empty() ? 0 : 6;
}

// covers: SF10
TEST(ChildWithoutMemory, WaitsForNobody) {
  const auto description = test::host::describe("code").build();
  ASSERT_TRUE(description);
  unw_dyn_info_t info = procedure(k_code, 16);
  // The child needs no more of the registry's own memory than exists.
  ASSERT_TRUE(register_procedure(&info));
  ASSERT_TRUE(cancel_procedure(&info));
  RegistrationBatch batch;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    auto one = register_code(*description, Code{.start = k_code + 64 * i, .size = 64});
    ASSERT_TRUE(one);
    ASSERT_TRUE(batch.add(std::move(*one)));
  }
  std::thread thrower(throw_without_memory);
  for (int i = 0; !is_in_lock && i < 10'000; ++i) ::usleep(1000);
  EXPECT_TRUE(is_in_lock) << "the C++ library has another lock";
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(use_all_writers(*description, info, batch));
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  may_leave = true;
  thrower.join();
}

/// A registration for which there was no room remains its owner's.
TEST(ChildWithoutMemory, BatchTakesOverWhatItHasRoomFor) {
  const auto description = test::host::describe("code").build();
  ASSERT_TRUE(description);
  auto one = register_code(*description, Code{.start = k_code, .size = 16});
  ASSERT_TRUE(one);
  RegistrationBatch batch;
  {
    const FailingMemory none_at_all(1);
    const Status refused = batch.add(std::move(*one));
    EXPECT_TRUE(is_out_of_memory(refused));
  }
  EXPECT_TRUE(*one);
  EXPECT_TRUE(batch.empty());
  EXPECT_NE(lookup(k_code), nullptr);
  EXPECT_TRUE(batch.add(std::move(*one)));
  EXPECT_FALSE(*one);
  EXPECT_EQ(batch.size(), 1u);
}

}  // namespace
