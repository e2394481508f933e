/* Walking the stacks of a core file (core(5)), the kernel's or gcore's, whole or cut off anywhere:

     struct UCD_info* core = _UCD_create("core");
     unw_addr_space_t space = unw_create_addr_space(&_UCD_accessors, 0);
     _UCD_select_thread(core, 0);
     unw_init_remote(&cursor, space, core);

   What the core does not hold of the target's code is read from the files that were mapped, if they have the build ids
   that the core has of them. Every function is for one core at a time without locks; two may be looked at by two
   threads. Not signal-safe. */
#ifndef JITUNWIND_LIBUNWIND_COREDUMP_H
#define JITUNWIND_LIBUNWIND_COREDUMP_H

#include <sys/types.h>

#include <libunwind.h>

#ifdef __cplusplus
extern "C" {
#endif

struct UCD_info;

/* The first thread, which the core was made for, is selected. NULL: the file cannot be read, is no core file, is cut
   off before its first registers, or is of another CPU; or out of memory. */
extern struct UCD_info* _UCD_create(const char* filename);
/* NULL is allowed. */
extern void _UCD_destroy(struct UCD_info* core);

extern int _UCD_get_num_threads(struct UCD_info* core);
/* Threads are numbered from 0 on. A number that no thread has changes nothing. */
extern void _UCD_select_thread(struct UCD_info* core, int number);
/* Of the selected thread: its number in the kernel, and the signal that it was ended by, 0: none. */
extern pid_t _UCD_get_pid(struct UCD_info* core);
extern int _UCD_get_cursig(struct UCD_info* core);

/* What the core does not hold of the mapping at an address, or of the segment whose number is given (its index among
   the program headers of the core), is in that file. 0, or -1: nothing is mapped there, it has no such segment, or the
   file cannot be read. */
extern int _UCD_add_backing_file_at_vaddr(struct UCD_info* core, unsigned long address, const char* filename);
extern int _UCD_add_backing_file_at_segment(struct UCD_info* core, int segment, const char* filename);

/* The members of _UCD_accessors, which may also be called alone; what each returns is said at unw_accessors_t. The last
   argument is the struct UCD_info; -UNW_EINVAL where it is NULL. */
extern int _UCD_find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int need_unwind_info,
                               void* core);
extern void _UCD_put_unwind_info(unw_addr_space_t space, unw_proc_info_t* info, void* core);
/* The first list of the target. Procedures of further ones are found by _UCD_find_proc_info. */
extern int _UCD_get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t* address, void* core);
/* -UNW_EINVAL: it is not in the core, nor in a file; or it was to be written, which a core cannot. */
extern int _UCD_access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t* value, int write, void* core);
/* -UNW_EBADREG: no such register, or its value is not known. -UNW_EINVAL: it was to be written. */
extern int _UCD_access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t* value, int write, void* core);
extern int _UCD_access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t* value, int write, void* core);
extern int _UCD_get_proc_name(unw_addr_space_t space, unw_word_t address, char* buffer, size_t size, unw_word_t* offset,
                              void* core);
extern int _UCD_get_elf_filename(unw_addr_space_t space, unw_word_t address, char* buffer, size_t size,
                                 unw_word_t* offset, void* core);
extern int _UCD_get_proc_ip_range(unw_addr_space_t space, unw_word_t ip, unw_word_t* start, unw_word_t* end,
                                  void* core);
/* -UNW_EINVAL: what is dead does not go on. */
extern int _UCD_resume(unw_addr_space_t space, unw_cursor_t* cursor, void* core);
extern unw_word_t _UCD_ptrauth_insn_mask(unw_addr_space_t space, void* core);

extern unw_accessors_t _UCD_accessors;

#ifdef __cplusplus
}
#endif

#endif
