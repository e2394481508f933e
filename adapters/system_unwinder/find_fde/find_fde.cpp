// libgcc_s looks this name up in the process for every frame of every throw and every backtrace(). The first definition
// in search order is used: this one, for registered procedures. Two forms serve a static libgcc. The definition is
// weak, so that libgcc's own one, if it is linked as well (its object has __register_frame, too), takes precedence
// instead of colliding. A static libgcc calls __wrap__Unwind_Find_FDE under -Wl,--wrap=_Unwind_Find_FDE, whatever else
// is linked.
#include "jitunwind/adapters/system_unwinder/find_fde/next_definition_p.h"

#include <dlfcn.h>
#include <link.h>

#include <string_view>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/sources/sources.h"

// A static program has none of these, and no next definition.
#pragma weak dlsym
#pragma weak dladdr
#pragma weak dlclose

using jitunwind::EhBases;
using jitunwind::FindFde;

extern "C" {
// The exported name may lead to another definition, also from here.
[[gnu::visibility("hidden")]] FindFde jitunwind_find_fde;
[[gnu::visibility("default"), gnu::weak, gnu::alias("jitunwind_find_fde")]] FindFde _Unwind_Find_FDE;
[[gnu::visibility("default")]] FindFde __wrap__Unwind_Find_FDE;
[[gnu::weak]] FindFde __real__Unwind_Find_FDE;
[[gnu::weak]] void* _Unwind_FindEnclosingFunction(void* pc);
}

namespace jitunwind {
namespace {

constexpr const char* k_name = "_Unwind_Find_FDE";
/// The library that defines the name for everybody.
constexpr const char* k_run_time = "libgcc_s.so.1";

constinit NextDefinition next_definition(&jitunwind_find_fde);

[[gnu::hot]] int is_run_time(dl_phdr_info* info, std::size_t, void*) noexcept {
  const std::string_view path(info->dlpi_name ? info->dlpi_name : "");
  return int{path.substr(path.rfind('/') + 1) == k_run_time};
}

/// The name may be called before anything is registered, and constructors may register and throw. A search would
/// allocate and read the dynamic linker's list of files if no unwinder is loaded, not even for some libraries alone.
[[gnu::constructor(101)]] void resolve_at_load() {
  if (&_Unwind_FindEnclosingFunction != nullptr || ::dl_iterate_phdr(&is_run_time, nullptr) != 0)
    next_definition.resolve();
}

}  // namespace

NextDefinition& next_find_fde() noexcept { return next_definition; }

void* open_loaded(const char* name) noexcept {
  if (&dlsym == nullptr) return nullptr;
  // Linkers warn of any mention of dlopen in a static program.
  const auto open = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_DEFAULT, "dlopen"));
  return open ? open(name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

void* open_loaded_at(const void* at) noexcept {
  Dl_info info;
  if (at == nullptr || &dladdr == nullptr || dladdr(at, &info) == 0) return nullptr;
  return open_loaded(info.dli_fname);
}

void close_handle(void* handle) noexcept { dlclose(handle); }

FindFde* NextDefinition::usable(void* definition) const noexcept {
  auto* const found = reinterpret_cast<FindFde*>(definition);
  return found == own_ ? nullptr : found;
}

/// Searches in search order first. This library's definition may be the last one, or the run-time library may have been
/// loaded late and locally; the module of the caller and libgcc_s are searched then.
FindFde* NextDefinition::search() const noexcept {
  if (&dlsym == nullptr) return nullptr;
  if (FindFde* const next = usable(dlsym(RTLD_NEXT, k_name))) return next;
  if (void* const asking = open_loaded_at(caller_.load(std::memory_order_relaxed))) {
    if (FindFde* const next = usable(dlsym(asking, k_name))) return next;
    close_handle(asking);
  }
  void* const run_time = open_loaded(k_run_time);
  return run_time ? usable(dlsym(run_time, k_name)) : nullptr;
}

[[gnu::hot]] void NextDefinition::resolve() noexcept {
  if (known()) return;
  const ErrnoKeeper keep_errno;
  next_.store(search(), std::memory_order_release);
  caller_.store(nullptr, std::memory_order_relaxed);
}

const void* NextDefinition::find_ours_first(void* pc, EhBases* bases, const void* caller) noexcept {
  return find_ours_or(pc, bases, [&] { return find(pc, bases, caller); });
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

extern "C" {

const void* jitunwind_find_fde(void* pc, EhBases* bases) noexcept {
  return jitunwind::next_definition.find_or_ours(pc, bases, __builtin_return_address(0));
}

const void* __wrap__Unwind_Find_FDE(void* pc, EhBases* bases) noexcept {
  const void* const caller = __builtin_return_address(0);
  return jitunwind::find_ours_or(pc, bases, [&] {
    FindFde* const real = &__real__Unwind_Find_FDE;
    // The wrapped name is this definition if libgcc's own is not linked.
    if (real != nullptr && real != &jitunwind_find_fde) return real(pc, bases);
    return jitunwind::next_definition.find(pc, bases, caller);
  });
}
}
