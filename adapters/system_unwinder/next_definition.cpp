#include "adapters/system_unwinder/next_definition_p.h"

#include <dlfcn.h>

#include "sdk/local_space.h"
#include "unwind_core/errno_keeper_p.h"
#include "unwind_core/sources/sources.h"

// A static program has none of these, and no next definition.
#pragma weak dlsym
#pragma weak dladdr
#pragma weak dlclose

namespace jitunwind {
namespace {

constexpr const char* k_name = "_Unwind_Find_FDE";

/// A handle to a module that is loaded, which thereby stays so; null: none. Linkers warn of any mention of dlopen in a
/// static program.
void* open_loaded(const char* name) noexcept {
  const auto open = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_DEFAULT, "dlopen"));
  return open ? open(name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

/// The same by an address in it.
void* module_of(const void* at) noexcept {
  Dl_info info;
  if (at == nullptr || &dladdr == nullptr || dladdr(at, &info) == 0) return nullptr;
  return open_loaded(info.dli_fname);
}

}  // namespace

FindFde* NextDefinition::usable(void* definition) const noexcept {
  auto* const found = reinterpret_cast<FindFde*>(definition);
  return found == own_ ? nullptr : found;
}

/// By search order; where ours is the last one, or the run-time library came late and for itself, in the module that
/// asked, or in libgcc_s.
FindFde* NextDefinition::search() const noexcept {
  if (&dlsym == nullptr) return nullptr;
  if (FindFde* const next = usable(dlsym(RTLD_NEXT, k_name))) return next;
  if (void* const asking = module_of(caller_.load(std::memory_order_relaxed))) {
    if (FindFde* const next = usable(dlsym(asking, k_name))) return next;
    dlclose(asking);
  }
  void* const run_time = open_loaded("libgcc_s.so.1");
  return run_time ? usable(dlsym(run_time, k_name)) : nullptr;
}

void NextDefinition::resolve() noexcept {
  if (known()) return;
  const ErrnoKeeper keep_errno;
  next_.store(search(), std::memory_order_release);
  caller_.store(nullptr, std::memory_order_relaxed);
}

const void* NextDefinition::find_static(void* pc, EhBases* bases, const void* caller) noexcept {
  caller_.store(caller, std::memory_order_relaxed);
  const ErrnoKeeper keep_errno;
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(address_of(pc)), window);
  ProcedureInfo procedure;
  const Found found = eh_frame_source().find_procedure(lookup, procedure);
  if (!found || !*found) return nullptr;
  *bases = {nullptr, nullptr, pointer_to(procedure.range.begin)};
  return pointer_to(procedure.unwind_info);
}

}  // namespace jitunwind
