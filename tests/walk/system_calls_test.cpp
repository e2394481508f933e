// The system calls of a walk. A walk of addresses on the thread's own stack makes none once that stack was walked. A
// walk by steps there makes one probe for two pages; on other stacks it makes one for each page. Probes are counted.
#include <jitunwind/c.h>
#include <libunwind.h>

#include <alloca.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/allowed_calls.h"
#include "tests/support/jit_frame.h"

namespace {

using jitunwind::test::allow_only;
using jitunwind::test::install;
using jitunwind::test::JitFrame;

int frames_by_cursor(unw_context_t& context) {
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  int frames = 1;
  while (unw_step(&cursor) > 0) ++frames;
  return frames;
}

[[gnu::noinline]] int frames_by_address() {
  std::array<void*, 128> addresses;
  return unw_backtrace(addresses.data(), static_cast<int>(addresses.size()));
}

/// Counts frames by single steps and by unw_backtrace(), which has one more; 0: the numbers differ.
[[gnu::noinline]] int walk() {
  const int listed = frames_by_address();
  unw_context_t context;
  unw_getcontext(&context);
  const int frames = frames_by_cursor(context);
  return frames == listed - 1 ? frames : 0;
}

/// Returns the result of `last`, called below that many frames.
[[gnu::noinline]] int walk_below(int depth, int (*last)() = &walk) {
  char room[256];
  asm volatile("" ::"r"(room) : "memory");
  const int frames = depth == 0 ? last() : walk_below(depth - 1, last);
  asm volatile("" ::"r"(room) : "memory");
  return frames;
}

int status_of(void (*child)()) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    child();
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

void list_own_stack() {
  const int before = walk_below(60, &frames_by_address);
  if (!allow_only({SYS_exit_group})) ::_exit(8);
  for (int i = 0; i < 100; ++i)
    if (walk_below(60, &frames_by_address) != before || before < 60) ::_exit(7);
  ::_exit(0);
}

constexpr std::size_t k_page = 4096;
constexpr std::size_t k_other_stack = 256 << 10;

/// Does `work`, which does not return, on another stack; the variable has its address.
std::uintptr_t g_other_stack;
void on_other_stack(void (*work)()) {
  static ucontext_t back, other;
  ::getcontext(&other);
  other.uc_stack.ss_sp = ::mmap(nullptr, k_other_stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  other.uc_stack.ss_size = k_other_stack;
  other.uc_link = &back;
  g_other_stack = reinterpret_cast<std::uintptr_t>(other.uc_stack.ss_sp);
  ::makecontext(&other, work, 0);
  ::swapcontext(&back, &other);
}

/// Counts the probes of each page of the stack, those of other pages, and the system calls.
struct Probes {
  std::array<unsigned char, k_other_stack / k_page> of_stack{};
  std::size_t elsewhere = 0;
  int calls = 0;

  void add_page(std::uintptr_t at) {
    if (at - g_other_stack < k_other_stack)
      ++of_stack[(at - g_other_stack) / k_page];
    else
      ++elsewhere;
  }
  /// `at` is the address of the 8 bytes that the kernel reads.
  void add(std::uintptr_t at) {
    ++calls;
    add_page(at);
    if ((at + 7) / k_page != at / k_page) add_page(at + 7);
  }
};
Probes g_probes;

constexpr unsigned k_let_through = 0x6a697421;  // sixth argument, which the call has not

/// Makes the probe on behalf of the walk.
void count_probe(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  g_probes.add(static_cast<std::uintptr_t>(registers[REG_RSI]));
  long result = SYS_rt_sigprocmask;
  register long r10 asm("r10") = registers[REG_R10];
  register long r8 asm("r8") = 0;
  register long r9 asm("r9") = k_let_through;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(registers[REG_RDI]), "S"(registers[REG_RSI]), "d"(registers[REG_RDX]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  registers[REG_RAX] = result;
}

/// Counts rt_sigprocmask from now on. Every other system call kills the process, except for the one that asks whether
/// the thread is on its signal stack.
bool count_probes() {
  struct sigaction action {};
  action.sa_sigaction = &count_probe;
  action.sa_flags = SA_SIGINFO;
  const auto jump = [](unsigned value, unsigned char equal, unsigned char other) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, equal, other);
  };
  const auto answer = [](unsigned value) { return sock_filter BPF_STMT(BPF_RET | BPF_K, value); };
  std::array program{sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                     jump(SYS_rt_sigprocmask, 4, 0),
                     jump(SYS_exit_group, 6, 0),
                     jump(SYS_rt_sigreturn, 5, 0),
                     jump(SYS_sigaltstack, 4, 0),
                     answer(SECCOMP_RET_KILL_PROCESS),
                     sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[5])),
                     jump(k_let_through, 1, 0),
                     answer(SECCOMP_RET_TRAP),
                     answer(SECCOMP_RET_ALLOW)};
  return ::sigaction(SIGSYS, &action, nullptr) == 0 && install(program);
}

/// Returns the exit status: 0 if the walk has probed each page from its first frame to its last one as often as it may.
[[gnu::noinline]] int wrong_probes(bool by_cursor) {
  g_probes = {};
  std::array<void*, 128> addresses;
  unw_context_t context;
  unw_getcontext(&context);
  const int frames =
      by_cursor ? frames_by_cursor(context) : unw_backtrace(addresses.data(), static_cast<int>(addresses.size()));
  if (frames < 60) return 1;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - g_other_stack;
  // The two pages behind this one are checked again: a signal stack that the kernel does not report would show there.
  for (std::size_t page = here / k_page + 1; page < g_probes.of_stack.size(); ++page) {
    const unsigned probes = g_probes.of_stack[page];
    if (probes < 1 || probes > (page <= here / k_page + 2 ? 2 : 1)) return 2;
  }
  // This page and the one below may have the frames of the walking functions.
  for (std::size_t page = 0; page <= here / k_page; ++page)
    if (g_probes.of_stack[page] > 1) return 3;
  return 0;
}

[[gnu::noinline]] int wrong_probes_below(int depth, bool by_cursor) {
  char room[256];
  asm volatile("" ::"r"(room) : "memory");
  const int wrong = depth == 0 ? wrong_probes(by_cursor) : wrong_probes_below(depth - 1, by_cursor);
  asm volatile("" ::"r"(room) : "memory");
  return wrong;
}

template <bool k_by_cursor>
void walk_other_stack() {
  (void)walk_below(60);
  on_other_stack([] {
    if (walk_below(60) < 60) ::_exit(7);  // rows and addresses that others look for once
    if (!count_probes()) ::_exit(8);
    // The code behind the last frame has no unwind information. The walk looks at that code, and does so anew after a
    // quarter of a second, as after a pause of the machine.
    std::size_t elsewhere = ~std::size_t{0};
    for (int i = 0; i < 100; ++i) {
      if (const int wrong = wrong_probes_below(60, k_by_cursor)) ::_exit(wrong);
      elsewhere = std::min(elsewhere, g_probes.elsewhere);
    }
    if (elsewhere > 9) ::_exit(4);
    std::size_t pages = 0;
    for (const unsigned char probes : g_probes.of_stack) pages += probes;
    ::_exit(static_cast<int>(100 + 10 * pages + elsewhere));
  });
}

[[gnu::noinline]] int step_own_stack() {
  g_probes = {};
  unw_context_t context;
  unw_getcontext(&context);
  return frames_by_cursor(context);
}

[[gnu::noinline]] int step_own_stack_below_a_large_frame() {
  char room[5 * k_page];
  asm volatile("" ::"r"(room) : "memory");
  const int frames = step_own_stack();
  asm volatile("" ::"r"(room) : "memory");
  return frames;
}

/// Walks by the C interface; the walk begins at its caller.
[[gnu::noinline]] int step_own_stack_in_c() {
  g_probes = {};
  ju_cursor cursor;
  if (ju_cursor_here(&cursor, nullptr) != JU_OK) return 0;
  int frames = 1;
  while (ju_cursor_step(&cursor, nullptr) == JU_OK) ++frames;
  return frames;
}

/// Returns the exit status: 100 and the system calls of a walk by steps, none of which probed a page again; a smaller
/// number names a mistake.
template <int k_depth, int (*k_walk)()>
void count_probes_of_own_stack() {
  const int before = walk_below(k_depth, k_walk);
  if (before < k_depth) ::_exit(7);
  g_other_stack = (reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) & ~(k_page - 1)) - k_other_stack / 2;
  if (!count_probes()) ::_exit(8);
  int most = 0;
  for (int i = 0; i < 100; ++i) {
    if (walk_below(k_depth, k_walk) != before) ::_exit(6);
    for (const unsigned char probes : g_probes.of_stack)
      if (probes > 1) ::_exit(5);
    most = std::max(most, g_probes.calls);
  }
  ::_exit(100 + most);
}

// covers: SF09
TEST(SystemCalls, AWalkOfAddressesOnTheOwnStackMakesNone) { EXPECT_EQ(status_of(&list_own_stack), 0); }

/// A walk makes one call for two pages, and perhaps one more at the end of the stack. The page on which the walking
/// functions run costs nothing.
// covers: SF09
TEST(SystemCalls, AWalkByStepsOnTheOwnStackProbesTwoPagesByOneCall) {
  const struct {
    void (*walk)();
    int frames, at_most;
  } cases[] = {{&count_probes_of_own_stack<10, &step_own_stack>, 10, 2},
               {&count_probes_of_own_stack<60, &step_own_stack>, 60, 4},
               {&count_probes_of_own_stack<200, &step_own_stack_below_a_large_frame>, 200, 12},
               {&count_probes_of_own_stack<10, &step_own_stack_in_c>, 10, 2},
               {&count_probes_of_own_stack<60, &step_own_stack_in_c>, 60, 4}};
  for (const auto& c : cases) {
    const int status = status_of(c.walk);
    ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
    ASSERT_GE(WEXITSTATUS(status), 101) << "wrong, or nothing was probed";
    EXPECT_LE(WEXITSTATUS(status), 100 + c.at_most);
    std::printf("%d frames of some 300 bytes: %d system calls\n", c.frames, WEXITSTATUS(status) - 100);
  }
}

// covers: SF09
TEST(SystemCalls, AWalkOfAnotherStackProbesItsPagesOnceAndTwoOfThemTwice) {
  for (void (*walk)() : {&walk_other_stack<false>, &walk_other_stack<true>}) {
    const int status = status_of(walk);
    ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
    ASSERT_GE(WEXITSTATUS(status), 140) << "wrong, or not the pages of 60 frames";
    const int found = WEXITSTATUS(status) - 100;
    std::printf("60 frames of some 300 bytes: %d probes of their pages, %d of code without unwind information\n",
                found / 10, found % 10);
  }
}

// docs/contracts.md "System calls" has the calls; a child makes no others.

void nothing() {}
void walk_addresses() {
  std::array<void*, 128> addresses;
  if (unw_backtrace(addresses.data(), static_cast<int>(addresses.size())) < 3) ::_exit(7);
}
void walk_by_steps() {
  unw_context_t context;
  unw_getcontext(&context);
  if (frames_by_cursor(context) < 3) ::_exit(7);
}
void throw_one() {
  try {
    throw 1;
  } catch (int) {
  }
}
/// Walks below code that nobody described: call rdi; ret.
void walk_unknown() {
  static void* code = nullptr;
  if (!code) {
    constexpr unsigned char k_code[] = {0x57, 0xff, 0xd7, 0x5f, 0xc3};
    code = ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(code, k_code, sizeof k_code);
    return;
  }
  reinterpret_cast<void (*)(void (*)())>(code)([] {
    unw_context_t context;
    unw_getcontext(&context);
    (void)frames_by_cursor(context);
  });
}
/// The kernel's frame is made without a system call.
void walk_on_small_stack() {
  static bool is_ready = false;
  if (!is_ready) {
    constexpr std::size_t k_size = 16 << 10;
    const stack_t stack{::mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 0, k_size};
    struct sigaction action {};
    action.sa_handler = [](int) {
      walk_addresses();
      walk_by_steps();
      ::_exit(0);
    };
    action.sa_flags = SA_ONSTACK;
    is_ready = ::sigaltstack(&stack, nullptr) == 0 && ::sigaction(SIGILL, &action, nullptr) == 0;
    return;
  }
  asm volatile("ud2");
}
void ask_names() {
  unw_context_t context;
  unw_getcontext(&context);
  unw_cursor_t cursor;
  unw_init_local(&cursor, &context);
  unsigned named = 0;
  do {
    std::array<char, 256> text;
    unw_word_t offset = 0;
    unw_proc_info_t procedure;
    named += unw_get_proc_name(&cursor, text.data(), text.size(), &offset) == 0;
    (void)unw_get_elf_filename(&cursor, text.data(), text.size(), &offset);
    (void)unw_get_proc_info(&cursor, &procedure);
  } while (unw_step(&cursor) > 0);
  if (named < 3) ::_exit(7);
}
void register_many() {
  static std::array<unw_dyn_info_t, 600> procedures{};
  unw_word_t at = 0x4000'0000;
  for (unw_dyn_info_t& procedure : procedures) {
    procedure.start_ip = at;
    procedure.end_ip = at += 64;
    _U_dyn_register(&procedure);
  }
  for (unw_dyn_info_t& procedure : procedures) _U_dyn_cancel(&procedure);
}

/// Walks below registered code that was not looked up before: by directives, and by a table of one FDE.
void pass_new_code(void* (*callee)(void*)) {
  static const auto frames = [] {
    std::vector<std::unique_ptr<JitFrame>> made;
    for (int i = 0; i < 100; ++i) {
      made.push_back(std::make_unique<JitFrame>());
      made.push_back(std::make_unique<JitFrame>("cfa=rsp+32 rbp=[cfa-24] rbx=[cfa-16] ra=[cfa-8]"));
    }
    return made;
  }();
  static std::size_t next = 0;
  const std::size_t end = next + frames.size() / 4;
  for (; next < end; ++next) {
    try {
      (*frames.at(next))(callee, nullptr);
    } catch (int) {
    }
  }
}
void walk_below_new_code() {
  pass_new_code([](void* nothing) {
    walk_addresses();
    return nothing;
  });
}
void throw_below_new_code() {
  pass_new_code([](void*) -> void* { throw 1; });
}

std::vector<unsigned>* allowed = nullptr;
void allow_these_only() {
  if (!allow_only(*allowed)) ::_exit(8);
}

/// Runs a function with so many bytes of the stack in between.
[[gnu::noinline]] void run_below(std::size_t size, void (*run)()) {
  void* volatile room = alloca(size);
  run();
  (void)room;
}

std::vector<unsigned> calls_of(const std::string& row) {
  static const std::map<std::string, unsigned> numbers{{"rt_sigprocmask", SYS_rt_sigprocmask},
                                                       {"sigaltstack", SYS_sigaltstack},
                                                       {"msync", SYS_msync},
                                                       {"getpid", SYS_getpid},
                                                       {"gettid", SYS_gettid},
                                                       {"openat", SYS_openat},
                                                       {"read", SYS_read},
                                                       {"ioctl", SYS_ioctl},
                                                       {"close", SYS_close},
                                                       {"pread64", SYS_pread64},
                                                       {"newfstatat", SYS_newfstatat},
                                                       {"fstat", SYS_fstat},
                                                       {"readlink", SYS_readlink},
                                                       {"mmap", SYS_mmap},
                                                       {"munmap", SYS_munmap},
                                                       {"mremap", SYS_mremap},
                                                       {"process_vm_readv", SYS_process_vm_readv},
                                                       {"mprotect", SYS_mprotect},
                                                       {"madvise", SYS_madvise},
                                                       {"futex", SYS_futex},
                                                       {"tgkill", SYS_tgkill},
                                                       {"sched_yield", SYS_sched_yield},
                                                       {"clock_nanosleep", SYS_clock_nanosleep},
                                                       {"brk", SYS_brk}};
  std::ifstream page(JITUNWIND_SOURCE_DIR "/docs/contracts.md");
  std::vector<unsigned> before;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| ", 0) != 0) continue;
    const std::size_t middle = line.find(" | ");
    if (middle == line.npos) continue;
    std::vector<unsigned> calls;
    const std::string list = line.substr(middle + 3);
    if (list.rfind("the same", 0) == 0) calls = before;
    for (std::size_t at = 0; (at = list.find('`', at)) != list.npos;) {
      const std::size_t end = list.find('`', at + 1);
      const auto number = numbers.find(list.substr(at + 1, end - at - 1));
      if (number != numbers.end()) calls.push_back(number->second);
      at = end + 1;
    }
    if (line.substr(2, middle - 2) == row) return calls;
    before = calls;
  }
  ADD_FAILURE() << "no row \"" << row << "\"";
  return {};
}

TEST(SystemCalls, AreThoseOfTheTable) {
  const std::string warm =
      "`backtrace()`, `unw_backtrace()`, throws, through code that was walked twice on this thread, no deeper on its "
      "stack than then";
  const std::string cold =
      "walks and throws through new code, through frames whose rows are not kept, or after something was loaded or "
      "unloaded";
  const struct {
    std::string row;
    void (*before)();
    void (*run)();
  } activities[] = {
      {warm, &walk_addresses, &walk_addresses},
      {warm, &throw_one, &throw_one},
      {"a walk by a cursor", &walk_by_steps, &walk_by_steps},
      {cold, &nothing, &walk_addresses},
      {cold, &nothing, &walk_by_steps},
      {"throws by libgcc_s through new code whose description equals that of code thrown through before",
       &throw_below_new_code, &throw_below_new_code},
      {"walks of addresses through registered code that is new", &walk_below_new_code, &walk_below_new_code},
      {"walks that meet code of which nothing is known", &walk_unknown, &walk_unknown},
      {"names, procedures and files of addresses", &nothing, &ask_names},
      {"any of these on a signal stack with less than 32 KiB left", &walk_on_small_stack, &walk_on_small_stack},
      {"registering, cancelling, retiring", &nothing, &register_many},
  };
  for (const auto& activity : activities) {
    std::vector<unsigned> calls = calls_of(activity.row);
    calls.push_back(SYS_exit_group);
    const pid_t child = ::fork();
    if (child == 0) {
      // Each call comes from the same code but from another depth. The later ones are less deep, so that they use no
      // new page of the stack.
      allowed = &calls;
      void (*volatile steps[])() = {activity.before, activity.before, &allow_these_only, activity.run};
      const volatile std::size_t count = std::size(steps);  // a loop: one call in the code
      for (std::size_t i = 0; i < count; ++i) run_below(256 * (count - i), steps[i]);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << activity.row;
  }
}

/// The filter kills other calls.
TEST(SystemCalls, OthersWouldBeNoticed) {
  const int status = status_of(+[] {
    if (!allow_only({SYS_exit_group})) ::_exit(8);
    (void)::getppid();
    ::_exit(0);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

}  // namespace
