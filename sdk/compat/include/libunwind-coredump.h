/* Walking the stacks of a core file (core(5)), the kernel's or gcore's, whole or cut off anywhere:

     struct UCD_info* core = _UCD_create("core");
     unw_addr_space_t space = unw_create_addr_space(&_UCD_accessors, 0);
     _UCD_select_thread(core, 0);
     unw_init_remote(&cursor, space, core);

   Code that the core does not hold is read from the files that were mapped, if they have the core's build ids.
   Functions take no locks and may be called for one core by one thread at a time; two threads may use two cores. Not
   signal-safe. */
#ifndef JITUNWIND_LIBUNWIND_COREDUMP_H
#define JITUNWIND_LIBUNWIND_COREDUMP_H

#include <sys/types.h>

#include <libunwind.h>

#ifdef __cplusplus
extern "C" {
#endif

struct UCD_info;

/* Opens a core and selects the first thread, for which the core was made. NULL: the file cannot be read, is no core
   file, is cut off before its first registers, or is of another CPU; or memory is exhausted. */
extern struct UCD_info* _UCD_create(const char* filename);
/* NULL is allowed. */
extern void _UCD_destroy(struct UCD_info* core);

extern int _UCD_get_num_threads(struct UCD_info* core);
/* Selects a thread. Threads are numbered from 0; other numbers change nothing. */
extern void _UCD_select_thread(struct UCD_info* core, int number);
/* The selected thread's number in the kernel, and the signal that ended it; 0: none. */
extern pid_t _UCD_get_pid(struct UCD_info* core);
extern int _UCD_get_cursig(struct UCD_info* core);

/* Names the file with the missing contents of the mapping at an address, or of a segment, by its index among the
   program headers of the core. Returns 0, or -1: nothing is mapped there, there is no such segment, or the file cannot
   be read. */
extern int _UCD_add_backing_file_at_vaddr(struct UCD_info* core, unsigned long address, const char* filename);
extern int _UCD_add_backing_file_at_segment(struct UCD_info* core, int segment, const char* filename);

/* The members of _UCD_accessors, which may also be called alone; unw_accessors_t describes their results. The last
   argument is the struct UCD_info; -UNW_EINVAL: it is NULL. */
extern int _UCD_find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int need_unwind_info,
                               void* core);
extern void _UCD_put_unwind_info(unw_addr_space_t space, unw_proc_info_t* info, void* core);
/* The first list of the target. _UCD_find_proc_info finds procedures of further lists. */
extern int _UCD_get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t* address, void* core);
/* -UNW_EINVAL: the word is neither in the core nor in a file; or a write was requested, which a core does not allow. */
extern int _UCD_access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t* value, int write, void* core);
/* -UNW_EBADREG: there is no such register, or its value is not known. -UNW_EINVAL: a write was requested. */
extern int _UCD_access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t* value, int write, void* core);
extern int _UCD_access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t* value, int write, void* core);
extern int _UCD_get_proc_name(unw_addr_space_t space, unw_word_t address, char* buffer, size_t size, unw_word_t* offset,
                              void* core);
extern int _UCD_get_elf_filename(unw_addr_space_t space, unw_word_t address, char* buffer, size_t size,
                                 unw_word_t* offset, void* core);
extern int _UCD_get_proc_ip_range(unw_addr_space_t space, unw_word_t ip, unw_word_t* start, unw_word_t* end,
                                  void* core);
/* Always -UNW_EINVAL: a dead process cannot resume. */
extern int _UCD_resume(unw_addr_space_t space, unw_cursor_t* cursor, void* core);
extern unw_word_t _UCD_ptrauth_insn_mask(unw_addr_space_t space, void* core);

extern unw_accessors_t _UCD_accessors;

#ifdef __cplusplus
}
#endif

#endif
