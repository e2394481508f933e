/* One translation unit with UNW_LOCAL_ONLY in a program whose others do without. */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

int jitunwind_test_local_only_pcs(unw_word_t* pcs, int size);
extern const char* const jitunwind_test_local_only_names[2];

/* The names that the manual's names stand for here. */
const char* const jitunwind_test_local_only_names[2] = {TEXT(unw_step), TEXT(unw_flush_cache)};

/* Collects the IPs of its own frame and of its callers, and returns their number. */
int jitunwind_test_local_only_pcs(unw_word_t* pcs, int size) {
  unw_context_t context;
  unw_cursor_t cursor;
  int count = 0;
  unw_getcontext(&context);
  if (unw_init_local(&cursor, &context) != 0) return -1;
  do unw_get_reg(&cursor, UNW_REG_IP, &pcs[count++]);
  while (count < size && unw_step(&cursor) > 0);
  return count;
}
