/* libunwind's C interface. Builds with: cc backtrace.c $(pkg-config --cflags --libs jitunwind-libunwind) */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <stdio.h>

__attribute__((noinline)) static void show_backtrace(void) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  int moved = 1;
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
}

int main(void) {
  show_backtrace();
  return 0;
}
