/* The code that the announcer announces, for its two sources and its plugin. */
#pragma once
#include <jitunwind_jit.h>

/* long twice(void (*watch)(void), long n): push rbx; mov rbx,rsi; call rdi; lea rax,[rbx+rbx]; pop rbx; ret */
static const unsigned char code_of_twice[] = {0x53, 0x48, 0x89, 0xf3, 0xff, 0xd7, 0x48, 0x8d, 0x04, 0x1b, 0x5b, 0xc3};
static const ju_jit_mark marks_of_twice[] = {{JU_JIT_PUSH, JU_JIT_X86_64(3), 0, 1, 0},
                                             {JU_JIT_POP, JU_JIT_X86_64(3), 0, -1, 0}};

#ifdef __cplusplus
extern "C" {
#endif
extern ju_jit_frame frame_of_twice;
unsigned char* made_code(void);
/* Whether this source's copy of the header knows the library that the other one has found. */
int wanted_in_other_source(void);
#ifdef __cplusplus
}
#endif
