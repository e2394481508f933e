/* The stack of another process, with the procedure of each frame: traced PID; without an argument, a child of its own
   that sleeps. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libunwind-ptrace.h>

static int show_stack(pid_t pid) {
  unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
  void* target = _UPT_create(pid);
  unw_cursor_t cursor;
  int frames = 0;
  int moved = space && target ? unw_init_remote(&cursor, space, target) : -UNW_ENOMEM;
  if (moved == 0) moved = 1;
  while (moved > 0) {
    unw_word_t ip, offset;
    unw_proc_info_t info;
    char name[256];
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    if (unw_get_proc_name(&cursor, name, sizeof name, &offset) != 0) strcpy(name, "?"), offset = 0;
    printf("%#14lx %s+%#lx\n", (unsigned long)ip, name, (unsigned long)offset);
    if (unw_get_proc_info(&cursor, &info) == 0)
      printf("               proc=%#lx-%#lx handler=%#lx lsda=%#lx\n", (unsigned long)info.start_ip,
             (unsigned long)info.end_ip, (unsigned long)info.handler, (unsigned long)info.lsda);
    ++frames;
    moved = unw_step(&cursor);
  }
  printf("%s\n", moved == 0 ? "complete" : unw_strerror(moved));
  _UPT_destroy(target);
  unw_destroy_addr_space(space);
  return moved == 0 && frames > 2 ? 0 : 1;
}

static pid_t start_sleeper(void) {
  pid_t pid = fork();
  if (pid == 0)
    for (;;) pause();
  return pid;
}

int main(int argc, char** argv) {
  pid_t pid = argc > 1 ? (pid_t)atoi(argv[1]) : start_sleeper();
  int failed;
  if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) != 0) {
    fprintf(stderr, "process %d cannot be traced: %s\n", (int)pid, strerror(errno));
    return 1;
  }
  waitpid(pid, NULL, 0);
  failed = show_stack(pid);
  ptrace(PTRACE_DETACH, pid, NULL, NULL);
  if (argc == 1) kill(pid, SIGKILL), waitpid(pid, NULL, 0);
  return failed;
}
