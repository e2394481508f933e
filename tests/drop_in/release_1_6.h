/* Walks and registration as the headers of libunwind 1.6 declare them. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

typedef struct {
  uint64_t opaque[127];
} cursor_t;
int _Ux86_64_getcontext(ucontext_t* context);
int _ULx86_64_init_local(cursor_t* cursor, ucontext_t* context);
int _ULx86_64_init_local2(cursor_t* cursor, ucontext_t* context, int flag);
int _ULx86_64_step(cursor_t* cursor);
int _ULx86_64_get_reg(cursor_t* cursor, int reg, uint64_t* value);
int _ULx86_64_get_proc_name(cursor_t* cursor, char* buffer, size_t size, uint64_t* offset);
int _ULx86_64_is_signal_frame(cursor_t* cursor);
int _ULx86_64_set_caching_policy(void* space, int policy);
extern void* _ULx86_64_local_addr_space;
int unw_backtrace(void** addresses, int size);

typedef struct region {
  struct region* next;
  int32_t insn_count;
  uint32_t op_count;
  struct {
    int8_t tag, qp;
    int16_t reg;
    int32_t when;
    uint64_t val;
  } op[4];
} region_t;
typedef struct {
  void *next, *prev;
  uint64_t start_ip, end_ip, gp;
  int32_t format, pad;
  uint64_t load_offset;
  struct {
    uint64_t name_ptr, handler;
    uint32_t flags;
    int32_t pad0;
    region_t* regions;
  } pi;
} dyn_info_t;
static_assert(sizeof(dyn_info_t) == 88, "the layout of 1.6");
void _U_dyn_register(dyn_info_t* info);
void _U_dyn_cancel(dyn_info_t* info);
