/* Code of x86-64 that calls its argument, and its call frame information (LSB 5.0 core, 10.6.1). */
#ifndef JITUNWIND_TESTS_CORE_CODE_H
#define JITUNWIND_TESTS_CORE_CODE_H

#include <stdint.h>
#include <string.h>

/* push rbp; sub rsp, 32; call rdi; add rsp, 32; pop rbp; ret. rbp is no frame pointer: only the table knows the frame.
 */
static const unsigned char k_code[] = {0x55, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3};

enum { k_begin_at = 32, k_size_at = 40, k_cfa_at = 50 };
static const unsigned char k_frames[] = {
    /* CIE: version 1, no augmentation, factors 1 and -8, return address 16; cfa=rsp+8 ra=[cfa-8] */
    20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0,
    /* FDE: begin and size are written by place_frames() */
    44, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    /* +1: cfa=rsp+16 rbp=[cfa-16]; +5: cfa=rsp+48; +11: cfa=rsp+16; +12: cfa=rsp+8 rbp=same */
    0x41, 0x0e, 16, 0x86, 2, 0x44, 0x0e, 48, 0x46, 0x0e, 16, 0x41, 0x0e, 8, 0xc6, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    /* the end */
    0, 0, 0, 0};

static void place_frames(unsigned char* frames, const unsigned char* code) {
  const uint64_t begin = (uintptr_t)code, size = sizeof k_code;
  memcpy(frames, k_frames, sizeof k_frames);
  memcpy(frames + k_begin_at, &begin, sizeof begin);
  memcpy(frames + k_size_at, &size, sizeof size);
}

#endif
