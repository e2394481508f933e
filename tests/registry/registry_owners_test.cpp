// Owners of holds that are gone: threads that exited or jumped out of a handler, and handlers on their own stacks.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "tests/registry/threads.h"

/// clone() by a name of the C library's that sanitizers do not confuse with fork().
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...);

namespace {

using namespace jitunwind;
using namespace registry_test;
using namespace std::chrono_literals;

constexpr std::uint64_t k_owned_code = 0x30000000;

/// Room for holds that are never destroyed, in a frame of its own.
struct Forgotten {
  alignas(ProcedureHold) std::byte memory[sizeof(ProcedureHold)];
  const unw_dyn_info_t* hold(std::uint64_t pc) { return (new (memory) ProcedureHold(pc))->info(); }
};

TEST(RegistryOwners, OwnerThatExitedIsWrittenOff) {
  unw_dyn_info_t a = procedure(k_owned_code, 64);
  for (const bool retire : {false, true}) {
    ASSERT_TRUE(register_procedure(&a));
    std::thread([&] {
      Forgotten forgotten;
      EXPECT_EQ(forgotten.hold(k_owned_code), &a);
    }).join();
    if (retire) {
      const auto ticket = retire_procedures(std::array{&a});
      ASSERT_TRUE(ticket);
      EXPECT_TRUE(reclaimed(*ticket));
    } else {
      ASSERT_TRUE(cancel_procedure(&a));
    }
  }
}

/// Does it as vfork() would, in a child with the memory and the thread-local variables of this thread, which waits.
void in_borrowing_child(std::function<void()> work) {
  alignas(16) static std::byte stack[256 * 1024];
  const auto run = [](void* argument) {
    (*static_cast<std::function<void()>*>(argument))();
    return 0;
  };
  const pid_t child = __clone(run, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &work);
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(RegistryOwners, ThreadWhoseFirstLookupWasMadeInAVforkChildIsWaitedFor) {
  unw_dyn_info_t a = procedure(k_owned_code, 64);
  ASSERT_TRUE(register_procedure(&a));
  Flag held, let_go;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    in_borrowing_child([] { (void)lookup(k_owned_code); });
    const ProcedureHold hold(k_owned_code);
    held.raise();
    let_go.wait();
    done = true;
  });
  held.wait();
  Background cancel([&] {
    EXPECT_EQ(error_of(cancel_procedure(&a)), "");
    EXPECT_TRUE(done) << "while the thread held it";
  });
  EXPECT_FALSE(cancel.through_within(200ms));
  let_go.raise();
  reader.join();
}

// The child shares the memory, but none of these threads belongs to its process.
TEST(RegistryOwners, VforkChildWaitsForTheThreadsOfItsParent) {
  unw_dyn_info_t a = procedure(k_owned_code, 64);
  ASSERT_TRUE(register_procedure(&a));
  Holder holder(k_owned_code);
  Background child([&] {
    in_borrowing_child([&] {
      EXPECT_EQ(error_of(cancel_procedure(&a)), "");
      EXPECT_TRUE(holder.done()) << "while another thread held it";
    });
  });
  EXPECT_FALSE(child.through_within(200ms));
  holder.let_go();
}

TEST(RegistryOwners, VforkChildTakesNoSlotFromTheThreadsOfItsParent) {
  std::array<unw_dyn_info_t, 80> procedures;  // more than there are slots that were used and are free
  std::vector<std::unique_ptr<Holder>> holders;
  for (std::size_t i = 0; i < procedures.size(); ++i) {
    procedures[i] = procedure(k_owned_code + 64 * i, 64);
    ASSERT_TRUE(register_procedure(&procedures[i]));
    holders.push_back(std::make_unique<Holder>(procedures[i].start_ip));
  }
  std::thread([] { in_borrowing_child([] { EXPECT_NE(lookup(k_owned_code), nullptr); }); }).join();
  std::vector<RetireTicket> tickets;
  for (unw_dyn_info_t& info : procedures) {
    tickets.push_back(*retire_procedures(std::array{&info}));
    EXPECT_FALSE(reclaimed(tickets.back()));
  }
  holders.clear();
  for (const RetireTicket& ticket : tickets) EXPECT_TRUE(reclaimed(ticket));
}

thread_local sigjmp_buf jump_target;
std::atomic<const unw_dyn_info_t*> held_in_handler{nullptr};

__attribute__((noinline)) void hold_and_jump(int) {
  Forgotten forgotten;
  held_in_handler = forgotten.hold(k_owned_code);
  siglongjmp(jump_target, 1);
}

/// Takes a hold in a signal handler and jumps out of it.
__attribute__((noinline)) void hold_in_handler_and_jump_out(bool on_stack_of_its_own) {
  struct sigaction action {
  }, before{};
  action.sa_handler = hold_and_jump;
  action.sa_flags = on_stack_of_its_own ? SA_ONSTACK : 0;
  sigaction(SIGUSR1, &action, &before);
  if (sigsetjmp(jump_target, 1) == 0) raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
}

/// Makes handlers of this thread run on `memory`. The sanitizers have their own signal stack, which is restored.
class SignalStack {
 public:
  SignalStack(std::byte* memory, std::size_t size) {
    const stack_t stack{memory, 0, size};
    sigaltstack(&stack, &before_);
  }
  ~SignalStack() { sigaltstack(&before_, nullptr); }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  stack_t before_{};
};

class HeapSignalStack {
 private:
  static constexpr std::size_t k_size = 256 * 1024;
  std::unique_ptr<std::byte[]> memory_{new std::byte[k_size]};
  SignalStack stack_{memory_.get(), k_size};
};

TEST(RegistryOwners, ThreadThatJumpedOutCancelsItself) {
  for (const bool on_stack_of_its_own : {false, true}) {
    unw_dyn_info_t a = procedure(k_owned_code, 64);
    const HeapSignalStack stack;
    ASSERT_TRUE(register_procedure(&a));
    hold_in_handler_and_jump_out(on_stack_of_its_own);
    ASSERT_EQ(held_in_handler, &a);
    ASSERT_EQ(error_of(cancel_procedure(&a)), "");
    ASSERT_TRUE(register_procedure(&a));
    hold_in_handler_and_jump_out(on_stack_of_its_own);
    const auto ticket = retire_procedures(std::array{&a});
    ASSERT_TRUE(ticket);
    EXPECT_TRUE(reclaimed(*ticket));
  }
}

/// Returns memory below the addresses that mmap(2) chooses by itself.
std::byte* low_memory(std::size_t size) {
  void* const wish = reinterpret_cast<void*>(std::uintptr_t{0x2000'0000});
  void* const memory = ::mmap(wish, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

constexpr std::uint64_t k_other_code = k_owned_code + 4096;

void look_up_elsewhere(int) {
  jitunwind::with_room([] { held_in_handler = lookup(k_other_code); });
}

/// Two threads' flags, and memory for a signal stack.
struct HoldingThread {
  static constexpr std::size_t k_small = 8192, k_stack = 2 << 20;
  Flag has_returned, let_go;
  // The memory is not below the thread's stack, where a pointer to it would look like one to interrupted frames.
  std::byte* const signals = low_memory((16 << 20) + k_small) + (16 << 20);
  std::byte* const stack = signals - (16 << 20);
};

/// Takes a hold, and another one from a handler on a small stack. The handler works on a stack of the library's, which
/// is above all of the thread's memory.
void* hold_under_a_handler(void* argument) {
  auto& thread = *static_cast<HoldingThread*>(argument);
  const SignalStack stack(thread.signals, HoldingThread::k_small);
  struct sigaction action {};
  action.sa_handler = look_up_elsewhere;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  const jitunwind::ProcedureHold hold(k_owned_code);
  raise(SIGUSR1);
  thread.has_returned.raise();
  thread.let_go.wait();
  return nullptr;
}

// SP in the handler is above the hold, and nothing on that stack refers to what was interrupted.
TEST(RegistryOwners, HoldIsKeptUnderAHandlerThatWorksOnAnotherStack) {
  unw_dyn_info_t a = procedure(k_owned_code, 64), b = procedure(k_other_code, 64);
  ASSERT_TRUE(register_procedure(&a));
  ASSERT_TRUE(register_procedure(&b));
  HoldingThread holding;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, holding.stack, HoldingThread::k_stack);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, &hold_under_a_handler, &holding), 0);
  holding.has_returned.wait();
  EXPECT_EQ(held_in_handler, &b);
  {
    Background canceller([&] { EXPECT_EQ(error_of(cancel_procedure(&a)), ""); });
    EXPECT_FALSE(canceller.through_within(std::chrono::milliseconds(100)));
    holding.let_go.raise();
  }
  pthread_join(thread, nullptr);
  EXPECT_EQ(error_of(cancel_procedure(&b)), "");
}

// The hold that was jumped over is not taken for one on the procedure that gets its node next, although that one is
// retired from a deeper frame.
TEST(RegistryOwners, HoldThatWasJumpedOverDoesNotComeBack) {
  unw_dyn_info_t a = procedure(k_owned_code, 64);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(register_procedure(&a));
    hold_in_handler_and_jump_out(false);
    ASSERT_EQ(error_of(cancel_procedure(&a)), "");
    const auto deeper = [&]() __attribute__((noinline)) {
      volatile char frame[3000];
      frame[0] = 0;
      for (int n = 0; n < 70; ++n) {  // longer than nodes rest
        ASSERT_EQ(error_of(register_procedure(&a)), "");
        const auto ticket = retire_procedures(std::array{&a});
        ASSERT_TRUE(ticket);
        ASSERT_TRUE(reclaimed(*ticket)) << n << frame[0];
      }
    };
    deeper();
  }
}

/// A thread that jumps out of a handler with a hold on k_owned_code, looks `then` up if it is not 0, and blocks.
class JumpedOut {
 public:
  JumpedOut(bool on_stack_of_its_own, std::uint64_t then)
      : thread_([this, on_stack_of_its_own, then] {
          const HeapSignalStack stack;
          hold_in_handler_and_jump_out(on_stack_of_its_own);
          if (then != 0) (void)lookup(then);
          jumped_.raise();
          leave_.wait();
        }) {
    jumped_.wait();
  }
  ~JumpedOut() { exit(); }
  void exit() {
    leave_.raise();
    if (thread_.joinable()) thread_.join();
  }

 private:
  Flag jumped_, leave_;
  std::thread thread_;
};

TEST(RegistryOwners, ThreadThatJumpedOutIsRecognisedWhenItLooksUpAgain) {
  unw_dyn_info_t a = procedure(k_owned_code, 64), b = procedure(k_owned_code + 64, 64);
  ASSERT_TRUE(register_procedure(&b));
  for (const bool on_stack_of_its_own : {false, true}) {
    ASSERT_TRUE(register_procedure(&a));
    JumpedOut thread(on_stack_of_its_own, k_owned_code + 64);
    Background cancel([&] { EXPECT_EQ(error_of(cancel_procedure(&a)), ""); });
    EXPECT_TRUE(cancel.through_within(10s)) << on_stack_of_its_own;
    thread.exit();
  }
  ASSERT_TRUE(cancel_procedure(&b));
}

TEST(RegistryOwners, ThreadThatJumpedOutAndBlocksIsWrittenOff) {
  unw_dyn_info_t a = procedure(k_owned_code, 64);
  ASSERT_TRUE(register_procedure(&a));
  JumpedOut thread(false, 0);
  Background cancel([&] { EXPECT_EQ(error_of(cancel_procedure(&a)), ""); });
  EXPECT_TRUE(cancel.through_within(10s));
  thread.exit();
}

TEST(RegistryOwners, ThreadThatJumpedOffItsSignalStackIsWrittenOffWhenItExits) {
  unw_dyn_info_t a = procedure(k_owned_code, 64);
  ASSERT_TRUE(register_procedure(&a));
  JumpedOut thread(true, 0);
  Background cancel([&] { EXPECT_EQ(error_of(cancel_procedure(&a)), ""); });
  (void)cancel.through_within(100ms);
  thread.exit();
  EXPECT_TRUE(cancel.through_within(10s));
}

// A handler runs on its own stack, above or below the interrupted one: the interrupted hold is alive, whatever the
// addresses are.
std::atomic<bool> handler_entered{false};
std::atomic<bool> handler_may_return{false};
std::atomic<const unw_dyn_info_t*> found_by_handler{nullptr};

void look_up_and_wait(int) {
  found_by_handler = lookup(k_owned_code + 64);
  handler_entered = true;
  handler_entered.notify_all();
  // Blocks in the kernel, on this stack.
  while (!handler_may_return) {
    timespec time{0, 1'000'000};
    nanosleep(&time, nullptr);
  }
}

/// A thread on one of our stacks holds k_owned_code and is then interrupted by a handler on another one of them.
void hold_below_handler(std::byte* stack, std::byte* signal_stack, std::size_t size) {
  unw_dyn_info_t a = procedure(k_owned_code, 64), b = procedure(k_owned_code + 64, 64);
  ASSERT_TRUE(register_procedures(std::array{&a, &b}));
  handler_entered = handler_may_return = false;
  struct Shared {
    std::byte* signal_stack;
    std::size_t size;
    Flag held;
    const unw_dyn_info_t* still = nullptr;
  } shared{signal_stack, size, {}, nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, size);
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    auto& s = *static_cast<Shared*>(argument);
    const SignalStack stack_of_handlers(s.signal_stack, s.size);
    struct sigaction action {};
    action.sa_handler = look_up_and_wait;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, nullptr);
    const ProcedureHold hold(k_owned_code);
    s.held.raise();
    raise(SIGUSR2);
    s.still = hold.info();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &shared), 0);
  shared.held.wait();
  handler_entered.wait(false);
  EXPECT_EQ(found_by_handler, &b);
  ASSERT_TRUE(cancel_procedure(&b));
  {
    Background cancel([&] { EXPECT_EQ(error_of(cancel_procedure(&a)), ""); });
    EXPECT_FALSE(cancel.through_within(300ms)) << "the interrupted lookup still holds it";
    handler_may_return = true;
    EXPECT_TRUE(cancel.through_within(10s));
  }
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(RegistryOwners, HoldBelowAHandlerOnAnotherStackIsAlive) {
  constexpr std::size_t k_size = 2 << 20;
  auto* memory =
      static_cast<std::byte*>(mmap(nullptr, 2 * k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  hold_below_handler(memory, memory + k_size, k_size);  // the handler's stack lies above, without a gap
  hold_below_handler(memory + k_size, memory, k_size);
  munmap(memory, 2 * k_size);
}

// The handler's stack is a variable of the thread's own function: it is in the same stack, above the hold.
TEST(RegistryOwners, HoldBelowAHandlerOnAStackWithinTheStackIsAlive) {
  unw_dyn_info_t a = procedure(k_owned_code, 64), b = procedure(k_owned_code + 64, 64);
  ASSERT_TRUE(register_procedures(std::array{&a, &b}));
  handler_entered = handler_may_return = false;
  std::thread thread([&] {
    alignas(64) std::byte alternate_memory[64 * 1024];
    const SignalStack stack_of_handlers(alternate_memory, sizeof alternate_memory);
    struct sigaction action {};
    action.sa_handler = look_up_and_wait;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, nullptr);
    const auto inner = [&]() __attribute__((noinline)) {
      const ProcedureHold hold(k_owned_code);
      raise(SIGUSR2);
      EXPECT_EQ(hold.info(), &a);
    };
    inner();
  });
  handler_entered.wait(false);
  ASSERT_TRUE(cancel_procedure(&b));
  {
    Background cancel([&] { EXPECT_EQ(error_of(cancel_procedure(&a)), ""); });
    EXPECT_FALSE(cancel.through_within(300ms));
    handler_may_return = true;
    EXPECT_TRUE(cancel.through_within(10s));
  }
  thread.join();
}

}  // namespace
