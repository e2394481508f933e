/* Allocates memory below a few frames of its own, and with an argument also below a frame of code made at run time. */
#include <stdlib.h>

#include "made_frame.h"

static void* volatile kept, * volatile also_kept;

__attribute__((noinline)) void allocate_deep(int depth) {
  if (depth > 0) {
    allocate_deep(depth - 1);
    kept = kept; /* no tail call */
    return;
  }
  /* Whatever the heap has already, one of them asks the kernel. */
  kept = malloc(123456);
  if (also_kept == NULL) also_kept = malloc(123456);
}
__attribute__((noinline)) void middle(void) {
  allocate_deep(5);
  kept = kept;
}
int main(int argc, char** argv) {
  int i;
  (void)argv;
  make_frame();
  for (i = 0; i < 100; ++i) {
    if (argc > 1)
      made(middle);
    else
      middle();
    free(kept);
  }
  return 0;
}
