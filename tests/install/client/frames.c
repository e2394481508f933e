/* Compiled as C and as C++, which mangles names. */
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include <stdio.h>

int innermost(int n);
int middle(int n);

__attribute__((noinline)) int innermost(int n) {
  unw_context_t context;
  unw_cursor_t cursor;
  char name[64];
  unw_word_t offset;

  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  do {
    if (unw_get_proc_name(&cursor, name, sizeof name, &offset) == 0) printf("%s+%#lx\n", name, (unsigned long)offset);
  } while (unw_step(&cursor) > 0);
  return n;
}

__attribute__((noinline)) int middle(int n) { return innermost(n) + 1; }
