// Writes docs/targets/*.md from the tables of unwind_core/arch. A test compares them.
#include <cstdio>
#include <fstream>

#include "tests/directives/cpu_page.h"

int main() {
  bool written = true;
  const auto write = [&](const jitunwind::Arch& arch, const char* identifier) {
    std::ofstream page(jitunwind::test::cpu_page_path(arch));
    page << jitunwind::test::cpu_page(arch, identifier);
    written &= page.good();
  };
#define JITUNWIND_ARCH(identifier) write(jitunwind::arch::identifier, #identifier);
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
  if (!written) std::fprintf(stderr, "write_cpu_pages: not written\n");
  return written ? 0 : 1;
}
