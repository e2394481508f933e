/* A program in C of the core alone, which shows code to debuggers. */
#include <jitunwind/sdk/c/process.h>
#include <jitunwind/sdk/c/walk.h>
#include <stdio.h>

int innermost(int n);
int middle(int n);

static int print_frame(const ju_cursor* cursor, void* context) {
  char name[100];
  (void)context;
  if (ju_frame_name(cursor, name, sizeof name, NULL) == JU_OK) printf("%s\n", name);
  return 0;
}

__attribute__((noinline)) int innermost(int n) { return ju_walk_here(print_frame, NULL, NULL) == JU_OK ? n : -1; }
__attribute__((noinline)) int middle(int n) { return innermost(n + 1) + 1; }

int main(void) {
  ju_error error = {.struct_size = sizeof error};
  ju_gdb_statistics statistics = {.struct_size = sizeof statistics};
  if (ju_attach_gdb(&error) != JU_OK) return printf("%s\n", error.text), 1;
  if (ju_gdb_statistics_get(&statistics, &error) != JU_OK || !statistics.attached) return 1;
  return middle(0) == 2 ? 0 : 1;
}
