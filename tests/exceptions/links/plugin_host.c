/* Loads the library that it is given, for itself, and runs it. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* const plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (plugin == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  int (*const run)(int, char**) = (int (*)(int, char**))dlsym(plugin, "run_through");
  return run != NULL ? run(1, argv) : 2;
}
