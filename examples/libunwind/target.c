/* A target behind accessors. Here it is this process again, by the accessors of the local space with one replaced. */
#include <libunwind.h>

#include <stdio.h>

static int reads;
static int counted_access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t* value, int write,
                              void* argument) {
  (void)space;
  ++reads;
  return unw_get_accessors(unw_local_addr_space)->access_mem(unw_local_addr_space, address, value, write, argument);
}

static int walk(unw_addr_space_t space, unw_context_t* target) {
  unw_cursor_t cursor;
  int frames = 1, moved;
  if (unw_init_remote(&cursor, space, target) != 0) return 0;
  while ((moved = unw_step(&cursor)) > 0) ++frames;
  return moved == 0 ? frames : 0;
}

int main(void) {
  unw_context_t context;
  unw_accessors_t accessors = *unw_get_accessors(unw_local_addr_space);
  unw_addr_space_t space;
  int frames;
  accessors.access_mem = counted_access_mem;
  space = unw_create_addr_space(&accessors, 0); /* in the byte order that the CPU usually has */
  if (!space) return 1;

  unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
  if (unw_set_cache_size(space, 4096, 0) != 0) return 1;
  unw_getcontext(&context);
  frames = walk(space, &context);
  unw_flush_cache(space, 0, 0);
  printf("%d frames, %d words read\n", frames, reads);
  unw_destroy_addr_space(space);
  return frames >= 2 && frames == walk(unw_local_addr_space, &context) ? 0 : 1;
}
