/* A process that hangs in a call is made to continue after it: its tracer resumes it in the frame of the caller. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libunwind-ptrace.h>

static volatile int waits = 1;

static int wait_for_ever(void) {
  raise(SIGSTOP); /* for the tracer */
  while (waits) pause();
  return 1;
}
/* Compilers do not see through these: they would rename the functions, or know what the call returns. */
static int (*volatile call)(void) = wait_for_ever;
static int work(void) {
  const int answer = call();
  printf("work goes on with %d\n", answer);
  return answer;
}
static int (*volatile begin)(void) = work;

static pid_t start_work(void) {
  const pid_t pid = fork();
  if (pid == 0) {
    int answer;
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    answer = begin();
    fflush(stdout);
    _exit(answer);
  }
  return pid;
}

/* Ends the calls that `caller` is in, the innermost of which returns `value` to it. */
static int return_to(unw_addr_space_t space, void* target, const char* caller, unw_word_t value) {
  unw_cursor_t cursor;
  char name[64] = "";
  int status = unw_init_remote(&cursor, space, target);
  while (status >= 0 && strcmp(name, caller) != 0) {
    status = unw_step(&cursor);
    if (status == 0) return -UNW_ENOINFO;
    unw_get_proc_name(&cursor, name, sizeof name, NULL);
  }
  if (status >= 0) status = unw_set_reg(&cursor, UNW_REG_EH, value);
  return status < 0 ? status : unw_resume(&cursor);
}

int main(void) {
  const pid_t pid = start_work();
  int status = -1, returned;
  unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
  void* target = _UPT_create(pid);
  waitpid(pid, NULL, 0);
  returned = return_to(space, target, "work", 42);
  if (returned != 0) printf("%s\n", unw_strerror(returned)), kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  _UPT_destroy(target);
  unw_destroy_addr_space(space);
  return WIFEXITED(status) && WEXITSTATUS(status) == 42 ? 0 : 1;
}
