// A resume takes entries off a shadow stack. They are counted on a CPU without one: a child runs instruction by
// instruction, and its tracer does what such a CPU does. It keeps a stack of the return addresses of calls, compares
// each return with it, and executes the two instructions that read and pop it (Intel SDM, volume 1, "Shadow Stacks";
// volume 2, RDSSP, INCSSP).
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/walk/resume.h"
#include "tests/resume/magic_frame.h"

namespace jitunwind::test {
namespace {

/// The instructions that matter, without prefixes.
enum class Kind { other, call, ret, read_ssp, pop_ssp, system_call };
Kind kind_of(const std::uint8_t* at) {
  const bool is_f3 = *at == 0xf3;
  while (*at == 0x66 || *at == 0x67 || *at == 0xf2 || *at == 0xf3 || *at == 0x3e || (*at & 0xf0) == 0x40) ++at;
  const unsigned of_modrm = at[1] >> 3 & 7;
  if (*at == 0xe8 || (*at == 0xff && of_modrm == 2)) return Kind::call;
  if (*at == 0xc3 || *at == 0xc2) return Kind::ret;
  if (*at != 0x0f) return Kind::other;
  if (at[1] == 0x05) return Kind::system_call;
  if (is_f3 && at[1] == 0x1e && at[2] == 0xc8) return Kind::read_ssp;
  return is_f3 && at[1] == 0xae && at[2] == 0xe8 ? Kind::pop_ssp : Kind::other;
}

class ShadowedChild {
 public:
  explicit ShadowedChild(const std::function<int()>& body) {
    cpu_set_t one;  // on which a step costs half as much as on two
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(std::max(::sched_getcpu(), 0)), &one);
    ::sched_setaffinity(0, sizeof one, &one);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      ::raise(SIGSTOP);
      ::_exit(body());
    }
    ::waitpid(pid_, &status_, 0);
    ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL);
  }
  ~ShadowedChild() {
    if (WIFSTOPPED(status_)) ::kill(pid_, SIGKILL), ::waitpid(pid_, &status_, 0);
  }
  ShadowedChild(const ShadowedChild&) = delete;
  ShadowedChild& operator=(const ShadowedChild&) = delete;

  /// "exit 0", "killed by 11", or what the CPU would not have let pass.
  std::string run() {
    while (WIFSTOPPED(status_) && wrong_.empty()) step();
    if (!wrong_.empty()) return wrong_;
    return WIFEXITED(status_) ? "exit " + std::to_string(WEXITSTATUS(status_))
                              : "killed by " + std::to_string(WTERMSIG(status_));
  }
  std::size_t popped() const { return popped_; }

 private:
  static constexpr std::uint64_t k_token = 1;  // what the kernel puts below the return address of a handler

  user_regs_struct registers() const {
    user_regs_struct read{};
    ::ptrace(PTRACE_GETREGS, pid_, nullptr, &read);
    return read;
  }
  std::uint64_t word_at(std::uint64_t at) const {
    return static_cast<std::uint64_t>(::ptrace(PTRACE_PEEKDATA, pid_, at, nullptr));
  }

  void step() {
    user_regs_struct before = registers();
    const std::uint64_t bytes = word_at(before.rip);
    const Kind kind = kind_of(reinterpret_cast<const std::uint8_t*>(&bytes));
    if (kind == Kind::read_ssp || kind == Kind::pop_ssp) return emulate(kind, before);
    const bool is_sigreturn = kind == Kind::system_call && before.rax == SYS_rt_sigreturn;
    ::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, 0);
    ::waitpid(pid_, &status_, 0);
    if (is_sigreturn) expect_top(k_token, "sigreturn");
    if (!WIFSTOPPED(status_)) return;
    if (WSTOPSIG(status_) != SIGTRAP) return deliver(WSTOPSIG(status_));
    if (kind != Kind::call && kind != Kind::ret) return;
    const user_regs_struct after = registers();
    if (kind == Kind::call) shadow_.push_back(word_at(after.rsp));
    // The child returns from the function that forked to a place that is below its stack.
    if (kind == Kind::ret && !shadow_.empty()) expect_top(after.rip, "ret");
  }

  void emulate(Kind kind, user_regs_struct& now) {
    if (kind == Kind::read_ssp) now.rax = 0x7000'0000'0000 - 8 * shadow_.size();
    for (auto n = now.rax & 0xff; kind == Kind::pop_ssp && n != 0; --n, ++popped_) {
      if (shadow_.empty())
        wrong_ = "incssp beyond the end";
      else
        shadow_.pop_back();
    }
    now.rip += 5;
    ::ptrace(PTRACE_SETREGS, pid_, nullptr, &now);
  }

  void deliver(int signal) {
    ::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, signal);
    ::waitpid(pid_, &status_, 0);
    if (!WIFSTOPPED(status_)) return;
    shadow_.push_back(k_token);
    shadow_.push_back(word_at(registers().rsp));
  }

  void expect_top(std::uint64_t value, const char* what) {
    if (shadow_.empty() || shadow_.back() != value)
      wrong_ = std::string(what) + " to what is not on top";
    else
      shadow_.pop_back();
  }

  pid_t pid_ = -1;
  int status_ = 0;
  std::vector<std::uint64_t> shadow_;
  std::string wrong_;
  std::size_t popped_ = 0;
};

void resume_behind_magic_frame(void*) {
  for (const Frame& frame : walk_here())
    if (frame.pc() == address_of(magic_frame_behind_call)) (void)resume(frame.cursor());
}
[[gnu::noinline]] void resume_from_depth(int depth, void* argument) {
  if (depth == 0)
    resume_behind_magic_frame(argument);
  else
    resume_from_depth(depth - 1, argument);
  asm volatile("");
}

int outcome_of(void (*f)(void*)) {
  Arrival arrival{};
  magic_frame(f, nullptr, &arrival);
  return preserved_are_magic(arrival) ? 0 : 1;
}

// covers: RS09
TEST(PoppedEntries, AreThoseOfTheFramesThatAreLeft) {
  ASSERT_EQ(outcome_of(&resume_behind_magic_frame), 0) << "which also reads what walks keep, for the children";
  ShadowedChild near([] { return outcome_of(&resume_behind_magic_frame); });
  EXPECT_EQ(near.run(), "exit 0");
  EXPECT_GT(near.popped(), 1u);
  ShadowedChild far([] { return outcome_of([](void* argument) { resume_from_depth(260, argument); }); });
  EXPECT_EQ(far.run(), "exit 0");
  EXPECT_GT(far.popped(), 260u);
}

/// The kernel's entry on top is what its return from the handler needs.
// covers: RS09
TEST(PoppedEntries, LeaveTheKernelsOwnOnTop) {
  ShadowedChild child([] {
    struct sigaction action {};
    action.sa_handler = [](int) {
      for (const Frame& frame : walk_here())
        if (!frame.address().is_return_address() && frame.depth() != 0) (void)resume(frame.cursor());
    };
    ::sigaction(SIGUSR1, &action, nullptr);
    ::raise(SIGUSR1);
    return 0;
  });
  EXPECT_EQ(child.run(), "exit 0");
  EXPECT_GT(child.popped(), 1u);
}

}  // namespace
}  // namespace jitunwind::test
