/* The code that the announcer announces, for its two sources and its plugin. */
#pragma once
#include <jitunwind_jit.h>
#include <stdint.h>
#include <string.h>

/* long twice(void (*watch)(void), long n): push rbx; mov rbx,rsi; call rdi; lea rax,[rbx+rbx]; pop rbx; ret */
static const unsigned char code_of_twice[] = {0x53, 0x48, 0x89, 0xf3, 0xff, 0xd7, 0x48, 0x8d, 0x04, 0x1b, 0x5b, 0xc3};
static const ju_jit_mark marks_of_twice[] = {{JU_JIT_PUSH, JU_JIT_X86_64(3), 0, 1, 0},
                                             {JU_JIT_POP, JU_JIT_X86_64(3), 0, -1, 0}};

/* Writes a CIE and an FDE of code at this place; returns their bytes. */
static inline size_t section_of_twice(const void* code, uint64_t section[8]) {
  static const unsigned char cie[] = {20, 0,    0,  0, 0, 0,  0, 0, 1,    'z', 'R', 0,
                                      1,  0x78, 16, 1, 0, 12, 7, 8, 0x90, 1,   0,   0};
  static const unsigned char program[] = {0, 0x41, 14, 16, 0x83, 2, 0x4a, 14, 8}; /* no augmentation; rbx */
  unsigned char* const bytes = (unsigned char*)section;
  const uint64_t start = (uint64_t)(uintptr_t)code, size = sizeof code_of_twice;
  const uint32_t length = 4 + 16 + sizeof program, back = sizeof cie + 4;
  memcpy(bytes, cie, sizeof cie);
  memcpy(bytes + 24, &length, 4);
  memcpy(bytes + 28, &back, 4);
  memcpy(bytes + 32, &start, 8);
  memcpy(bytes + 40, &size, 8);
  memcpy(bytes + 48, program, sizeof program);
  return 24 + 4 + length;
}

#ifdef __cplusplus
extern "C" {
#endif
/* Whether this source's copy of the header knows the library that the other one has found. */
int wanted_in_other_source(void);
#ifdef __cplusplus
}
#endif
