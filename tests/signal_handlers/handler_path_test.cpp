// Resources of walks in a signal handler: no memory of the allocator, no lock, and a bounded part of the stack.
#include <jitunwind/jitunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <libunwind.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "jitunwind/dyn_info/registry/registry.h"
#include "tests/support/jit_frame.h"
#include "tests/support/malloc_calls.h"

namespace {

/// While a handler works, calls of functions that lock are counted.
std::atomic<bool> g_trapped{false};
std::atomic<unsigned> g_locks{0};
unsigned g_mallocs = 0;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// The C library's functions, counted.
extern "C" {
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static auto* const real = next<int(pthread_mutex_t*)>("pthread_mutex_lock");
  if (g_trapped) ++g_locks;
  return real(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  static auto* const real = next<int(pthread_rwlock_t*)>("pthread_rwlock_rdlock");
  if (g_trapped) ++g_locks;
  return real(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  static auto* const real = next<int(pthread_rwlock_t*)>("pthread_rwlock_wrlock");
  if (g_trapped) ++g_locks;
  return real(lock);
}
int dl_iterate_phdr(int (*callback)(dl_phdr_info*, std::size_t, void*), void* data) {
  static auto* const real = next<int(int (*)(dl_phdr_info*, std::size_t, void*), void*)>("dl_iterate_phdr");
  if (g_trapped) ++g_locks;
  return real(callback, data);
}
}

namespace {

using namespace jitunwind;
using jitunwind::test::JitFrame;

constexpr std::size_t k_stack = 256 << 10;
constexpr std::byte k_untouched{0xa5};

struct Task {
  const char* name;
  bool first;  ///< nothing is kept of the code
  std::size_t (*work)(void* ucontext);
  std::size_t most_stack;
};
const Task* g_task = nullptr;
std::size_t g_frames = 0;

std::size_t nothing(void*) { return 0; }
std::size_t by_backtrace(void* ucontext) {
  std::array<void*, 128> addresses;
  return backtrace(ucontext, Cursor::Top::interrupted, addresses);
}
std::size_t one_step(void* ucontext) {
  Cursor cursor = cursor_at(ucontext, Cursor::Top::interrupted);
  const auto moved = cursor.step();
  return moved && *moved;
}
std::size_t by_cursor(void* ucontext) {
  std::size_t frames = 0;
  for (const Frame& frame : walk_interrupted(ucontext)) frames += frame.pc() != 0;
  return frames;
}
/// The result is 0 if a frame belongs to no procedure, or most have no name: some of a stripped C library have none.
std::size_t with_names(void* ucontext) {
  std::size_t frames = 0, named = 0, all = 0;
  for (const Frame& frame : walk_interrupted(ucontext)) {
    std::array<char, 128> name;
    named += frame.raw_name(name).has_value();
    frames += frame.procedure().has_value();
    ++all;
  }
  return frames == all && 2 * named > all ? frames : 0;
}
std::size_t by_libunwind(void* ucontext) {
  unw_cursor_t cursor;
  unw_init_local2(&cursor, static_cast<unw_context_t*>(ucontext), UNW_INIT_SIGNAL_FRAME);
  std::size_t frames = 1;
  while (unw_step(&cursor) > 0) ++frames;
  return frames;
}

constexpr Task k_nothing{"nothing", false, nothing, k_stack};
constexpr Task k_tasks[]{
    {"backtrace, first", true, by_backtrace, 16 << 10},
    {"backtrace, again", false, by_backtrace, 16 << 10},
    {"one step, first", true, one_step, 10 << 10},
    {"one step, again", false, one_step, 3 << 10},
    {"all frames, first", true, by_cursor, 16 << 10},
    {"all frames, again", false, by_cursor, 16 << 10},
    {"unw_step, first", true, by_libunwind, 16 << 10},
    {"names and procedures, first", true, with_names, 16 << 10},
    {"names and procedures, again", false, with_names, 16 << 10},
};

void handle(int, siginfo_t*, void* ucontext) {
  const jitunwind::test::MallocCalls mallocs;
  g_trapped = true;
  g_frames = g_task->work(ucontext);
  g_trapped = false;
  g_mallocs = mallocs.count();
}

/// Returns the bytes of a signal stack that the task touches, including those of the kernel.
std::size_t stack_of(const Task& task, const JitFrame& frame) {
  auto* const stack =
      static_cast<std::byte*>(::mmap(nullptr, k_stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(stack, std::to_integer<int>(k_untouched), k_stack);
  const stack_t signals{stack, 0, k_stack};
  stack_t before;
  ::sigaltstack(&signals, &before);
  g_task = &task;
  g_mallocs = g_locks = 0;
  if (task.first) forget_rows(0, ~std::uint64_t{0});
  (void)frame(
      [](void*) -> void* {
        (void)::raise(SIGUSR1);
        return nullptr;
      },
      nullptr);
  ::sigaltstack(&before, nullptr);
  std::size_t untouched = 0;
  while (untouched < k_stack && stack[untouched] == k_untouched) ++untouched;
  ::munmap(stack, k_stack);
  return k_stack - untouched;
}

class HandlerPath : public testing::Test {
 protected:
  void SetUp() override {
    struct sigaction action {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ASSERT_EQ(::sigaction(SIGUSR1, &action, nullptr), 0);
  }

  const JitFrame frame_;
};

// covers: SF09
TEST_F(HandlerPath, NoMallocNoLocksLittleStack) {
  const std::size_t of_kernel = stack_of(k_nothing, frame_);
  for (const Task& task : k_tasks) {
    (void)stack_of(task, frame_);  // addresses that the dynamic linker looks for once
    const std::size_t stack = stack_of(task, frame_) - of_kernel;
    std::printf("%-28s %5zu bytes of stack\n", task.name, stack);
    EXPECT_LE(stack, task.most_stack) << task.name;
    EXPECT_GT(stack, 200u) << task.name;
    EXPECT_EQ(g_mallocs, 0u) << task.name;
    EXPECT_EQ(g_locks, 0u) << task.name;
    EXPECT_GT(g_frames, task.work == one_step ? 0u : 6u) << task.name;
  }
}

/// The traps work.
TEST_F(HandlerPath, OthersWouldBeNoticed) {
  const Task task{"", false,
                  [](void*) -> std::size_t {
                    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
                    ::pthread_mutex_lock(&mutex);
                    ::pthread_mutex_unlock(&mutex);
                    void* volatile memory = ::malloc(16);
                    ::free(memory);
                    return 1;
                  },
                  k_stack};
  (void)stack_of(task, frame_);
  EXPECT_EQ(g_mallocs, 2u);
  EXPECT_EQ(g_locks, 1u);
}

}  // namespace
