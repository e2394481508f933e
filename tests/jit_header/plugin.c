/* A JIT in a shared object with a copy of the header of its own. */
#include "announcer.h"

__attribute__((visibility("default"))) int start_plugin(const void* code);
int start_plugin(const void* code) {
  static ju_jit_frame frame = {marks_of_twice, 2, 1, NULL, NULL};
  static uint64_t section[8]; /* it is unloaded, too */
  ju_jit_code at = JU_JIT_CODE(code, sizeof code_of_twice, "of_plugin", &frame);
  if (BY_SECTION) {
    at.frame = NULL;
    at.eh_frame = section;
    at.eh_frame_size = section_of_twice(code, section);
  }
  return ju_jit_announce(&at, NULL, NULL);
}
