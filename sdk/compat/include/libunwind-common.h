/* The target-independent part of the libunwind interface. Included by libunwind-<target>.h, never alone. Values, type
   sizes and names are those of libunwind 1.6 (C interface of nongnu.org/libunwind), so that programs written for it
   compile unchanged.

   Every function may be used by several threads at once; a cursor belongs to one thread at a time. A cursor that was
   never initialised is refused with -UNW_EINVAL if it is all zeros; any other contents are taken for a cursor. */
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

/* Functions of a target are called _U<target>_name; functions that walk have a second name, _UL<target>_name, for
   programs that define UNW_LOCAL_ONLY. Both names have one implementation. */
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

/* An addition to libunwind: the guesses by which unw_step continues if no source knows a frame's caller. */
typedef enum {
  UNW_GUESSES_CONFIRMED, /* guesses that the code and the call confirm */
  UNW_GUESSES_BOLD       /* also words that merely look like a caller: frames may be missing, or wrong */
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
  UNW_SLT_NONE,   /* computed: it has no place */
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

/* Access to a target. The first argument is the address space, the last one the argument of unw_init_remote, which the
   library never reads. All but put_unwind_info return 0 or a negative unw_error_t, which reaches the caller of the
   library unchanged. Comments name the members that may be null. */
typedef struct unw_accessors {
  /* Finds the procedure that covers ip; for a frame that has called another, ip is the address before its own. format,
     unwind_info and unwind_info_size are read only with need_unwind_info; unwind_info then points to the member of
     unw_dyn_info_t's union that belongs to the format, in host memory and byte order. The size is that of the member;
     if it is that of unw_dyn_info_t, unwind_info points to a whole one. It stays valid until put_unwind_info.
     -UNW_ENOINFO: the code is unknown; -UNW_ESTOPUNWIND: the walk ends here. Null: all code is unknown. */
  int (*find_proc_info)(unw_addr_space_t, unw_word_t ip, unw_proc_info_t*, int need_unwind_info, void*);
  /* Called once for each success with need_unwind_info. May be null. */
  void (*put_unwind_info)(unw_addr_space_t, unw_proc_info_t*, void*);
  /* Address of the target's unw_dyn_info_list_t; 0: it has none. May be null. */
  int (*get_dyn_info_list_addr)(unw_addr_space_t, unw_word_t* address, void*);
  /* An aligned word of the target's memory; *value is in host byte order. */
  int (*access_mem)(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void*);
  int (*access_reg)(unw_addr_space_t, unw_regnum_t, unw_word_t* value, int write, void*);
  /* May be null where the target has no floating-point registers that calls preserve. */
  int (*access_fpreg)(unw_addr_space_t, unw_regnum_t, unw_fpreg_t* value, int write, void*);
  /* Lets the target run on. The other callbacks have written its state before. May be null: unw_resume then fails. */
  int (*resume)(unw_addr_space_t, unw_cursor_t*, void*);
  /* Name of a procedure that is not in the list of registered ones, NUL-terminated, and the distance of the address
     from its start. -UNW_ENOMEM: the name was cut to size - 1 bytes. May be null. */
  int (*get_proc_name)(unw_addr_space_t, unw_word_t address, char* buffer, size_t size, unw_word_t* offset, void*);
  /* The following members are newer than libunwind 1.6 and may be null. */
  int (*get_elf_filename)(unw_addr_space_t, unw_word_t, char* buffer, size_t size, unw_word_t* offset, void*);
  /* Begin and end (exclusive) of a procedure that find_proc_info does not know. -UNW_ENOINFO: unknown. */
  int (*get_proc_ip_range)(unw_addr_space_t, unw_word_t ip, unw_word_t* start, unw_word_t* end, void*);
  /* Bits of a return address that sign it. Called once, before the first walk of the space, and only if the CPU signs
     addresses. Null: all but the low 48 bits sign. */
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
/* The structure of accessors has grown: the function of this name takes libunwind 1.6's structure. */
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

/* docs/contracts.md "Stack" has the stack use of each signal-safe function. */

/* Sets the cursor to the frame that called unw_getcontext. The context must stay valid and unchanged while the cursor
   or a copy is used. Returns 0; -UNW_EINVAL: there is no context, or the library is for another machine's code.
   Signal-safe. */
extern int unw_init_local(unw_cursor_t* cursor, unw_context_t* context);

/* A variant with a flag: 0 is unw_init_local. If it is UNW_INIT_SIGNAL_FRAME, the context is a signal handler's third
   argument, and the cursor is at the interrupted code. Other flags, or no context: -UNW_EINVAL. Signal-safe. */
extern int unw_init_local2(unw_cursor_t* cursor, unw_context_t* context, int flag);

/* Moves the cursor to the caller. > 0: it has moved. 0: this is the outermost frame, now and at every further call. <
   0: the caller is not known, and the cursor stays at its frame. -UNW_ENOINFO: there is no unwind information, and no
   guess can be confirmed; -UNW_EINVALIDIP: the caller would not be code; -UNW_EBADFRAME: frames repeat or memory is
   unreadable; other errors name the fault of the information. Memory that is unmapped between two steps of one cursor
   is not covered. Signal-safe. */
extern int unw_step(unw_cursor_t* cursor);

/* An addition to libunwind. Sets the guesses by which unw_step continues from here, with this cursor and later copies
   of it; after unw_init_local and similar functions these are confirmed ones. Returns 0, or -UNW_EINVAL: there are no
   such guesses. Signal-safe. */
extern int unw_set_guesses(unw_cursor_t* cursor, unw_guesses_t guesses);

/* An addition to libunwind. > 0: the caller of the cursor's frame is found by a guess. 0: it is not, or unw_step cannot
   find it at all. Signal-safe. */
extern int unw_is_guess(unw_cursor_t* cursor);

/* Gets the value of a register in the cursor's frame. -UNW_EBADREG: there is no such register, or it has no value, like
   scratch registers of calling frames. Signal-safe. */
extern int unw_get_reg(unw_cursor_t* cursor, unw_regnum_t reg, unw_word_t* value);

/* unw_get_reg for floating-point registers. Signal-safe. */
extern int unw_get_fpreg(unw_cursor_t* cursor, unw_regnum_t reg, unw_fpreg_t* value);

/* Writes a register of the cursor's frame to its place: a slot on the stack, which takes effect when the frame is
   returned to, or the context that the cursor was made from. SP and the exception registers have no such place: they
   are kept in the cursor. unw_resume uses all of them. Exception registers (UNW_REG_EH + 0 ..) can be written in every
   frame, others if they have a value. -UNW_EBADREG: there is no such register, or it has no value. -UNW_EREADONLYREG:
   it is the CFA, or its memory cannot be written. Signal-safe. */
extern int unw_set_reg(unw_cursor_t* cursor, unw_regnum_t reg, unw_word_t value);

/* unw_set_reg for floating-point registers, by value. Signal-safe. */
extern int unw_set_fpreg(unw_cursor_t* cursor, unw_regnum_t reg, unw_fpreg_t value);

/* Continues in the cursor's frame, which must be on the calling thread's stack and must not have returned. Does not
   return on success. Preserved registers are those of the frame; exception registers have the written values. If a
   signal interrupted a frame below, all registers, the floating-point state and the signal mask are those of that
   moment. No personality routine is called. If unw_set_reg has changed the IP, arguments that were pushed for the call
   at that IP are removed (DW_CFA_GNU_args_size). -UNW_EINVALIDIP: the IP is not executable. -UNW_EBADFRAME: SP is
   unknown, not aligned or no memory. -UNW_EINVAL: the frame was interrupted, but not by the kernel. Signal-safe. */
extern int unw_resume(unw_cursor_t* cursor);

/* Gets the place of this frame's register. Returns 0, or -UNW_EBADREG for numbers that are no register. Signal-safe. */
extern int unw_get_save_loc(unw_cursor_t* cursor, int reg, unw_save_loc_t* location);

/* > 0: the frame is the kernel's signal trampoline, whose caller was interrupted. 0: it is not. -UNW_ENOINFO: the code
   is unknown. Signal-safe. */
extern int unw_is_signal_frame(unw_cursor_t* cursor);

/* > 0: the frame was interrupted, by a signal or at the begin of a walk with unw_init_remote or UNW_INIT_SIGNAL_FRAME:
   its IP is that of the next instruction. 0: its IP is a return address, and the call is before it, unless the frame is
   the trampoline. Signal-safe. */
extern int unw_is_interrupted_frame(unw_cursor_t* cursor);

/* Gets the procedure of the cursor's IP. Returns 0, or -UNW_ENOINFO for unknown code (then all members are 0).
   Signal-safe. */
extern int unw_get_proc_info(unw_cursor_t* cursor, unw_proc_info_t* info);

/* Gets its name, the registered one or that of the symbol that covers the IP, NUL-terminated. offset gets the distance
   of the cursor's IP from its start, and may be NULL. Names of other code before it are not used. -UNW_ENOMEM: the name
   was cut to size - 1 bytes. -UNW_ENOINFO: there is no name; the buffer holds "". Size 0 writes nothing. Signal-safe.
 */
extern int unw_get_proc_name(unw_cursor_t* cursor, char* buffer, size_t size, unw_word_t* offset);

/* Name of a register; "???" for other numbers. Signal-safe. */
extern const char* unw_regname(unw_regnum_t reg);

/* Text of an error that a function has returned (negative); "invalid error code" for other numbers. Signal-safe. */
extern const char* unw_strerror(int error);

/* > 0: the cursor is in a procedure linkage stub. 0: it is not. Signal-safe. */
extern int unw_is_plt_entry(unw_cursor_t* cursor);

/* The space of this process. Its argument of unw_init_remote is a unw_context_t. */
extern unw_addr_space_t unw_local_addr_space;

/* Makes a space for a target that is read through accessors, which are copied. byteorder is 0 for the target's own,
   __LITTLE_ENDIAN or __BIG_ENDIAN of <endian.h>. NULL: memory is exhausted, there are no accessors, or the target does
   not have the byte order. Thread-safe, not signal-safe. */
extern unw_addr_space_t unw_create_addr_space(unw_accessors_t* accessors, int byteorder);

/* A variant for callers whose structure ends with get_proc_name, like that of libunwind 1.6. */
extern unw_addr_space_t UNW_OBJ(create_addr_space)(unw_accessors_t* accessors, int byteorder);

/* Frees the space. Its cursors may not be used any more. The space of this process is not changed. Not thread-safe, not
   signal-safe. */
extern void unw_destroy_addr_space(unw_addr_space_t space);

/* The accessors of the space, valid as long as the space. Signal-safe. */
extern unw_accessors_t* unw_get_accessors(unw_addr_space_t space);

/* Sets the cursor to the frame whose registers access_reg gives; its IP is that of the next instruction. argument is
   passed to every callback. Errors are those of access_reg for IP and SP; -UNW_EINVAL: there is no space, or no
   access_reg. It works for unw_local_addr_space like unw_init_local. Signal-safe for that space. */
extern int unw_init_remote(unw_cursor_t* cursor, unw_addr_space_t space, void* argument);

/* Sets the data that is cached between walks: by default this process's code is cached, and nothing of other targets.
   GLOBAL and PER_THREAD are the same here: they cache the address of a target's list, until it is flushed. NONE
   flushes. No policy ever gives a stale answer. Returns 0; -UNW_EINVAL: there is no such policy. Thread-safe, not
   signal-safe. */
extern int unw_set_caching_policy(unw_addr_space_t space, unw_caching_policy_t policy);

/* Makes room for that many cached rows of this process, at least 8192; no rows of other targets are cached. The room
   never shrinks. Cached data is flushed. Returns 0; -UNW_ENOMEM; -UNW_EINVAL: a flag was given. Thread-safe, not
   signal-safe. */
extern int unw_set_cache_size(unw_addr_space_t space, size_t size, int flag);

/* Finds the procedure that covers ip, by a descriptor in one of the table formats whose data is in the target: for
   find_proc_info callbacks. If need_unwind_info is set, unwind_info leads to the entry, which only the library can use.
   Nothing has to be freed, and put_unwind_info gets a null one. -UNW_ENOINFO: the table has no such procedure; other
   errors are those of the table. Signal-safe for this process. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t* descriptor,
                                              unw_proc_info_t* info, int need_unwind_info, void* argument);

/* Finds the procedure that covers ip, in code from start_ip to end_ip with an .eh_frame_hdr at eh_frame_table in the
   target; eh_frame_table_len is 0 if it is not known. The two exidx arguments are for ARM. need_unwind_info works as
   above. -UNW_ENOINFO: there is none; -UNW_EBADVERSION, -UNW_EINVAL: the table is wrong. Signal-safe for this process.
 */
extern int unw_get_proc_info_in_range(unw_word_t start_ip, unw_word_t end_ip, unw_word_t eh_frame_table,
                                      unw_word_t eh_frame_table_len, unw_word_t exidx_frame_table,
                                      unw_word_t exidx_frame_table_len, unw_addr_space_t space, unw_word_t ip,
                                      unw_proc_info_t* info, int need_unwind_info, void* argument);

/* Flushes cached data of code from lo to hi; with 0, 0 all of it, and the known bounds of threads' stacks. Thread-safe,
   signal-safe. */
extern void unw_flush_cache(unw_addr_space_t space, unw_word_t lo, unw_word_t hi);

/* Variants of unw_get_proc_info and unw_get_proc_name for any code; argument is that of unw_init_remote, NULL for this
   process. Signal-safe for this process. */
extern int unw_get_proc_info_by_ip(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, void* argument);
extern int unw_get_proc_name_by_ip(unw_addr_space_t space, unw_word_t ip, char* buffer, size_t size, unw_word_t* offset,
                                   void* argument);

/* Gets the path of the file of the cursor's IP, or of ip, NUL-terminated, and the address in that file in addr2line's
   form (offset may be NULL). -UNW_ENOMEM: the path was cut to size - 1 bytes. -UNW_ENOINFO: the code is of no file, for
   example made at run time; the buffer holds "". Size 0 writes nothing. Signal-safe for this process. */
extern int unw_get_elf_filename(unw_cursor_t* cursor, char* buffer, size_t size, unw_word_t* offset);
extern int unw_get_elf_filename_by_ip(unw_addr_space_t space, unw_word_t ip, char* buffer, size_t size,
                                      unw_word_t* offset, void* argument);

/* The type of dl_iterate_phdr; its structure is in <link.h>. */
struct dl_phdr_info;
typedef int (*unw_iterate_phdr_callback_t)(struct dl_phdr_info* info, size_t size, void* data);
typedef int (*unw_iterate_phdr_func_t)(unw_iterate_phdr_callback_t callback, void* data);

/* Makes the function list the modules of this process. It is called at every step, in signal handlers too; no rows are
   cached meanwhile. NULL or dl_iterate_phdr restores the dynamic linker's list. Other targets are not changed.
   Thread-safe, signal-safe for this process. */
extern void unw_set_iterate_phdr_function(unw_addr_space_t space, unw_iterate_phdr_func_t function);

/* Called for one range of code after the other; within a range the caller is found in one way, which data describes.
   data may be copied and kept as long as the procedure is unchanged. A result other than 0 ends the iteration. */
typedef int (*unw_reg_states_callback)(void* token, void* data, size_t size, unw_word_t start_ip, unw_word_t end_ip);

/* Iterates over all ranges of the cursor's procedure. Returns the callback's result if that was not 0; else 0.
   -UNW_ENOINFO: the code is unknown; -UNW_EBADFRAME: there are more than a million ranges; other errors are those of
   its unwind information. Signal-safe. */
extern int unw_reg_states_iterate(unw_cursor_t* cursor, unw_reg_states_callback callback, void* token);

/* Moves the cursor to the caller like unw_step, by data of unw_reg_states_iterate for the range of the cursor's IP, and
   without any lookup. The range of a frame that has called another is that of the address before its IP. Returns 0, or
   a negative error; -UNW_EBADVERSION: the data has another format. Signal-safe. */
extern int unw_apply_reg_state(unw_cursor_t* cursor, void* data);

/* Writes the return addresses of the calling function's stack, the caller's own first, and returns their number. This
   function and the next one are for this machine and have no other names. Pages of the thread's own stack that were
   found readable once are read without a probe: a program that removes pages under its frames has to call
   unw_flush_cache. Signal-safe. */
extern int unw_backtrace(void** addresses, int size);

/* A variant that starts at a context, with the flag of unw_init_local2; the first entry is the context's own IP. If
   there is no context, it works like unw_backtrace. Signal-safe. */
extern int unw_backtrace2(void** addresses, int size, unw_context_t* context, int flag);

#ifdef __cplusplus
}
#endif

#else
#error "a translation unit has one target: include one libunwind-<target>.h"
#endif
