#include <jitunwind/jitunwind.h>

extern "C" int middle(int n);

// A row travels through text and back: the library itself, not only its headers.
int main() {
  jitunwind::ExpressionPool pool;
  const auto row = jitunwind::parse_row("cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]", jitunwind::arch::x86_64, pool);
  if (jitunwind_version() != JITUNWIND_VERSION) return 1;
  if (!row || jitunwind::to_text(row->row, jitunwind::arch::x86_64) != "cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]") return 1;
  return middle(1) == 2 ? 0 : 1;
}
