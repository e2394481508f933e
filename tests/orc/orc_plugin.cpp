// A library with its own copy of our library, whose code LLVM makes.
#include "tests/orc/orc_jit.h"

namespace {
std::unique_ptr<jitunwind::test::OrcJit> g_jit;
}

/// Links `assembly` and returns one of its functions; null removes everything.
extern "C" [[gnu::visibility("default")]] void* plugin_link(const char* assembly, const char* symbol) {
  g_jit.reset();
  if (!assembly) return nullptr;
  g_jit = std::make_unique<jitunwind::test::OrcJit>();
  g_jit->add(assembly);
  return g_jit->find<void*>(symbol);
}

extern "C" [[gnu::visibility("default")]] std::size_t plugin_registered() { return jitunwind::test::registered(); }

/// Returns the name of this copy's procedure that called it.
extern "C" [[gnu::visibility("default")]] const char* plugin_caller() {
  return jitunwind::test::innermost_jit_name.c_str();
}
extern "C" [[gnu::visibility("default")]] long plugin_names_caller(long x) { return jitunwind::test::names_caller(x); }
