/* Code made at run time: described by directives, registered, walked through, cancelled. x86-64. */
#define _GNU_SOURCE
#include <libunwind-dynamic.h>
#include <libunwind.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char* const name_of_code = "made_at_run_time";
static int seen;

static void walk(void) {
  unw_context_t context;
  unw_cursor_t cursor;
  char name[64];
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
  do {
    if (unw_get_proc_name(&cursor, name, sizeof name, 0) != 0) continue;
    printf("%s\n", name);
    if (strcmp(name, name_of_code) == 0) seen = 1;
  } while (unw_step(&cursor) > 0);
}

/* push rbx; call rdi; pop rbx; ret */
static const unsigned char code[] = {0x53, 0xff, 0xd7, 0x5b, 0xc3};

static unw_dyn_region_info_t* describe(void) {
  unw_dyn_region_info_t* const region = malloc(_U_dyn_region_size(4));
  region->next = 0;
  region->insn_count = sizeof code; /* on x86-64 in bytes */
  region->op_count = 4;
  _U_dyn_op_add(&region->op[0], _U_QP_TRUE, 0, UNW_X86_64_RSP, (unw_word_t)-8); /* the push, at byte 0 */
  _U_dyn_op_spill_sp_rel(&region->op[1], _U_QP_TRUE, 0, UNW_X86_64_RBX, 0);
  _U_dyn_op_pop_frames(&region->op[2], _U_QP_TRUE, 3, 1); /* the pop, at byte 3 */
  _U_dyn_op_stop(&region->op[3]);
  return region;
}

int main(void) {
  static unw_dyn_info_t info;
  unw_dyn_info_list_t* list;
  void* const at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(at, code, sizeof code);
  info.start_ip = (unw_word_t)at;
  info.end_ip = info.start_ip + sizeof code;
  info.format = UNW_INFO_FORMAT_DYNAMIC;
  info.u.pi.name_ptr = (unw_word_t)name_of_code;
  info.u.pi.regions = describe();

  _U_dyn_register(&info);
  list = (unw_dyn_info_list_t*)_U_dyn_info_list_addr();
  if (list->first != &info) return 1;
  ((void (*)(void (*)(void)))at)(walk);
  _U_dyn_cancel(&info); /* from here on nobody reads it, and it may be freed */

  free(info.u.pi.regions);
  munmap(at, 4096);
  return seen ? 0 : 1;
}
