/* The target-independent part of the libunwind interface. Included by libunwind-<target>.h, never alone. Values, type
   sizes and names are those of libunwind 1.6 (C interface of nongnu.org/libunwind), so that programs written for it
   compile unchanged.

   Every function may be used by several threads at once; a cursor belongs to one thread at a time. One that was never
   initialised is refused with -UNW_EINVAL where it is all zeros; what else lies there is taken for a cursor. */
#ifndef JITUNWIND_LIBUNWIND_COMMON_H
#define JITUNWIND_LIBUNWIND_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "libunwind-dynamic.h"

#define UNW_VERSION_MAJOR 1
#define UNW_VERSION_MINOR 6
#define UNW_VERSION_EXTRA
#define UNW_VERSION_CODE(major, minor) (((major) << 16) | (minor))
#define UNW_VERSION UNW_VERSION_CODE(UNW_VERSION_MAJOR, UNW_VERSION_MINOR)

/* Functions of a target are called _U<target>_name; those that walk come a second time as _UL<target>_name for
   programs that define UNW_LOCAL_ONLY. Both lead to one implementation. */
#define UNW_PASTE2(x, y) x##y
#define UNW_PASTE(x, y) UNW_PASTE2(x, y)
#ifdef _U
#undef _U /* ctype.h of some C libraries defines it */
#endif
#define UNW_ARCH_OBJ(name) UNW_PASTE(UNW_PASTE(UNW_PASTE(_U, UNW_TARGET), _), name)
#ifdef UNW_LOCAL_ONLY
#define UNW_PREFIX UNW_PASTE(UNW_PASTE(_UL, UNW_TARGET), _)
#else
#define UNW_PREFIX UNW_PASTE(UNW_PASTE(_U, UNW_TARGET), _)
#endif
#define UNW_OBJ(name) UNW_PASTE(UNW_PREFIX, name)

/* Functions return the negated value on error. */
typedef enum {
  UNW_ESUCCESS = 0,
  UNW_EUNSPEC,      /* unspecified */
  UNW_ENOMEM,       /* out of memory; for names: the name was cut */
  UNW_EBADREG,      /* no such register, or it has no value in this frame */
  UNW_EREADONLYREG, /* register cannot be written */
  UNW_ESTOPUNWIND,  /* a callback ended the walk */
  UNW_EINVALIDIP,   /* the instruction pointer is not code */
  UNW_EBADFRAME,    /* the frame contradicts itself or cannot be read */
  UNW_EINVAL,       /* bad value, or not supported */
  UNW_EBADVERSION,  /* unwind information of an unknown version */
  UNW_ENOINFO       /* no unwind information */
} unw_error_t;

/* Registers that every target has. UNW_REG_IP and UNW_REG_SP are macros, too. */
typedef enum {
  UNW_REG_IP = UNW_TDEP_IP,
  UNW_REG_SP = UNW_TDEP_SP,
  UNW_REG_EH = UNW_TDEP_EH, /* first of UNW_NUM_EH_REGS exception registers */
  UNW_REG_LAST = UNW_TDEP_LAST_REG
} unw_frame_regnum_t;
#define UNW_REG_IP UNW_REG_IP
#define UNW_REG_SP UNW_REG_SP

#define UNW_NUM_EH_REGS UNW_TDEP_NUM_EH_REGS

typedef enum { UNW_CACHE_NONE, UNW_CACHE_GLOBAL, UNW_CACHE_PER_THREAD } unw_caching_policy_t;

typedef enum { UNW_INIT_SIGNAL_FRAME = 1 } unw_init_local2_flags_t;

/* Not libunwind's: which guesses unw_step goes on by, where nothing tells a frame's caller. */
typedef enum {
  UNW_GUESSES_CONFIRMED, /* where what the code does and what was called say the same */
  UNW_GUESSES_BOLD       /* and where it merely looks like a caller: frames may be missing, or wrong */
} unw_guesses_t;

typedef int unw_regnum_t;

/* A position on a stack. May be copied by assignment; copies are independent. */
typedef struct unw_cursor {
  unw_word_t opaque[UNW_TDEP_CURSOR_LEN];
}
#ifdef __GNUC__
__attribute__((__may_alias__))
#endif
unw_cursor_t;

typedef unw_tdep_context_t unw_context_t;
typedef unw_tdep_fpreg_t unw_fpreg_t;

typedef struct unw_addr_space* unw_addr_space_t;

#define UNW_PI_FLAG_FIRST_TDEP_BIT 16
#define UNW_PI_FLAG_DEBUG_FRAME 32 /* the information is from .debug_frame */

typedef struct unw_proc_info {
  unw_word_t start_ip; /* 0: unknown */
  unw_word_t end_ip;   /* first address behind; 0: unknown */
  unw_word_t lsda;     /* 0: none */
  unw_word_t handler;  /* personality routine; 0: none */
  unw_word_t gp;
  unw_word_t flags;
  int format; /* unw_dyn_info_format_t */
  int unwind_info_size;
  void* unwind_info;
  unw_tdep_proc_info_t extra;
} unw_proc_info_t;

typedef enum unw_save_loc_type {
  UNW_SLT_NONE,   /* computed: it has no place of its own */
  UNW_SLT_MEMORY, /* in memory at u.addr */
  UNW_SLT_REG     /* in register u.regnum of the innermost frame */
} unw_save_loc_type_t;

typedef struct unw_save_loc {
  unw_save_loc_type_t type;
  union {
    unw_word_t addr;
    unw_regnum_t regnum;
  } u;
  unw_tdep_save_loc_t extra;
} unw_save_loc_t;

/* How a target is looked at. The first argument is the address space, the last one what unw_init_remote was given,
   which the library never looks at. All but put_unwind_info return 0 or a negative unw_error_t, which reaches the
   caller of the library as it is. Members that may be null are said so. */
typedef struct unw_accessors {
  /* The procedure that covers ip, which of a frame that has called another is the address before its own. Without
     need_unwind_info format, unwind_info and unwind_info_size are not looked at; with it, unwind_info leads to the
     member of unw_dyn_info_t's union that belongs to the format, in host memory and byte order (of its size, or of
     unw_dyn_info_t's, then to all of that), and stays valid until put_unwind_info. -UNW_ENOINFO: nothing is known;
     -UNW_ESTOPUNWIND: the walk ends here. Null: nothing is known of any code. */
  int (*find_proc_info)(unw_addr_space_t, unw_word_t ip, unw_proc_info_t*, int need_unwind_info, void*);
  /* Once for each success with need_unwind_info. May be null. */
  void (*put_unwind_info)(unw_addr_space_t, unw_proc_info_t*, void*);
  /* Address of the target's unw_dyn_info_list_t; 0: it has none. May be null. */
  int (*get_dyn_info_list_addr)(unw_addr_space_t, unw_word_t* address, void*);
  /* An aligned word of the target's memory; *value is in host byte order. */
  int (*access_mem)(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void*);
  int (*access_reg)(unw_addr_space_t, unw_regnum_t, unw_word_t* value, int write, void*);
  /* May be null where the target has no floating-point registers that calls preserve. */
  int (*access_fpreg)(unw_addr_space_t, unw_regnum_t, unw_fpreg_t* value, int write, void*);
  /* Lets the target go on. Its state has been established by the other callbacks. May be null: unw_resume fails. */
  int (*resume)(unw_addr_space_t, unw_cursor_t*, void*);
  /* Name of a procedure that is not in the list of registered ones, NUL-terminated, and the distance of the address
     from its start. -UNW_ENOMEM: the name was cut to size - 1 bytes. May be null. */
  int (*get_proc_name)(unw_addr_space_t, unw_word_t address, char* buffer, size_t size, unw_word_t* offset, void*);
  /* These are newer than libunwind 1.6 and may be null. */
  int (*get_elf_filename)(unw_addr_space_t, unw_word_t, char* buffer, size_t size, unw_word_t* offset, void*);
  /* Where the procedure begins and ends (exclusive), of which find_proc_info knows nothing. -UNW_ENOINFO: unknown. */
  int (*get_proc_ip_range)(unw_addr_space_t, unw_word_t ip, unw_word_t* start, unw_word_t* end, void*);
  /* Bits of a return address that sign it. Asked before the first walk of the space, once, and only where the CPU signs
     addresses. Null: there all but the low 48. */
  unw_word_t (*ptrauth_insn_mask)(unw_addr_space_t, void*);
} unw_accessors_t;

#define unw_getcontext(uc) unw_tdep_getcontext(uc)
#define unw_is_fpreg(reg) unw_tdep_is_fpreg(reg)

#define unw_init_local UNW_OBJ(init_local)
#define unw_init_local2 UNW_OBJ(init_local2)
#define unw_step UNW_OBJ(step)
#define unw_set_guesses UNW_OBJ(set_guesses)
#define unw_is_guess UNW_OBJ(is_guess)
#define unw_get_reg UNW_OBJ(get_reg)
#define unw_get_fpreg UNW_OBJ(get_fpreg)
#define unw_set_reg UNW_OBJ(set_reg)
#define unw_set_fpreg UNW_OBJ(set_fpreg)
#define unw_resume UNW_OBJ(resume)
#define unw_get_save_loc UNW_OBJ(get_save_loc)
#define unw_is_signal_frame UNW_OBJ(is_signal_frame)
#define unw_is_interrupted_frame UNW_OBJ(is_interrupted_frame)
#define unw_is_plt_entry UNW_OBJ(is_plt_entry)
#define unw_get_proc_info UNW_OBJ(get_proc_info)
#define unw_get_proc_name UNW_OBJ(get_proc_name)
#define unw_local_addr_space UNW_OBJ(local_addr_space)
/* The structure of accessors has grown: the function of the name takes that of libunwind 1.6. */
#define unw_create_addr_space UNW_OBJ(create_addr_space2)
#define unw_destroy_addr_space UNW_OBJ(destroy_addr_space)
#define unw_init_remote UNW_OBJ(init_remote)
#define unw_set_caching_policy UNW_OBJ(set_caching_policy)
#define unw_set_cache_size UNW_OBJ(set_cache_size)
#define unw_get_proc_info_by_ip UNW_OBJ(get_proc_info_by_ip)
#define unw_get_proc_name_by_ip UNW_OBJ(get_proc_name_by_ip)
#define unw_get_proc_info_in_range UNW_OBJ(get_proc_info_in_range)
#define unw_set_iterate_phdr_function UNW_OBJ(set_iterate_phdr_function)
#define unw_get_elf_filename UNW_OBJ(get_elf_filename)
#define unw_get_elf_filename_by_ip UNW_OBJ(get_elf_filename_by_ip)
#define unw_reg_states_iterate UNW_OBJ(reg_states_iterate)
#define unw_apply_reg_state UNW_OBJ(apply_reg_state)
#define unw_get_accessors UNW_ARCH_OBJ(get_accessors)
#define unw_flush_cache UNW_ARCH_OBJ(flush_cache)
#define unw_regname UNW_ARCH_OBJ(regname)
#define unw_strerror UNW_ARCH_OBJ(strerror)

#ifdef __cplusplus
extern "C" {
#endif

/* How much each signal-safe function takes of the stack that it is called on: docs/contracts.md "Stack". */

/* The cursor is at the frame that called unw_getcontext. The context must stay valid and unchanged while the cursor or
   a copy is used. 0; -UNW_EINVAL: no context, or the library is for another machine's code. Signal-safe. */
extern int unw_init_local(unw_cursor_t* cursor, unw_context_t* context);

/* flag 0: as unw_init_local. UNW_INIT_SIGNAL_FRAME: the context is a signal handler's third argument, and the cursor is
   at the interrupted code. Other flags, or no context: -UNW_EINVAL. Signal-safe. */
extern int unw_init_local2(unw_cursor_t* cursor, unw_context_t* context, int flag);

/* To the caller. > 0: moved. 0: this is the outermost frame, now and at every further call. < 0: the caller cannot be
   told: -UNW_ENOINFO no unwind information, and no guess can be confirmed; -UNW_EINVALIDIP the caller would not be
   code; -UNW_EBADFRAME frames repeat or memory is unreadable, or what is wrong with the information; the cursor stays
   where it is. Memory that is taken away between two steps of one cursor is outside of this. Signal-safe. */
extern int unw_step(unw_cursor_t* cursor);

/* Not libunwind's. Which guesses unw_step goes on by from here, with this cursor and copies that are made of it; after
   unw_init_local and its relatives confirmed ones. 0, or -UNW_EINVAL: no such guesses. Signal-safe. */
extern int unw_set_guesses(unw_cursor_t* cursor, unw_guesses_t guesses);

/* Not libunwind's. > 0: what tells the caller of the cursor's frame is a guess. 0: it is not, or unw_step cannot tell
   it at all. Signal-safe. */
extern int unw_is_guess(unw_cursor_t* cursor);

/* Value of a register in the cursor's frame. -UNW_EBADREG: no such register, or no value, as scratch registers of
   calling frames. Signal-safe. */
extern int unw_get_reg(unw_cursor_t* cursor, unw_regnum_t reg, unw_word_t* value);

/* Likewise for floating-point registers. Signal-safe. */
extern int unw_get_fpreg(unw_cursor_t* cursor, unw_regnum_t reg, unw_fpreg_t* value);

/* Writes a register of the cursor's frame to where it is kept: a slot on the stack, which counts when the frame is
   returned to, or the context that the cursor was made from. SP and the exception registers have no such place: they
   are kept in the cursor. All of it counts for unw_resume. Exception registers (UNW_REG_EH + 0 ..) can be written in
   every frame, others where they have a value. -UNW_EBADREG: no such register, or no value. -UNW_EREADONLYREG: the CFA,
   or memory that cannot be written. Signal-safe. */
extern int unw_set_reg(unw_cursor_t* cursor, unw_regnum_t reg, unw_word_t value);

/* Likewise for floating-point registers, by value. Signal-safe. */
extern int unw_set_fpreg(unw_cursor_t* cursor, unw_regnum_t reg, unw_fpreg_t value);

/* Continues in the cursor's frame, which must be on the calling thread's stack and must not have returned. Does not
   return on success. Preserved registers are those of the frame; exception registers what was written; where a frame
   below was interrupted by a signal all registers, the floating-point state and the signal mask are as they were then.
   No personality routine is called. Where unw_set_reg has changed the IP, arguments that were pushed for the call that
   stands there are taken off (DW_CFA_GNU_args_size). -UNW_EINVALIDIP: the IP is not executable. -UNW_EBADFRAME: SP is
   unknown, not aligned or no memory. -UNW_EINVAL: the frame was interrupted, but not by the kernel. Signal-safe. */
extern int unw_resume(unw_cursor_t* cursor);

/* Where the register of this frame is kept. 0, or -UNW_EBADREG for numbers that are no register. Signal-safe. */
extern int unw_get_save_loc(unw_cursor_t* cursor, int reg, unw_save_loc_t* location);

/* > 0: the kernel's signal trampoline, whose caller was interrupted. 0: not. -UNW_ENOINFO: unknown code. Signal-safe.
 */
extern int unw_is_signal_frame(unw_cursor_t* cursor);

/* > 0: the frame was interrupted, by a signal or where the walk began with unw_init_remote or UNW_INIT_SIGNAL_FRAME:
   its IP is that of the next instruction. 0: its IP is a return address, and the call is before it, unless the frame is
   the trampoline. Signal-safe. */
extern int unw_is_interrupted_frame(unw_cursor_t* cursor);

/* The procedure the cursor is in. 0, or -UNW_ENOINFO for code that nothing is known about (then all is 0).
   Signal-safe. */
extern int unw_get_proc_info(unw_cursor_t* cursor, unw_proc_info_t* info);

/* Its name, as it was registered or that of the symbol which covers the IP, NUL-terminated, and the distance of the
   cursor's IP from its start (offset may be NULL). Names of other code before it are none. -UNW_ENOMEM: the name was
   cut to size - 1 bytes. -UNW_ENOINFO: no name; the buffer holds "". Size 0 writes nothing. Signal-safe. */
extern int unw_get_proc_name(unw_cursor_t* cursor, char* buffer, size_t size, unw_word_t* offset);

/* Name of a register; "???" for other numbers. Signal-safe. */
extern const char* unw_regname(unw_regnum_t reg);

/* Text of an error as the functions return it (negative). "invalid error code" for other numbers. Signal-safe. */
extern const char* unw_strerror(int error);

/* > 0: the cursor is in a procedure linkage stub. 0: not. Signal-safe. */
extern int unw_is_plt_entry(unw_cursor_t* cursor);

/* This process. With unw_init_remote its argument is a unw_context_t. */
extern unw_addr_space_t unw_local_addr_space;

/* A target that is looked at through accessors, which are copied. byteorder: 0 for the target's own, __LITTLE_ENDIAN or
   __BIG_ENDIAN of <endian.h>. NULL: out of memory, no accessors, or a byte order that the target does not have.
   Thread-safe, not signal-safe. */
extern unw_addr_space_t unw_create_addr_space(unw_accessors_t* accessors, int byteorder);

/* The same for callers whose structure ends with get_proc_name, as that of libunwind 1.6 does. */
extern unw_addr_space_t UNW_OBJ(create_addr_space)(unw_accessors_t* accessors, int byteorder);

/* Releases all of it. No cursor of it may be used any more. The space of this process is left alone. Not thread-safe,
   not signal-safe. */
extern void unw_destroy_addr_space(unw_addr_space_t space);

/* Its accessors, valid as long as the space is. Signal-safe. */
extern unw_accessors_t* unw_get_accessors(unw_addr_space_t space);

/* The cursor is at the frame whose registers access_reg gives, and its IP is that of the next instruction. argument is
   handed to every callback. Errors are those of access_reg for IP and SP; -UNW_EINVAL: no space, or no access_reg.
   With unw_local_addr_space as unw_init_local. Signal-safe for that one. */
extern int unw_init_remote(unw_cursor_t* cursor, unw_addr_space_t space, void* argument);

/* What may be kept between walks: by default of this process what is known of its code, of others nothing. GLOBAL
   and PER_THREAD are the same here: the address of a target's list, until it is flushed. NONE flushes. No policy ever
   gives an answer that has become wrong. 0; -UNW_EINVAL: no such policy. Thread-safe, not signal-safe. */
extern int unw_set_caching_policy(unw_addr_space_t space, unw_caching_policy_t policy);

/* There is room for that many rows of this process, and for 8192; of other targets no rows are kept. It never becomes
   less. Also flushes. 0; -UNW_ENOMEM; -UNW_EINVAL: a flag. Thread-safe, not signal-safe. */
extern int unw_set_cache_size(unw_addr_space_t space, size_t size, int flag);

/* The procedure that covers ip, by a descriptor in one of the table formats whose data is in the target: for
   find_proc_info callbacks. With need_unwind_info unwind_info leads the library, and nobody else, to the entry; nothing
   is to be put back, and put_unwind_info gets a null one. -UNW_ENOINFO: the table has none; or an error of the table.
   Signal-safe for this process. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t* descriptor,
                                              unw_proc_info_t* info, int need_unwind_info, void* argument);

/* The procedure that covers ip, of code from start_ip to end_ip that has an .eh_frame_hdr at eh_frame_table in the
   target; its length, 0 where it is not known. The two of exidx are for ARM. need_unwind_info as above. -UNW_ENOINFO:
   it has none; -UNW_EBADVERSION, -UNW_EINVAL: what is wrong with it. Signal-safe for this process. */
extern int unw_get_proc_info_in_range(unw_word_t start_ip, unw_word_t end_ip, unw_word_t eh_frame_table,
                                      unw_word_t eh_frame_table_len, unw_word_t exidx_frame_table,
                                      unw_word_t exidx_frame_table_len, unw_addr_space_t space, unw_word_t ip,
                                      unw_proc_info_t* info, int need_unwind_info, void* argument);

/* Forgets what is kept of code from lo to hi; 0, 0: everything, and what was found readable of threads' stacks.
   Thread-safe, signal-safe. */
extern void unw_flush_cache(unw_addr_space_t space, unw_word_t lo, unw_word_t hi);

/* As unw_get_proc_info and unw_get_proc_name, for any code; argument as for unw_init_remote, NULL for this process.
   Signal-safe for this process. */
extern int unw_get_proc_info_by_ip(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, void* argument);
extern int unw_get_proc_name_by_ip(unw_addr_space_t space, unw_word_t ip, char* buffer, size_t size, unw_word_t* offset,
                                   void* argument);

/* Path of the file that the code was loaded from, NUL-terminated, and its address there, as addr2line wants it: that of
   the cursor's IP, or ip (offset may be NULL). -UNW_ENOMEM: the path was cut to size - 1 bytes. -UNW_ENOINFO: code of
   no file, such as what was made at run time; the buffer holds "". Size 0 writes nothing. Signal-safe for this process.
 */
extern int unw_get_elf_filename(unw_cursor_t* cursor, char* buffer, size_t size, unw_word_t* offset);
extern int unw_get_elf_filename_by_ip(unw_addr_space_t space, unw_word_t ip, char* buffer, size_t size,
                                      unw_word_t* offset, void* argument);

/* What dl_iterate_phdr is; its structure is in <link.h>. */
struct dl_phdr_info;
typedef int (*unw_iterate_phdr_callback_t)(struct dl_phdr_info* info, size_t size, void* data);
typedef int (*unw_iterate_phdr_func_t)(unw_iterate_phdr_callback_t callback, void* data);

/* The modules of this process are those that the function lists, which is asked at every step, in signal handlers too;
   no rows are kept meanwhile. NULL or dl_iterate_phdr: the dynamic linker's again. Of other targets nothing changes.
   Thread-safe, signal-safe for this process. */
extern void unw_set_iterate_phdr_function(unw_addr_space_t space, unw_iterate_phdr_func_t function);

/* Is called for one range of code after the other, which share how their caller is found; data says how. It may be
   copied and kept as long as the procedure is what it was. Not 0: no more of them. */
typedef int (*unw_reg_states_callback)(void* token, void* data, size_t size, unw_word_t start_ip, unw_word_t end_ip);

/* All ranges of the procedure that the cursor is in. What the callback returned, if that was not 0; else 0.
   -UNW_ENOINFO: unknown code; -UNW_EBADFRAME: more than a million ranges; or what is wrong with its unwind information.
   Signal-safe. */
extern int unw_reg_states_iterate(unw_cursor_t* cursor, unw_reg_states_callback callback, void* token);

/* To the caller as unw_step, by data of unw_reg_states_iterate for the range that the cursor's IP is in (of a frame
   that has called another, the address before), and without any lookup. 0, or a negative error; -UNW_EBADVERSION: no
   such data. Signal-safe. */
extern int unw_apply_reg_state(unw_cursor_t* cursor, void* data);

/* Return addresses of the calling function's stack, the caller's own first; how many were written. These two are of
   this machine and have no other names. Pages of the thread's own stack that were found readable once are read without
   a probe: a program that takes some away from under its frames says so by unw_flush_cache. Signal-safe. */
extern int unw_backtrace(void** addresses, int size);

/* The same from a context and with the flag of unw_init_local2; the first entry is the context's own IP. Without a
   context as unw_backtrace. Signal-safe. */
extern int unw_backtrace2(void** addresses, int size, unw_context_t* context, int flag);

#ifdef __cplusplus
}
#endif

#else
#error "a translation unit has one target: include one libunwind-<target>.h"
#endif
