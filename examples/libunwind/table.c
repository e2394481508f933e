/* A find_proc_info callback that leaves the search to the library, as profilers do: it gives the place of a module's
   table. */
#define _GNU_SOURCE
#include <libunwind.h>

#include <link.h>
#include <stdio.h>
#include <string.h>

struct module {
  unw_word_t begin, end, header;
};

/* The program itself, which dl_iterate_phdr lists first. */
static int describe(struct dl_phdr_info* info, size_t size, void* data) {
  struct module* const module = data;
  int i;
  (void)size;
  for (i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const header = &info->dlpi_phdr[i];
    const unw_word_t at = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) module->header = at;
    if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
    module->begin = at;
    module->end = at + header->p_memsz;
  }
  return 1;
}

/* .eh_frame_hdr: version, three encodings, address of .eh_frame, number of pairs, the pairs (LSB, 10.6.2). */
static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t* info, int need, void* argument) {
  struct module module = {0, 0, 0};
  unw_dyn_info_t table;
  unsigned pairs;
  dl_iterate_phdr(describe, &module);
  if (ip < module.begin || ip >= module.end) return -UNW_ENOINFO;
  memset(&table, 0, sizeof table);
  memcpy(&pairs, (const char*)module.header + 8, sizeof pairs);
  table.start_ip = module.begin;
  table.end_ip = module.end;
  table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
  table.u.rti.segbase = module.header;
  table.u.rti.table_data = module.header + 12;
  table.u.rti.table_len = pairs; /* words: a pair is one */
  return UNW_OBJ(dwarf_search_unwind_table)(space, ip, &table, info, need, argument);
}

__attribute__((noinline)) static int show(unw_addr_space_t space) {
  unw_context_t context;
  unw_cursor_t cursor;
  int frames = 1;
  unw_getcontext(&context);
  if (unw_init_remote(&cursor, space, &context) != 0) return 0;
  while (unw_step(&cursor) > 0) ++frames;
  return frames;
}

int main(void) {
  unw_accessors_t accessors = *unw_get_accessors(unw_local_addr_space);
  unw_addr_space_t space;
  int frames;
  accessors.find_proc_info = find_proc_info;
  space = unw_create_addr_space(&accessors, 0);
  if (!space) return 1;
  frames = show(space);
  /* show and main; then the C library, which has no table here */
  printf("%d frames by the program's own table\n", frames);
  unw_destroy_addr_space(space);
  return frames >= 3 ? 0 : 1;
}
