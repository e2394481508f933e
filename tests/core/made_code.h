/* The code of tests/core/code.h in memory that may be executed, registered with the core; C and C++. */
#ifndef JITUNWIND_TESTS_CORE_MADE_CODE_H
#define JITUNWIND_TESTS_CORE_MADE_CODE_H

#include <jitunwind/sdk/c/register.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/core/code.h"

/* So many copies one behind the other, in the same page, with their frames; null: there is no memory. */
static inline unsigned char* map_code(unsigned char* frames, size_t copies) {
  void* const memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  unsigned char* const page = (unsigned char*)memory;
  for (size_t i = 0; i < copies; ++i) {
    memcpy(page + i * sizeof k_code, k_code, sizeof k_code);
    place_frames(frames + i * sizeof k_frames, page + i * sizeof k_code);
  }
  return mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 ? page : NULL;
}

/* Registers one of them as made_at_run_time. */
static inline ju_status register_made(const unsigned char* start, const unsigned char* frames, ju_object** registered,
                                      ju_error* error) {
  const uint64_t begin = (uintptr_t)start, table = (uintptr_t)frames;
  const ju_range code = {begin, begin + sizeof k_code};
  const ju_function function = {begin, sizeof k_code, "made_at_run_time"};
  ju_object_code object;
  memset(&object, 0, sizeof object);
  object.struct_size = sizeof object;
  object.code = &code;
  object.code_count = 1;
  object.eh_frame.begin = table;
  object.eh_frame.end = table + sizeof k_frames;
  object.functions = &function;
  object.function_count = 1;
  return ju_object_register(&object, registered, error);
}

#endif
