/* One translation unit with UNW_LOCAL_ONLY in a program whose others do without. */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

int jitunwind_test_local_only_depth(void);
int jitunwind_test_local_only_depth(void) {
  unw_context_t context;
  unw_cursor_t cursor;
  int depth = 0;
  unw_getcontext(&context);
  if (unw_init_local(&cursor, &context) != 0) return -1;
  while (unw_step(&cursor) > 0) ++depth;
  return depth;
}
