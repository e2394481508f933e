/* Walks and registration as the headers of libunwind 1.6 declare them. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/* Names of functions for any target, and for this process; UNW_REG_IP; words of unw_cursor_t. */
#ifdef __aarch64__
#define REMOTE(name) _Uaarch64_##name
#define LOCAL(name) _ULaarch64_##name
#define TRAP "udf #0"
enum { k_ip = 30, k_cursor_words = 250 };
#else
#define REMOTE(name) _Ux86_64_##name
#define LOCAL(name) _ULx86_64_##name
#define TRAP "ud2"
enum { k_ip = 16, k_cursor_words = 127 };
#endif

typedef struct {
  uint64_t opaque[k_cursor_words];
} cursor_t;
int REMOTE(getcontext)(ucontext_t* context);
int LOCAL(init_local)(cursor_t* cursor, ucontext_t* context);
int LOCAL(init_local2)(cursor_t* cursor, ucontext_t* context, int flag);
int LOCAL(step)(cursor_t* cursor);
int LOCAL(get_reg)(cursor_t* cursor, int reg, uint64_t* value);
int LOCAL(get_proc_name)(cursor_t* cursor, char* buffer, size_t size, uint64_t* offset);
int LOCAL(is_signal_frame)(cursor_t* cursor);
int LOCAL(set_caching_policy)(void* space, int policy);
extern void* LOCAL(local_addr_space);
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
