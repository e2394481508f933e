/* Loads the library that is its first argument and runs the library's run_through() with the others. The library's
   symbols stay private, and are bound lazily. If FUNCTION is run_through, the file is itself a plugin of a host. */
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
