// Walks of crash handlers on a small signal stack with a guard page in front of it, for every way in which programs
// crash. Each walk has the whole stack, or a reason why not.
#include <jitunwind/jitunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "tests/support/jit_frame.h"

namespace jitunwind::test {
namespace {

constexpr std::size_t k_page = 4096;

/// The handler's results, in memory that parent and child share.
struct Seen {
  static constexpr std::size_t k_kept = 40;
  bool has_walked;
  StopReason reason;
  ErrorCode error;
  std::size_t frames;
  std::size_t listed;
  std::array<std::array<char, 64>, k_kept> first;  // names of the frames that were interrupted
  std::array<char, 64> last;
  Addr last_pc;

  bool has(std::string_view part) const {
    for (const auto& name : first)
      if (std::string_view(name.data()).find(part) != std::string_view::npos) return true;
    return false;
  }
  std::string text() const {
    std::string all = std::to_string(frames) + " frames, stop reason " + std::to_string(static_cast<int>(reason)) + ":";
    for (const auto& name : first) all += std::string(" ") + name.data();
    return all + " ... " + last.data();
  }
};
Seen* seen = nullptr;

void on_crash(int, siginfo_t*, void* context) {
  Walk walk = walk_interrupted(context);
  std::size_t number = 0;
  for (const Frame& frame : walk) {
    std::array<char, 64> name{};
    (void)frame.raw_name(name);
    if (number < Seen::k_kept) seen->first[number] = name;
    seen->last = name;
    seen->last_pc = frame.pc();
    ++number;
  }
  seen->frames = number;
  seen->reason = walk.stop_reason();
  if (seen->reason != StopReason::outermost) seen->error = walk.stop_error().code;
  static std::array<void*, 1 << 18> addresses;
  seen->listed = backtrace(context, Cursor::Top::interrupted, addresses);
  seen->has_walked = true;
  ::_exit(0);
}

int signal_stack_flags = 0;

/// Gives the calling thread a signal stack of `size` bytes behind a guard page.
void have_signal_stack(std::size_t size) {
  char* const memory =
      static_cast<char*>(::mmap(nullptr, size + k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::mprotect(memory, k_page, PROT_NONE);
  const stack_t stack{memory + k_page, signal_stack_flags, size};
  ::sigaltstack(&stack, nullptr);
}
// The size is <signal.h>'s SIGSTKSZ; sanitizers need more.
#ifdef JITUNWIND_TEST_SANITIZED
constexpr std::size_t k_signal_stack = std::size_t{64} << 10;
#else
constexpr std::size_t k_signal_stack = 8192;
#endif

/// A crash ends the process, so it runs in a child.
Seen crash(void (*how)()) {
  void* const shared = ::mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  seen = new (shared) Seen{};
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    have_signal_stack(k_signal_stack);
    struct sigaction action {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP}) ::sigaction(number, &action, nullptr);
    how();
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "of the child";
  Seen result = *seen;
  ::munmap(shared, sizeof(Seen));
  EXPECT_TRUE(result.has_walked);
  return result;
}

void expect_whole(const Seen& result, std::string_view through) {
  EXPECT_EQ(result.reason, StopReason::outermost) << result.text();
  EXPECT_EQ(result.listed, result.frames);
  EXPECT_TRUE(result.has(through)) << result.text();
  EXPECT_STREQ(result.last.data(), "_start") << result.text();
}

// The crashing functions are extern "C" for their names.

extern "C" {
void (*volatile crash_function)() = nullptr;
int* volatile crash_pointer = nullptr;
[[gnu::noinline]] void crash_by_call() {
  crash_function();
  asm volatile("");
}
[[gnu::noinline]] void crash_by_load() { *crash_pointer = 1; }
[[gnu::noinline]] void crash_by_abort() { std::abort(); }
[[gnu::noinline]] void crash_by_trap() { __builtin_trap(); }
[[gnu::noinline]] void crash_in_free() {
  void* volatile inside = static_cast<char*>(std::malloc(64)) + 8;
  std::free(inside);
  asm volatile("");
}
[[gnu::noinline]] void fault_in_free() {
  void* volatile nowhere = reinterpret_cast<void*>(std::uintptr_t{64});
  std::free(nowhere);
  asm volatile("");
}
[[gnu::noinline]] void crash_in_dlopen() {
  (void)::dlopen(CRASHING_PLUGIN, RTLD_NOW);
  asm volatile("");
}
volatile int deepest = 1 << 30;
[[gnu::noinline]] int crash_by_recursion(int depth) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  const int below = depth < deepest ? crash_by_recursion(depth + 1) : 0;
  return below + room[0];
}
[[gnu::noinline]] void crash_without_stack() {
  asm volatile("movq $64, %%rbp; movq %%rbp, %%rsp; pushq $0" ::: "memory");
}
}

TEST(CrashHandler, SeesWhoCalledNull) {
  crash_function = nullptr;
  expect_whole(crash(crash_by_call), "crash_by_call");
}

TEST(CrashHandler, SeesWhoCalledWhatIsNotMapped) {
  crash_function = reinterpret_cast<void (*)()>(0x7777'0000'0000);
  expect_whole(crash(crash_by_call), "crash_by_call");
}

TEST(CrashHandler, SeesWhoCalledData) {
  static std::array<char, 64> data{};
  crash_function = reinterpret_cast<void (*)()>(data.data());
  expect_whole(crash(crash_by_call), "crash_by_call");
}

/// The kernel does not report such a stack while the handler runs.
TEST(CrashHandler, SeesTheSameOnAStackThatIsDisarmed) {
  signal_stack_flags = static_cast<int>(1u << 31);  // SS_AUTODISARM of <linux/signal.h>, which excludes <signal.h>
  expect_whole(crash(crash_by_load), "crash_by_load");
  crash_function = nullptr;
  expect_whole(crash(crash_by_call), "crash_by_call");
  signal_stack_flags = 0;
}

TEST(CrashHandler, SeesALoadOfNull) { expect_whole(crash(crash_by_load), "crash_by_load"); }
TEST(CrashHandler, SeesAnAbort) { expect_whole(crash(crash_by_abort), "crash_by_abort"); }
TEST(CrashHandler, SeesATrap) { expect_whole(crash(crash_by_trap), "crash_by_trap"); }

#ifndef JITUNWIND_TEST_SANITIZED
TEST(CrashHandler, SeesTheAllocatorsAbort) { expect_whole(crash(crash_in_free), "crash_in_free"); }
TEST(CrashHandler, SeesAFaultInTheAllocator) { expect_whole(crash(fault_in_free), "fault_in_free"); }
#endif

TEST(CrashHandler, SeesAConstructorInDlopen) {
  const Seen result = crash(crash_in_dlopen);
  expect_whole(result, "crash_in_dlopen");
  EXPECT_TRUE(result.has("fault"));
}

TEST(CrashHandler, SeesThroughCodeMadeAtRunTime) {
  const Seen result = crash([] {
    const JitFrame frame;
    frame([](void*) -> void* { return crash_by_load(), nullptr; }, nullptr);
  });
  expect_whole(result, "crash_by_load");
  EXPECT_TRUE(result.has("jit_frame")) << result.text();
}

TEST(CrashHandler, SeesAFaultInCodeMadeAtRunTime) {
  const Seen result = crash([] {
    // push rbx; mov rax, [0]; pop rbx; ret
    constexpr unsigned char k_code[]{0x53, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x5b, 0xc3};
    void* const code = ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(code, k_code, sizeof k_code);
    using namespace x86_64;
    const auto description = describe("crashing_code").push({0, 1}, rbx).pop({9, 10}, rbx).build();
    const auto registered = register_code(*description, code, sizeof k_code);
    if (registered) reinterpret_cast<void (*)()>(code)();
  });
  expect_whole(result, "crashing_code");
  EXPECT_EQ(std::string_view(result.first[0].data()), "crashing_code");
}

TEST(CrashHandler, SeesAnOverflowOfTheMainStack) {
  const Seen result = crash([] {
    const rlimit small{256 << 10, 256 << 10};
    ::setrlimit(RLIMIT_STACK, &small);
    crash_by_recursion(0);
  });
  expect_whole(result, "crash_by_recursion");
  EXPECT_GT(result.frames, 200u);
}

TEST(CrashHandler, SeesAnOverflowOfAThreadsStack) {
  const Seen result = crash([] {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    pthread_t thread;
    pthread_create(
        &thread, &attributes,
        [](void*) -> void* {
          have_signal_stack(k_signal_stack);
          crash_by_recursion(0);
          return nullptr;
        },
        nullptr);
    pthread_join(thread, nullptr);
  });
  EXPECT_EQ(result.reason, StopReason::outermost) << result.text();
  EXPECT_EQ(result.listed, result.frames);
  EXPECT_GT(result.frames, 100u);
  // Threads begin in clone(), or, in a stripped C library, in a function without a name.
  const std::string_view last = result.last.data();
  EXPECT_TRUE(last.empty() || last.starts_with("clone") || last.starts_with("__clone")) << result.text();
}

TEST(CrashHandler, SeesAnOverflowOfAFibersStack) {
  const Seen result = crash([] {
    constexpr std::size_t k_stack = 64 << 10;
    static ucontext_t back, fiber;
    char* const memory = static_cast<char*>(
        ::mmap(nullptr, k_stack + k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(memory, k_page, PROT_NONE);
    ::getcontext(&fiber);
    fiber.uc_stack.ss_sp = memory + k_page;
    fiber.uc_stack.ss_size = k_stack;
    fiber.uc_link = &back;
    ::makecontext(&fiber, reinterpret_cast<void (*)()>(&crash_by_recursion), 1, 0);
    ::swapcontext(&back, &fiber);
  });
  // glibc's code there has no unwind information on purpose (sysdeps/unix/sysv/linux/x86_64/__start_context.S).
  EXPECT_EQ(result.reason, StopReason::no_info) << result.text();
  Dl_info where{};
  ::dladdr(reinterpret_cast<void*>(static_cast<std::uintptr_t>(result.last_pc)), &where);
  EXPECT_EQ(std::string_view(where.dli_fname).substr(std::string_view(where.dli_fname).rfind('/') + 1), "libc.so.6");
  EXPECT_EQ(result.listed, result.frames);
  EXPECT_GT(result.frames, 50u);
}

/// Nothing leads on from there, and the handler is told so.
TEST(CrashHandler, IsToldThatThereIsNoStack) {
  const Seen result = crash(crash_without_stack);
  EXPECT_TRUE(result.has("crash_without_stack")) << result.text();
  EXPECT_EQ(result.frames, 1u) << result.text();
  EXPECT_NE(result.reason, StopReason::outermost) << result.text();
  EXPECT_EQ(result.listed, result.frames);
}

}  // namespace
}  // namespace jitunwind::test
