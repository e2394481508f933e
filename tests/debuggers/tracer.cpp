#include "tests/debuggers/tracer.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace debuggers_test {

namespace {

int trace(pid_t child) {
  for (int status = 0;;) {
    if (::waitpid(child, &status, __WALL) != child) return -1;
    if (!WIFSTOPPED(status)) return status;
    const int signal = status >> 16 != 0 ? 0 : WSTOPSIG(status);
    ::ptrace(PTRACE_CONT, child, 0, signal);
  }
}

}  // namespace

void traced_by(const char* name, const std::function<void()>& run) {
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char byte;
    if (::read(go[0], &byte, 1) != 1) ::_exit(3);
    run();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  ASSERT_EQ(::prctl(PR_SET_NAME, name), 0);
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, child, 0, 0), 0);
  ASSERT_EQ(::write(go[1], "", 1), 1);
  EXPECT_EQ(trace(child), 0);
  ::close(go[0]);
  ::close(go[1]);
}

}  // namespace debuggers_test
