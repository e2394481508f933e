/* Another library with the header's table. Compiled with VERSION: the newest version of the header that it serves. Its
   table has a function more than this header knows. */
#define JITUNWIND_JIT_OFF
#include <jitunwind_jit.h>

static int announce(const ju_jit_code* code, ju_jit_known** known, ju_jit_error* error) {
  (void)error;
  if (known != NULL) *known = (ju_jit_known*)(uintptr_t)code->start;
  return 0;
}
static int take_back(ju_jit_known* known, ju_jit_error* error) { return (void)known, (void)error, 0; }
static int forget(ju_jit_frame* frame) { return (void)frame, 0; }
static const char* text(int code) { return code == 0 ? "no error" : "an error"; }

static const struct {
  ju_jit_table known_today;
  int (*more)(void);
} table = {{sizeof table, 20000, announce, take_back, forget, NULL, NULL, NULL, text}, NULL};

__attribute__((visibility("default"))) const ju_jit_table* ju_jit_functions(unsigned version);
const ju_jit_table* ju_jit_functions(unsigned version) { return version <= VERSION ? &table.known_today : NULL; }
