/* A program with a list of registered procedures that no note leads to, as a program with another libunwind has it. If
   the path of a library with such a list is given, it uses that list. It prints where the list begins, and stands
   still. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#ifdef WITH_LIST
struct {
  uint32_t version, generation;
  void* first;
} _U_dyn_info_list LIST_VISIBILITY = {1, 2, 0};

void* where_the_list_is(void);
void* where_the_list_is(void) { return &_U_dyn_info_list; }
#endif

#ifndef IS_LIBRARY
int main(int argc, char** argv) {
#ifdef WITH_LIST
  void* const list = where_the_list_is();
  (void)argc, (void)argv;
#else
  void* const library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
  void* (*where)(void) = 0;
  void* list;
  if (!library) return 1;
  *(void**)&where = dlsym(library, "where_the_list_is");
  if (!where) return 1;
  list = where();
#endif
  printf("%p\n", list);
  fflush(stdout);
  for (;;) pause();
}
#endif
