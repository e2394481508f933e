/* A program as one built with libunwind 1.6: its declarations, none of ours. Walks through a procedure made at run time
   that it has registered in the layout of that release, and prints the names. */
#define _GNU_SOURCE
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "release_1_6.h"

typedef struct {
  uint64_t opaque[127];
} cursor_t;
int _Ux86_64_getcontext(ucontext_t* context);
int _ULx86_64_init_local(cursor_t* cursor, ucontext_t* context);
int _ULx86_64_step(cursor_t* cursor);
int _ULx86_64_get_reg(cursor_t* cursor, int reg, uint64_t* value);
int _ULx86_64_get_proc_name(cursor_t* cursor, char* buffer, size_t size, uint64_t* offset);
int _ULx86_64_set_caching_policy(void* space, int policy);
extern void* _ULx86_64_local_addr_space;
int unw_backtrace(void** addresses, int size);

static void* listed[64];
static int lengths[2];

static void walk(void) {
  ucontext_t context;
  cursor_t cursor;
  int moved;
  _Ux86_64_getcontext(&context);
  _ULx86_64_init_local(&cursor, &context);
  do {
    char name[64] = "?";
    uint64_t ip = 0, offset = 0;
    _ULx86_64_get_reg(&cursor, 16, &ip);
    _ULx86_64_get_proc_name(&cursor, name, sizeof name, &offset);
    printf("%s\n", name);
    moved = _ULx86_64_step(&cursor);
    if (strcmp(name, "main") == 0) break;
  } while (moved > 0);
  lengths[0] = unw_backtrace(listed, 64);
  lengths[1] = backtrace(listed, 64);
}

int main(int argc, char** argv) {
  /* sub rsp,8; call rdi; add rsp,8; ret */
  static const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  (void)argv;
  static region_t region = {0, sizeof code, 4, {{4, 0, 7, 3, (uint64_t)-8}, {5, 0, 7, 9, 1}, {0, 0, 0, 0, 0}}};
  static dyn_info_t info;
  void* const at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(at, code, sizeof code);
  info.start_ip = (uintptr_t)at;
  info.end_ip = info.start_ip + sizeof code;
  info.pi.name_ptr = (uintptr_t)"made_at_run_time";
  info.pi.regions = &region;
  if (_ULx86_64_set_caching_policy(_ULx86_64_local_addr_space, 1) != 0) return 2;
  _U_dyn_register(&info);
  if (argc > 1) _U_dyn_register(&info); /* makes a ring of libunwind 1.6's list */
  ((void (*)(void (*)(void)))at)(walk);
  _U_dyn_cancel(&info);
  if (argc > 1) _U_dyn_cancel(&info);
  printf("%s\n", lengths[0] > 3 && lengths[0] == lengths[1] ? "same length" : "other length");
  return 0;
}
