/* The places of a calling frame's registers, how to change them, and how to continue there. */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <stdio.h>

static void show_places(unw_cursor_t* cursor) {
  unw_regnum_t reg;
  for (reg = 0; reg <= UNW_REG_LAST; ++reg) {
    unw_save_loc_t place;
    if (unw_is_fpreg(reg) || unw_get_save_loc(cursor, reg, &place) != 0) continue;
    if (place.type == UNW_SLT_MEMORY) printf("%s is at %lx\n", unw_regname(reg), (unsigned long)place.u.addr);
    if (place.type == UNW_SLT_REG) printf("%s is still in %s\n", unw_regname(reg), unw_regname(place.u.regnum));
  }
}

/* Returns to the caller of its caller, for which the result is `value`. */
__attribute__((noinline)) static long return_twice(long value) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  if (unw_step(&cursor) <= 0 || unw_step(&cursor) <= 0) return -1;
  show_places(&cursor);
  if (unw_set_reg(&cursor, UNW_REG_EH, (unw_word_t)value) != 0) return -1;
  printf("%s\n", unw_strerror(unw_resume(&cursor))); /* comes back only with an error */
  return -1;
}
__attribute__((noinline)) static long leave_out(long value) {
  const long returned = return_twice(value);
  printf("this is not printed: %ld\n", returned);
  return -1;
}

static int show_floating_point(void) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_fpreg_t value = 0;
  int returned;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  returned = unw_get_fpreg(&cursor, UNW_REG_LAST, &value);
  if (returned == -UNW_EBADREG) returned = unw_set_fpreg(&cursor, UNW_REG_LAST, value);
  printf("%s\n", unw_strerror(returned)); /* no call on x86-64 preserves one: bad register number */
  return returned;
}

int main(void) {
  long (*volatile call)(long) = leave_out; /* compilers see that every return of it is -1 */
  if (call(42) != 42) return 1;
  return show_floating_point() == -UNW_EBADREG ? 0 : 1;
}
