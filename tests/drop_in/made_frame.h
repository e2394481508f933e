/* A procedure made at run time, registered as a program of libunwind 1.6 does it. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __i386__ /* for which there is no library of 1.6's names: by this library's own */
#include <libunwind.h>
typedef unw_dyn_info_t dyn_info_t;
#define pi u.pi
#else
#include "release_1_6.h"
#endif

typedef void (*function_t)(void);

/* Calls what it is given, with another value in a preserved register. */
static void (*made)(function_t);
static dyn_info_t made_info;

static void make_frame(void) {
#ifdef __aarch64__
  /* stp x30,x19,[sp,#-16]!; mov x19,#0; blr x0; ldp x30,x19,[sp],#16; ret */
  static const uint32_t code[] = {0xa9bf4ffe, 0xd2800013, 0xd63f0000, 0xa8c14ffe, 0xd65f03c0};
  static region_t region = {
      0, 5, 4, {{4, 0, 31, 0, (uint64_t)-16}, {3, 0, 30, 0, 0}, {3, 0, 19, 0, 8}, {4, 0, 31, 3, 16}}};
#elif defined(__i386__)
  /* push ebx; sub esp,8; xor ebx,ebx; call [esp+16]; add esp,8; pop ebx; ret */
  static const unsigned char code[] = {0x53, 0x83, 0xec, 8,    0x31, 0xdb, 0xff, 0x54,
                                       0x24, 16,   0x83, 0xc4, 8,    0x5b, 0xc3};
  static struct {
    unw_dyn_region_info_t region;
    unw_dyn_op_t rest[4];
  } described = {{0, sizeof code, 5, {_U_dyn_op(UNW_DYN_ADD, 0, 0, UNW_X86_ESP, -4)}},
                 {_U_dyn_op(UNW_DYN_SPILL_SP_REL, 0, 0, UNW_X86_EBX, 0), _U_dyn_op(UNW_DYN_ADD, 0, 3, UNW_X86_ESP, -8),
                  _U_dyn_op(UNW_DYN_ADD, 0, 12, UNW_X86_ESP, 8), _U_dyn_op(UNW_DYN_ADD, 0, 13, UNW_X86_ESP, 4)}};
#define region described.region
#else
  /* push rbx; xor ebx,ebx; call rdi; pop rbx; ret */
  static const unsigned char code[] = {0x53, 0x31, 0xdb, 0xff, 0xd7, 0x5b, 0xc3};
  static region_t region = {
      0, sizeof code, 4, {{4, 0, 7, 0, (uint64_t)-8}, {3, 0, 3, 0, 0}, {5, 0, 7, 5, 1}, {0, 0, 0, 0, 0}}};
#endif
  /* The code is in a file with a name: some tools show no frame whose code is in no file. */
  const int file = (int)syscall(SYS_memfd_create, "made_code", 0);
  void* at;
  if (write(file, code, sizeof code) != sizeof code) abort();
  at = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  close(file);
  made_info.start_ip = (uintptr_t)at;
  made_info.end_ip = made_info.start_ip + sizeof code;
  made_info.pi.name_ptr = (uintptr_t) "made_at_run_time";
  made_info.pi.regions = &region;
  _U_dyn_register(&made_info);
  made = (void (*)(function_t))at;
}
