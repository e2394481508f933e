/* Allocates below a few frames of its own. */
#include <stdlib.h>

static void* volatile kept;

__attribute__((noinline)) void allocate_deep(int depth) {
  if (depth > 0) {
    allocate_deep(depth - 1);
    kept = kept; /* no tail call */
    return;
  }
  kept = malloc(123456);
}
__attribute__((noinline)) void middle(void) {
  allocate_deep(5);
  kept = kept;
}
int main(void) {
  int i;
  for (i = 0; i < 100; ++i) {
    middle();
    free(kept);
  }
  return 0;
}
