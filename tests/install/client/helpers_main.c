/* Walks another process and the given core file by libunwind's interface. */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libunwind-coredump.h>
#include <libunwind-ptrace.h>

static int frames_of(unw_accessors_t* accessors, void* target) {
  unw_addr_space_t space = unw_create_addr_space(accessors, 0);
  unw_cursor_t cursor;
  int frames = 0;
  if (unw_init_remote(&cursor, space, target) == 0) do
      ++frames;
    while (unw_step(&cursor) > 0);
  unw_destroy_addr_space(space);
  return frames;
}

int main(void) {
  pid_t child = fork();
  void* target;
  int frames;
  if (child == 0)
    for (;;) pause();
  ptrace(PTRACE_ATTACH, child, NULL, NULL);
  waitpid(child, NULL, 0);
  target = _UPT_create(child);
  frames = frames_of(&_UPT_accessors, target);
  _UPT_destroy(target);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  printf("%d frames of another process, %s core\n", frames, _UCD_create("/nowhere") ? "a" : "no");
  return frames > 2 ? 0 : 1;
}
