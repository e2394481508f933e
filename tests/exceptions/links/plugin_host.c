/* Loads the library that it is given, for itself, and runs it, with what else it is given. As a plugin (FUNCTION is
   run_through) it does so for another. What can be bound at its first call is. */
#include <dlfcn.h>
#include <stdio.h>

#ifndef FUNCTION
#define FUNCTION main
#endif
int FUNCTION(int argc, char** argv);

int FUNCTION(int argc, char** argv) {
  void* const plugin = argc > 1 ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) : NULL;
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  int (*const run)(int, char**) = (int (*)(int, char**))dlsym(plugin, "run_through");
  return run != NULL ? run(argc - 1, argv + 1) : 2;
}
