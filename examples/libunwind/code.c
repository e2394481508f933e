/* Facts about code, on a stack or not. */
#define _GNU_SOURCE
#include <libunwind.h>

#include <link.h>
#include <stdio.h>

static int times;

/* Lists the objects of the dynamic linker, and counts its calls. */
static int list_and_count(unw_iterate_phdr_callback_t callback, void* data) {
  ++times;
  return dl_iterate_phdr(callback, data);
}

static int show_caller(void) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_proc_info_t info;
  char file[256];
  unw_word_t offset;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  if (unw_step(&cursor) <= 0 || unw_get_proc_info(&cursor, &info) != 0) return 1;
  printf("from %lx to %lx, personality %lx\n", (unsigned long)info.start_ip, (unsigned long)info.end_ip,
         (unsigned long)info.handler);
  if (unw_get_elf_filename(&cursor, file, sizeof file, &offset) != 0) return 1;
  printf("addr2line -e %s %lx\n", file, (unsigned long)offset);
  return unw_is_plt_entry(&cursor);
}

static int show_address(unw_word_t ip) {
  unw_proc_info_t info;
  char text[256];
  unw_word_t offset;
  if (unw_get_proc_info_by_ip(unw_local_addr_space, ip, &info, 0) != 0) return 1;
  printf("a procedure of %lu bytes\n", (unsigned long)(info.end_ip - info.start_ip));
  if (unw_get_proc_name_by_ip(unw_local_addr_space, ip, text, sizeof text, &offset, 0) != 0) return 1;
  printf("%s+%lx\n", text, (unsigned long)offset);
  if (unw_get_elf_filename_by_ip(unw_local_addr_space, ip, text, sizeof text, &offset, 0) != 0) return 1;
  printf("in %s at %lx\n", text, (unsigned long)offset);
  return 0;
}

/* The .eh_frame_hdr of the program itself, for programs that load files by hand. */
static int find_header(struct dl_phdr_info* info, size_t size, void* data) {
  unw_word_t* const header = data;
  int i;
  (void)size;
  for (i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) *header = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
  return 1; /* the program is the first */
}

static int show_by_header(unw_word_t ip) {
  unw_word_t header = 0;
  unw_proc_info_t info;
  dl_iterate_phdr(find_header, &header);
  if (unw_get_proc_info_in_range(ip, ip + 1, header, 0, 0, 0, unw_local_addr_space, ip, &info, 0, 0) != 0) return 1;
  printf("by .eh_frame_hdr: from %lx\n", (unsigned long)info.start_ip);
  return 0;
}

int main(void) {
  const unw_word_t ip = (unw_word_t)&show_caller;
  if (show_caller() || show_address(ip) || show_by_header(ip)) return 1;
  unw_set_iterate_phdr_function(unw_local_addr_space, list_and_count);
  if (show_caller()) return 1;
  unw_set_iterate_phdr_function(unw_local_addr_space, 0);
  printf("asked %d times\n", times);
  return times > 0 ? 0 : 1;
}
