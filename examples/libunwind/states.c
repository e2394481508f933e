/* The effect of each part of a procedure on its frame, kept and used later without any lookup. */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <stdio.h>
#include <string.h>

struct kept {
  unw_word_t ip;
  char data[1024];
  int known;
};

static int keep(void* token, void* data, size_t size, unw_word_t start_ip, unw_word_t end_ip) {
  struct kept* const kept = token;
  printf("from %lx to %lx: %lu bytes\n", (unsigned long)start_ip, (unsigned long)end_ip, (unsigned long)size);
  if (kept->ip - 1 < start_ip || kept->ip - 1 >= end_ip || size > sizeof kept->data) return 0;
  memcpy(kept->data, data, size);
  kept->known = 1;
  return 0;
}

__attribute__((noinline)) static int compare(void) {
  unw_context_t context;
  unw_cursor_t cursor, other;
  struct kept kept = {0, {0}, 0};
  unw_word_t ip, other_ip;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  unw_step(&cursor); /* a frame that has called: the state before its return address is valid */
  unw_get_reg(&cursor, UNW_REG_IP, &kept.ip);
  if (unw_reg_states_iterate(&cursor, keep, &kept) != 0 || !kept.known) return 1;
  other = cursor;
  if (unw_apply_reg_state(&other, kept.data) != 0 || unw_step(&cursor) <= 0) return 1;
  unw_get_reg(&cursor, UNW_REG_IP, &ip);
  unw_get_reg(&other, UNW_REG_IP, &other_ip);
  return ip == other_ip ? 0 : 1;
}

int main(void) { return compare(); }
