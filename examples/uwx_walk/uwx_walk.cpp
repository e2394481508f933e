// Unwind Express twice: a thread that walks its own stack, and a process that walks another one, which is stopped.
#include <uwx.h>
#include <uwx_self.h>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <csignal>
#include <cstdio>

#include "examples/uwx_walk/stopped_process.h"

/// Prints one line for each frame, by the callbacks that the environment has.
static void print_frame(uwx_env* env) {
  std::uint64_t ip = 0, offset = 0;
  char *function = nullptr, *file = nullptr;
  int line = 0;
  (void)uwx_get_reg(env, UWX_REG_IP, &ip);
  (void)uwx_get_sym_info(env, nullptr, &function, &offset);
  (void)uwx_get_source_info(env, nullptr, &file, &line, nullptr);
  std::printf("%#14" PRIx64 "  %s+%#" PRIx64, ip, function ? function : "?", offset);
  if (file) std::printf("  %s:%d", file, line);
  std::printf("\n");
}

[[gnu::noinline]] static int print_own_stack() {
  uwx_env* const env = uwx_init();
  uwx_self_info* const info = uwx_self_init_info(env);
  int status = uwx_register_callbacks(env, (std::intptr_t)info, uwx_self_copyin, uwx_self_lookupip);
  if (status == UWX_OK) status = uwx_self_init_context(env);
  while (status == UWX_OK) {
    print_frame(env);
    status = uwx_step(env);
    if (status == UWX_ABI_FRAME) status = uwx_self_do_context_frame(env, info);  // on to what a signal interrupted
  }
  uwx_self_free_info(info);
  uwx_free(env);
  return status;
}

[[gnu::noinline]] static int print_stack_of(pid_t pid) {
  StoppedProcess process(pid);
  uwx_env* const env = uwx_init();
  uwx_set_remote(env, 0);
  int status = uwx_register_callbacks(env, (std::intptr_t)&process, StoppedProcess::copyin, StoppedProcess::lookupip);
  if (status == UWX_OK) status = uwx_init_context(env, process.ip(), process.sp(), 0, 0);
  while (status == UWX_OK) {
    print_frame(env);
    status = uwx_step(env);
  }
  uwx_free(env);
  return status;
}

[[gnu::noinline]] static void stop_here() {
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  ::raise(SIGSTOP);
  asm volatile("");  // raise() returns here
}
[[gnu::noinline]] static void work_of_child() {
  stop_here();
  ::_exit(0);
}

int main() {
  std::printf("this thread:\n");
  const int own = print_own_stack();

  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) work_of_child();
  if (::waitpid(child, nullptr, 0) != child) return 1;
  std::printf("process %s:\n", "that is stopped");
  const int others = print_stack_of(child);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);

  const bool complete = own == UWX_BOTTOM && others == UWX_BOTTOM;
  std::printf("%s\n", complete ? "complete" : "incomplete");
  return complete ? 0 : 1;
}
