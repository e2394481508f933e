// System calls that a test forbids to itself, makes fail, or stops at.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <vector>

namespace jitunwind::test {

inline bool install(std::span<sock_filter> program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Makes a filter that gives `answer` to these calls and `others` to all others (seccomp(2), "Seccomp filters":
/// SECCOMP_RET_...).
inline std::vector<sock_filter> answers(std::span<const unsigned> calls, unsigned answer, unsigned others) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, answer));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, others));
  return program;
}

/// Makes every other system call kill the process from now on.
inline bool allow_only(const std::vector<unsigned>& calls) {
  auto program = answers(calls, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS);
  return install(program);
}
/// Makes these calls fail with one error from now on, whatever their arguments are.
inline bool refuse(const std::vector<unsigned>& calls, unsigned error) {
  auto program = answers(calls, SECCOMP_RET_ERRNO | error, SECCOMP_RET_ALLOW);
  return install(program);
}

/// Installs a filter for the calling thread. If it answers SECCOMP_RET_USER_NOTIF, the thread waits until somebody
/// answers the notification that is read from the returned descriptor. Below 0: errno has the error.
inline int install_and_listen(std::span<sock_filter> program) {
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
}

}  // namespace jitunwind::test
