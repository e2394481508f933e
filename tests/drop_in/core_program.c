/* Prints the stack in a core file by libunwind-coredump.so.0, whose functions are declared as in libunwind 1.6. */
#include <stdio.h>

#include "release_1_6.h"

extern char _UCD_accessors[];
void* _UCD_create(const char* core);
void _UCD_select_thread(void* core, int number);
void _UCD_destroy(void* core);
void* _Ux86_64_create_addr_space(void* accessors, int byteorder);
void _Ux86_64_destroy_addr_space(void* space);
int _Ux86_64_init_remote(cursor_t* cursor, void* space, void* argument);
int _Ux86_64_step(cursor_t* cursor);
int _Ux86_64_get_proc_name(cursor_t* cursor, char* buffer, size_t size, uint64_t* offset);

int main(int argc, char** argv) {
  void* const core = argc > 1 ? _UCD_create(argv[1]) : 0;
  void* const space = _Ux86_64_create_addr_space(_UCD_accessors, 0);
  cursor_t cursor;
  if (!core || !space) return 2;
  _UCD_select_thread(core, 0);
  if (_Ux86_64_init_remote(&cursor, space, core) != 0) return 3;
  do {
    char name[64] = "?";
    uint64_t offset = 0;
    _Ux86_64_get_proc_name(&cursor, name, sizeof name, &offset);
    printf("%s\n", name);
  } while (_Ux86_64_step(&cursor) > 0);
  _Ux86_64_destroy_addr_space(space);
  _UCD_destroy(core);
  return 0;
}
