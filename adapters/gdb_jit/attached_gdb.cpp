// The functions by which programs attach GDB. The core opens libjitunwind-gdb for the first of them, so that each
// libjitunwind on that core has the same adapter.
#include <dlfcn.h>

#include <atomic>

#include "jitunwind/adapters/gdb_jit/gdb_functions_p.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/sdk/c/answer_internal.h"

namespace jitunwind {

#ifdef JITUNWIND_CORE
#pragma weak dlopen

static constinit std::atomic<const GdbFunctions*> functions_of_gdb{nullptr};
static const GdbFunctions* gdb() noexcept { return functions_of_gdb.load(std::memory_order_acquire); }

void gdb_comes(const GdbFunctions& functions) noexcept { functions_of_gdb = &functions; }

/// Local, so that its __jit_debug_descriptor does not take the place of LLVM's.
void open_gdb() noexcept {
  if (gdb() == nullptr && &dlopen != nullptr) (void)::dlopen("libjitunwind-gdb.so.1", RTLD_NOW | RTLD_LOCAL);
}
#else
static const GdbFunctions* gdb() noexcept { return jitunwind_gdb_functions(); }
void gdb_comes(const GdbFunctions&) noexcept {}
void open_gdb() noexcept {}
#endif

static constexpr Error k_not_there{ErrorCode::io, 0, "libjitunwind-gdb is not there, or has another libjitunwind-core"};

static Status call(Status (*GdbFunctions::*function)() noexcept) noexcept {
  if (WritingScope::active()) return refused_to_interrupter();
  const WritingScope writing;
  if (gdb() != nullptr) return (gdb()->*function)();
  if (function == &GdbFunctions::attach) return k_not_there;
  return Done{};
}

const char* attach_gdb_in_writer() noexcept {
  return gdb() != nullptr ? gdb()->attach_by_environment() : k_not_there.what;
}

Status attach_gdb() noexcept {
  open_gdb();
  return call(&GdbFunctions::attach);
}
Status detach_gdb() noexcept { return call(&GdbFunctions::detach); }
Status flush_gdb() noexcept { return call(&GdbFunctions::flush); }

GdbStatistics gdb_statistics() noexcept {
  if (WritingScope::active() || gdb() == nullptr) return {};
  const WritingScope writing;
  return gdb()->statistics();
}

}  // namespace jitunwind

// Debuggers in the C interface; sdk/c/process.h.

using jitunwind::gdb;
using jitunwind::c::tell;

static ju_status answer(ju_error* error, jitunwind::Status (*work)() noexcept) {
  return jitunwind::c::answer(error, [&] { return tell(error, work()); });
}

ju_status ju_attach_gdb(ju_error* error) { return answer(error, jitunwind::attach_gdb); }
ju_status ju_detach_gdb(ju_error* error) { return answer(error, jitunwind::detach_gdb); }
ju_status ju_flush_gdb(ju_error* error) { return answer(error, jitunwind::flush_gdb); }

ju_status ju_gdb_statistics_get(ju_gdb_statistics* statistics, ju_error* error) {
  jitunwind::open_gdb();
  return gdb() ? gdb()->statistics_get(statistics, error) : tell(error, jitunwind::k_not_there);
}
