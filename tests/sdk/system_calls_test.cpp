// Which system calls a walk makes: on the thread's own stack, once that was walked on, none; on others one probe a
// page.
#include <libunwind.h>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <vector>

namespace {

/// From now on every system call but these kills the process.
bool allow_only(std::vector<unsigned> calls) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Frames by single steps and by unw_backtrace(); 0: these differ in number.
int walk() {
  std::array<void*, 128> addresses;
  const int listed = unw_backtrace(addresses.data(), static_cast<int>(addresses.size()));
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  int frames = 1;
  while (unw_step(&cursor) > 0) ++frames;
  return frames == listed ? frames : 0;
}

[[gnu::noinline]] int walk_below(int depth) {
  volatile char room[256];
  room[0] = 0;
  const int frames = depth == 0 ? walk() : walk_below(depth - 1);
  (void)room[0];
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

void walk_own_stack() {
  const int before = walk_below(60);
  if (!allow_only({SYS_exit_group})) ::_exit(8);
  for (int i = 0; i < 100; ++i)
    if (walk_below(60) != before || before < 60) ::_exit(7);
  ::_exit(0);
}

ucontext_t g_back;

void walk_other_stack() {
  constexpr std::size_t k_size = 256 << 10;
  static ucontext_t other;
  (void)walk_below(60);
  ::getcontext(&other);
  other.uc_stack.ss_sp = ::mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  other.uc_stack.ss_size = k_size;
  other.uc_link = &g_back;
  ::makecontext(
      &other,
      +[] {
        const int before = walk_below(60);
        if (!allow_only({SYS_exit_group, SYS_rt_sigprocmask})) ::_exit(8);
        for (int i = 0; i < 100; ++i)
          if (walk_below(60) != before || before < 60) ::_exit(7);
        ::_exit(0);
      },
      0);
  ::swapcontext(&g_back, &other);
}

// covers: SF09
TEST(SystemCalls, AWalkOfTheOwnStackMakesNone) { EXPECT_EQ(status_of(&walk_own_stack), 0); }

TEST(SystemCalls, AWalkOfAnotherStackOnlyProbesIt) { EXPECT_EQ(status_of(&walk_other_stack), 0); }

/// The filter does kill.
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
