/* The stacks of a core file: core FILE; without an argument, of a core file that gcore makes of this program. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <libunwind-coredump.h>

static int show_thread(unw_addr_space_t space, struct UCD_info* core) {
  unw_cursor_t cursor;
  int moved = unw_init_remote(&cursor, space, core);
  printf("thread %d, signal %d\n", (int)_UCD_get_pid(core), _UCD_get_cursig(core));
  if (moved == 0) moved = 1;
  while (moved > 0) {
    unw_word_t ip, offset;
    char name[256];
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    if (unw_get_proc_name(&cursor, name, sizeof name, &offset) == 0)
      printf("%#14lx %s+%#lx\n", (unsigned long)ip, name, (unsigned long)offset);
    else
      printf("%#14lx ?\n", (unsigned long)ip);
    moved = unw_step(&cursor);
  }
  printf("%s\n", moved == 0 ? "complete" : unw_strerror(moved));
  return moved;
}

static int show_core(const char* path) {
  unw_addr_space_t space = unw_create_addr_space(&_UCD_accessors, 0);
  struct UCD_info* core = _UCD_create(path);
  int failed = 0;
  int i;
  if (!core) return fprintf(stderr, "%s is no core file\n", path), 1;
  for (i = 0; i < _UCD_get_num_threads(core); ++i) {
    _UCD_select_thread(core, i);
    if (show_thread(space, core) != 0) failed = 1;
  }
  _UCD_destroy(core);
  unw_destroy_addr_space(space);
  return failed;
}

int main(int argc, char** argv) {
  char text[128];
  int failed;
  if (argc > 1) return show_core(argv[1]);
  snprintf(text, sizeof text, "gcore -o /tmp/example_core %d > /dev/null 2>&1", (int)getpid());
  if (system(text) != 0) return fprintf(stderr, "gcore (Debian: gdb) has made no core file\n"), 1;
  snprintf(text, sizeof text, "/tmp/example_core.%d", (int)getpid());
  failed = show_core(text);
  unlink(text);
  return failed;
}
