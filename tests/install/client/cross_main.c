/* A target of another CPU. Its owner names three addresses of it. */
#ifndef HEADER
#define HEADER <libunwind-aarch64.h>
#endif
#include HEADER
#include <stdio.h>
#include <string.h>

static int name_of(unw_addr_space_t space, unw_word_t address, char* buffer, size_t size, unw_word_t* offset,
                   void* names) {
  (void)space;
  *offset = 0;
  snprintf(buffer, size, "%s", ((const char**)names)[address / 0x1000]);
  return 0;
}

int main(void) {
  const char* names[] = {"innermost", "middle", "main"};
  unw_accessors_t accessors;
  unw_addr_space_t space;
  unw_word_t i;
  memset(&accessors, 0, sizeof accessors);
  accessors.get_proc_name = name_of;
  space = unw_create_addr_space(&accessors, 0);
  for (i = 0; i < 3; ++i) {
    char name[32];
    if (unw_get_proc_name_by_ip(space, 0x1000 * i, name, sizeof name, 0, names) != 0) return 1;
    puts(name);
  }
  unw_destroy_addr_space(space);
  return 0;
}
