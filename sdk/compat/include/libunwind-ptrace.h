/* Walking the stack of a process that the caller traces (ptrace(2)):

     unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
     void* target = _UPT_create(pid);
     unw_init_remote(&cursor, space, target);

   The process, or the thread whose number is given, has to be stopped by the caller during calls of functions that read
   it (PTRACE_TRACEME, PTRACE_ATTACH or PTRACE_SEIZE and PTRACE_INTERRUPT, then waitpid). It may run in between: cached
   data is then read anew. Only the tracing thread may call the functions. They take no locks; two threads may use two
   targets. Not signal-safe. */
#ifndef JITUNWIND_LIBUNWIND_PTRACE_H
#define JITUNWIND_LIBUNWIND_PTRACE_H

#include <sys/types.h>

#include <libunwind.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the last argument of all following functions. Does not read the process yet. NULL: memory is exhausted, or the
   number is not that of a process. */
extern void* _UPT_create(pid_t process);
/* NULL is allowed. The process is not changed. */
extern void _UPT_destroy(void* target);

/* The members of _UPT_accessors, which may also be called alone; unw_accessors_t describes their results. -UNW_EINVAL:
   the target is NULL; -UNW_EUNSPEC: the process is gone. */
extern int _UPT_find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int need_unwind_info,
                               void* target);
extern void _UPT_put_unwind_info(unw_addr_space_t space, unw_proc_info_t* info, void* target);
/* The first list of the target. _UPT_find_proc_info finds procedures of further lists. */
extern int _UPT_get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t* address, void* target);
/* -UNW_EINVAL: the memory is not mapped, or may not be written. */
extern int _UPT_access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t* value, int write, void* target);
/* -UNW_EBADREG: there is no such register, or it cannot be read. */
extern int _UPT_access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t* value, int write, void* target);
extern int _UPT_access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t* value, int write, void* target);
extern int _UPT_get_proc_name(unw_addr_space_t space, unw_word_t address, char* buffer, size_t size, unw_word_t* offset,
                              void* target);
extern int _UPT_get_elf_filename(unw_addr_space_t space, unw_word_t address, char* buffer, size_t size,
                                 unw_word_t* offset, void* target);
extern int _UPT_get_proc_ip_range(unw_addr_space_t space, unw_word_t ip, unw_word_t* start, unw_word_t* end,
                                  void* target);
/* Resumes by PTRACE_CONT without a signal. */
extern int _UPT_resume(unw_addr_space_t space, unw_cursor_t* cursor, void* target);
/* Bits of a return address that sign it. */
extern unw_word_t _UPT_ptrauth_insn_mask(unw_addr_space_t space, void* target);

extern unw_accessors_t _UPT_accessors;

#ifdef __cplusplus
}
#endif

#endif
