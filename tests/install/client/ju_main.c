#include <jitunwind/c.h>
#include <stdio.h>
#include <string.h>

int innermost(int n);
int middle(int n);

static int print_frame(const ju_cursor* cursor, void* context) {
  char name[100];
  (void)context;
  if (ju_frame_demangled_name(cursor, name, sizeof name, NULL) == JU_OK) printf("%s\n", name);
  return 0;
}

__attribute__((noinline)) int innermost(int n) { return ju_walk_here(print_frame, NULL, NULL) == JU_OK ? n : -1; }
__attribute__((noinline)) int middle(int n) { return innermost(n + 1) + 1; }

/* Describes a frame, too. A program that only walks checks nothing of it. */
static int describes(void) {
  ju_builder* builder = NULL;
  ju_description* description = NULL;
  char rows[200];
  if (ju_describe(JU_CPU_HOST, "f", &builder, NULL) != JU_OK) return 0;
  ju_allocate(builder, 0, 4, 24);
  ju_deallocate(builder, -5, -1, 24);
  if (ju_build(builder, &description, NULL) != JU_OK) return 0;
  if (ju_description_rows(description, 16, rows, sizeof rows, NULL) != JU_OK) return 0;
  ju_description_free(description);
  ju_builder_free(builder);
  return strstr(rows, "+4: cfa=rsp+32") != NULL;
}

int main(void) {
#if defined(__cplusplus) && (__cplusplus > 201703L || defined(__EXCEPTIONS) || defined(__GXX_RTTI))
#error "C++17 without exceptions and type information was asked for"
#endif
  if (ju_check_version(JITUNWIND_VERSION, NULL) != JU_OK || !describes()) return 1;
  return middle(0) == 2 ? 0 : 1;
}
