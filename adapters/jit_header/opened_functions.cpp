// Headers of JITs find ju_jit_functions() in a library that needs the core alone, and that a program may have been
// started with: libjitunwind-listen. libjitunwind has the functions, and needs the C++ run-time library. It is opened
// when the first header asks, so that programs without such a JIT are started without it.
//
// The core is in the process already, so that libjitunwind and the library that has this object have one registry. If a
// program opens that library late, announcements that wait in its JITs go on waiting: libjitunwind looks for them when
// it is loaded, and until a header asks it is not.
#include <dlfcn.h>
#include <unistd.h>

#include "jitunwind/adapters/jit_header/include/jitunwind_jit.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

constexpr const char* k_library = "libjitunwind.so.1";
constexpr const char* k_function = "ju_jit_functions";

/// Null: the library is not in the folder of this one, nor in those that the dynamic linker searches. The linker says
/// so once for each object with a header, whose calls end there from then on.
ju_jit_functions_t* find_functions() noexcept {
  void* const library = ::dlopen(k_library, RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library != nullptr ? ::dlsym(library, k_function) : nullptr;
  if (symbol != nullptr) return reinterpret_cast<ju_jit_functions_t*>(symbol);
  const char* const why = ::dlerror();
  Line line;
  line.text("jitunwind: ").text(k_library).text(" has the functions for JITs, and cannot be opened: ");
  line.foreign(why != nullptr ? why : "").write_to(STDERR_FILENO);
  return nullptr;
}

}  // namespace
}  // namespace jitunwind

/// Not signal-safe, as the search of the header that calls it: jitunwind_jit.h.
extern "C" __attribute__((visibility("default"))) const ju_jit_table* ju_jit_functions(unsigned version) {
  ju_jit_functions_t* const functions = jitunwind::find_functions();
  return functions != nullptr ? functions(version) : nullptr;
}
