/* Registration as the headers of libunwind 1.6 declare it. */
#pragma once

#include <assert.h>
#include <stdint.h>

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
