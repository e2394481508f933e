/* The C interface as a C program sees it: numbers, sizes, and a program in the style of the manual. */
#include <libunwind-dynamic.h>
#include <libunwind.h>
#include <libunwind.h> /* a second time */

#include <stddef.h>
#include <stdio.h>

#include "tests/libunwind/libunwind_constants.h"

int jitunwind_test_show_backtrace(char* out, size_t size);
extern const size_t jitunwind_test_sizes_in_c[9];
extern unw_addr_space_t (*const jitunwind_test_create_in_c)(unw_accessors_t*, int);

unw_addr_space_t (*const jitunwind_test_create_in_c)(unw_accessors_t*, int) = &unw_create_addr_space;

const size_t jitunwind_test_sizes_in_c[9] = {
    sizeof(unw_cursor_t),    sizeof(unw_context_t),   sizeof(unw_fpreg_t),
    _Alignof(unw_fpreg_t),   sizeof(unw_proc_info_t), sizeof(unw_save_loc_t),
    sizeof(unw_accessors_t), sizeof(unw_dyn_info_t),  offsetof(unw_dyn_info_t, u)};

/* Prints "ip = ..., sp = ..." for every caller; returns their number. */
int jitunwind_test_show_backtrace(char* out, size_t size) {
  unw_context_t context;
  unw_cursor_t cursor;
  int frames = 0;
  size_t used = 0;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  while (unw_step(&cursor) > 0) {
    unw_word_t ip, sp;
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    unw_get_reg(&cursor, UNW_REG_SP, &sp);
    if (used < size) used += (size_t)snprintf(out + used, size - used, "ip = %lx, sp = %lx\n", (long)ip, (long)sp);
    ++frames;
  }
  return frames;
}
