/* A JIT in a shared object with a copy of the header of its own. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "announcer.h"

__attribute__((visibility("default"))) int start_plugin(void** code);
int start_plugin(void** code) {
  static ju_jit_frame frame = {marks_of_twice, 2, 1, NULL, NULL};
  *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (*code == MAP_FAILED) abort();
  memcpy(*code, code_of_twice, sizeof code_of_twice);
  static uint64_t section[8]; /* it is unloaded, too */
  ju_jit_code at = JU_JIT_CODE(*code, sizeof code_of_twice, "of_plugin", &frame);
  if (BY_SECTION) {
    at.frame = NULL;
    at.eh_frame = section;
    at.eh_frame_size = section_of_twice(*code, section);
  }
  return ju_jit_announce(&at, NULL, NULL);
}
