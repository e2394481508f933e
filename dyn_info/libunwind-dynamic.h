/* Dynamic unwind information: the structures that a program passes to _U_dyn_register, bit for bit those of libunwind's
   header of this name (its current 80-byte descriptor; releases 1.5 to 1.6.x had an extra word in unw_dyn_info_t and
   must not be mixed with this header). C and C++. Meaning of every directive: docs/directives.md.

   A reader in another process reads these structures too: no enumerations, no bit fields, explicit padding, pointers
   only where the pointed-to object is read as well. */
#ifndef JITUNWIND_LIBUNWIND_DYNAMIC_H
#define JITUNWIND_LIBUNWIND_DYNAMIC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef JITUNWIND_UNW_WORD_T
#define JITUNWIND_UNW_WORD_T
typedef uint64_t unw_word_t;
typedef int64_t unw_sword_t;
#endif

typedef enum {
  UNW_DYN_STOP = 0,     /* end of the directives of a region */
  UNW_DYN_SAVE_REG,     /* reg saved in register val */
  UNW_DYN_SPILL_FP_REL, /* reg saved at frame pointer + val */
  UNW_DYN_SPILL_SP_REL, /* reg saved at stack pointer + val */
  UNW_DYN_ADD,          /* reg += val */
  UNW_DYN_POP_FRAMES,   /* frame released; val region states popped at the region's end */
  UNW_DYN_LABEL_STATE,  /* remember the state as val */
  UNW_DYN_COPY_STATE,   /* return to the state remembered as val */
  UNW_DYN_ALIAS         /* unwind like the code at val */
} unw_dyn_operation_t;

typedef enum {
  UNW_INFO_FORMAT_DYNAMIC,        /* unw_dyn_proc_info_t */
  UNW_INFO_FORMAT_TABLE,          /* unw_dyn_table_info_t */
  UNW_INFO_FORMAT_REMOTE_TABLE,   /* unw_dyn_remote_table_info_t */
  UNW_INFO_FORMAT_ARM_EXIDX,      /* ARM index table */
  UNW_INFO_FORMAT_IP_OFFSET,      /* as REMOTE_TABLE, first member relative to start_ip */
  UNW_INFO_FORMAT_REMOTE_TABLE_64 /* as REMOTE_TABLE with 64-bit members */
} unw_dyn_info_format_t;

typedef struct unw_dyn_op {
  int8_t tag;     /* unw_dyn_operation_t */
  int8_t qp;      /* _U_QP_TRUE on targets without predicates */
  int16_t reg;    /* libunwind register number */
  int32_t when;   /* instruction index in the region; in force after that instruction */
  unw_word_t val; /* depends on tag */
} unw_dyn_op_t;

typedef struct unw_dyn_region_info {
  struct unw_dyn_region_info* next; /* NULL: last region */
  int32_t insn_count;               /* length in instruction units; < 0: the last -n units (last region only) */
  uint32_t op_count;                /* allocated length of op */
  unw_dyn_op_t op[1];               /* variable length */
} unw_dyn_region_info_t;

typedef struct unw_dyn_proc_info {
  unw_word_t name_ptr; /* address of a NUL-terminated name, or 0 */
  unw_word_t handler;  /* address of the personality routine, or 0 */
  uint32_t flags;      /* 0 */
  int32_t pad0;        /* 0 */
  unw_dyn_region_info_t* regions;
} unw_dyn_proc_info_t;

typedef struct unw_dyn_table_info {
  unw_word_t name_ptr;
  unw_word_t segbase;
  unw_word_t table_len; /* in words */
  unw_word_t* table_data;
} unw_dyn_table_info_t;

typedef struct unw_dyn_remote_table_info {
  unw_word_t name_ptr;
  unw_word_t segbase;
  unw_word_t table_len; /* in words */
  unw_word_t table_data;
} unw_dyn_remote_table_info_t;

typedef struct unw_dyn_info {
  struct unw_dyn_info* next; /* the library's */
  struct unw_dyn_info* prev; /* the library's */
  unw_word_t start_ip;       /* first address of the procedure */
  unw_word_t end_ip;         /* first address after it */
  unw_word_t gp;             /* global pointer, 0 if the target has none */
  int32_t format;            /* unw_dyn_info_format_t */
  int32_t pad;
  union {
    unw_dyn_proc_info_t pi;
    unw_dyn_table_info_t ti;
    unw_dyn_remote_table_info_t rti;
  } u;
} unw_dyn_info_t;

typedef struct unw_dyn_info_list {
  uint32_t version;    /* 1 */
  uint32_t generation; /* odd while the list is being changed */
  unw_dyn_info_t* first;
} unw_dyn_info_list_t;

/* Always-true predicate. */
#define _U_QP_TRUE 0

/* ADD with this value moves its register by an amount that the generator does not know (alloca, realignment). */
#define UNW_DYN_ADD_UNKNOWN (((unw_word_t)1) << (8 * sizeof(unw_word_t) - 1))

/* Makes the procedure known to every walk of this process. O(1). di and everything reachable from it must stay valid
   and unchanged until _U_dyn_cancel has returned; next and prev are the library's from now on, which writes them when
   others are registered or cancelled, too. Memory that is missing or read-only faults. Thread-safe, not
   signal-safe. A descriptor that is registered already is left alone. */
extern void _U_dyn_register(unw_dyn_info_t* di);

/* Cancels the procedure. O(1), then waits for walks that are reading di; when it returns, nothing reads di any more.
   Thread-safe, not signal-safe. Ignores descriptors that are not registered, as long as they can be read. */
extern void _U_dyn_cancel(unw_dyn_info_t* di);

/* Address of the head of this process's list. Signal-safe. */
extern unw_word_t _U_dyn_info_list_addr(void);

/* Bytes of a region descriptor with op_count directives. Signal-safe. */
extern size_t _U_dyn_region_size(int op_count);

#define _U_dyn_region_info_size(op_count) \
  (offsetof(unw_dyn_region_info_t, op) + (size_t)(op_count) * sizeof(unw_dyn_op_t))

#ifdef __cplusplus
}

/* Functions instead of compound literals: C++ has none, and brace initialisation would reject negative values. */
inline unw_dyn_op_t jitunwind_make_dyn_op(long tag, long qp, long when, long reg, unw_word_t val) {
  unw_dyn_op_t op;
  op.tag = (int8_t)tag;
  op.qp = (int8_t)qp;
  op.reg = (int16_t)reg;
  op.when = (int32_t)when;
  op.val = val;
  return op;
}
#define _U_dyn_op(tag, qp, when, reg, val) \
  (jitunwind_make_dyn_op((long)(tag), (long)(qp), (long)(when), (long)(reg), (unw_word_t)(val)))
#else
#define _U_dyn_op(_tag, _qp, _when, _reg, _val) \
  ((unw_dyn_op_t){.tag = (int8_t)(_tag),        \
                  .qp = (int8_t)(_qp),          \
                  .reg = (int16_t)(_reg),       \
                  .when = (int32_t)(_when),     \
                  .val = (unw_word_t)(_val)})
#endif

#define _U_dyn_op_save_reg(op, qp, when, reg, dst) (*(op) = _U_dyn_op(UNW_DYN_SAVE_REG, (qp), (when), (reg), (dst)))
#define _U_dyn_op_spill_fp_rel(op, qp, when, reg, offset) \
  (*(op) = _U_dyn_op(UNW_DYN_SPILL_FP_REL, (qp), (when), (reg), (offset)))
#define _U_dyn_op_spill_sp_rel(op, qp, when, reg, offset) \
  (*(op) = _U_dyn_op(UNW_DYN_SPILL_SP_REL, (qp), (when), (reg), (offset)))
#define _U_dyn_op_add(op, qp, when, reg, value) (*(op) = _U_dyn_op(UNW_DYN_ADD, (qp), (when), (reg), (value)))
#define _U_dyn_op_pop_frames(op, qp, when, num_frames) \
  (*(op) = _U_dyn_op(UNW_DYN_POP_FRAMES, (qp), (when), 0, (num_frames)))
#define _U_dyn_op_label_state(op, label) (*(op) = _U_dyn_op(UNW_DYN_LABEL_STATE, _U_QP_TRUE, -1, 0, (label)))
#define _U_dyn_op_copy_state(op, label) (*(op) = _U_dyn_op(UNW_DYN_COPY_STATE, _U_QP_TRUE, -1, 0, (label)))
#define _U_dyn_op_alias(op, qp, when, addr) (*(op) = _U_dyn_op(UNW_DYN_ALIAS, (qp), (when), 0, (addr)))
#define _U_dyn_op_stop(op) (*(op) = _U_dyn_op(UNW_DYN_STOP, _U_QP_TRUE, -1, 0, 0))

#ifdef __cplusplus
#define JITUNWIND_DYN_ASSERT(condition) static_assert(condition, "layout of the dynamic unwind information")
#else
#define JITUNWIND_DYN_ASSERT(condition) _Static_assert(condition, "layout of the dynamic unwind information")
#endif
#if defined(__LP64__)
JITUNWIND_DYN_ASSERT(sizeof(unw_dyn_op_t) == 16 && offsetof(unw_dyn_op_t, val) == 8);
JITUNWIND_DYN_ASSERT(sizeof(unw_dyn_region_info_t) == 32 && offsetof(unw_dyn_region_info_t, op) == 16);
JITUNWIND_DYN_ASSERT(sizeof(unw_dyn_proc_info_t) == 32 && offsetof(unw_dyn_proc_info_t, regions) == 24);
JITUNWIND_DYN_ASSERT(sizeof(unw_dyn_table_info_t) == 32 && sizeof(unw_dyn_remote_table_info_t) == 32);
JITUNWIND_DYN_ASSERT(sizeof(unw_dyn_info_t) == 80 && offsetof(unw_dyn_info_t, u) == 48);
JITUNWIND_DYN_ASSERT(sizeof(unw_dyn_info_list_t) == 16 && offsetof(unw_dyn_info_list_t, first) == 8);
#endif
#undef JITUNWIND_DYN_ASSERT

#endif
