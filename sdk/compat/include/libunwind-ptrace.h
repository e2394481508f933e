/* Walking the stack of a process that the caller traces (ptrace(2)):

     unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
     void* target = _UPT_create(pid);
     unw_init_remote(&cursor, space, target);

   The process, or the thread whose number is given, is stopped by the caller (PTRACE_TRACEME, PTRACE_ATTACH or
   PTRACE_SEIZE and PTRACE_INTERRUPT, then waitpid) while functions are called that look at it. It may run in between:
   what was known of it is looked at anew after that. Every function is for the thread that traces, for one
   target at a time without locks; two targets may be looked at by two threads. Not signal-safe. */
#ifndef JITUNWIND_LIBUNWIND_PTRACE_H
#define JITUNWIND_LIBUNWIND_PTRACE_H

#include <sys/types.h>

#include <libunwind.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The last argument of all that follows. Looks at nothing yet. NULL: out of memory, or no number of a process. */
extern void* _UPT_create(pid_t process);
/* NULL is allowed. The process stays as it is. */
extern void _UPT_destroy(void* target);

/* The members of _UPT_accessors, which may also be called alone; what each returns is said at unw_accessors_t.
   -UNW_EINVAL where the target is NULL; -UNW_EUNSPEC where the process is gone. */
extern int _UPT_find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int need_unwind_info,
                               void* target);
extern void _UPT_put_unwind_info(unw_addr_space_t space, unw_proc_info_t* info, void* target);
/* The first list of the target. Procedures of further ones are found by _UPT_find_proc_info. */
extern int _UPT_get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t* address, void* target);
/* -UNW_EINVAL: the memory is not there, or may not be written. */
extern int _UPT_access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t* value, int write, void* target);
/* -UNW_EBADREG: no such register, or none that can be read. */
extern int _UPT_access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t* value, int write, void* target);
extern int _UPT_access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t* value, int write, void* target);
extern int _UPT_get_proc_name(unw_addr_space_t space, unw_word_t address, char* buffer, size_t size, unw_word_t* offset,
                              void* target);
extern int _UPT_get_elf_filename(unw_addr_space_t space, unw_word_t address, char* buffer, size_t size,
                                 unw_word_t* offset, void* target);
extern int _UPT_get_proc_ip_range(unw_addr_space_t space, unw_word_t ip, unw_word_t* start, unw_word_t* end,
                                  void* target);
/* PTRACE_CONT without a signal. */
extern int _UPT_resume(unw_addr_space_t space, unw_cursor_t* cursor, void* target);
/* Bits of a return address that sign it. */
extern unw_word_t _UPT_ptrauth_insn_mask(unw_addr_space_t space, void* target);

extern unw_accessors_t _UPT_accessors;

#ifdef __cplusplus
}
#endif

#endif
