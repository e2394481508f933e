#include "adapters/eh/other_runtimes_p.h"

#include <dlfcn.h>
#include <link.h>

namespace jitunwind::eh {
namespace {

/// The object whose memory `at` is in, as a handle for dlsym; null for the stack and the heap. In glibc a handle is the
/// object's link map (dlfcn.h, dladdr1 RTLD_DL_LINKMAP, gives the same).
void* object_at(Addr at) noexcept {
  Dl_info info;
  link_map* map = nullptr;
  if (::dladdr1(reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)), &info, reinterpret_cast<void**>(&map),
                RTLD_DL_LINKMAP) == 0)
    return nullptr;
  return map;
}

}  // namespace

/// pthread_cancel loads libgcc_s where no search from here finds it; it is loaded for good
/// (nptl/unwind-forcedunwind.c).
void* other_function(const char* name) noexcept {
  if (void* const libgcc = ::dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
    void* const found = ::dlsym(libgcc, name);
    ::dlclose(libgcc);
    if (found) return found;
  }
  return ::dlsym(RTLD_NEXT, name);
}

void* function_of_owner(const _Unwind_Context* context, const char* name) noexcept {
  // libgcc: where a register was saved, on the stack, or null. LLVM, nongnu: a pointer into the library itself.
  const Addr first = *reinterpret_cast<const Addr*>(context);
  if (void* const owner = first == 0 ? nullptr : object_at(first))
    if (void* const found = ::dlsym(owner, name)) return found;
  return other_function(name);
}

bool find_fde_of_others(Addr at, ForeignFde& out) noexcept {
  // libgcc, unwind-dw2-fde.h: struct dwarf_eh_bases.
  struct Bases {
    void* text;
    void* data;
    void* function;
  } bases{};
  const auto find = reinterpret_cast<const void* (*)(void*, Bases*)>(other_function("_Unwind_Find_FDE"));
  const void* const fde = find ? find(reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)), &bases) : nullptr;
  const auto address = [](const void* p) { return Addr{reinterpret_cast<std::uintptr_t>(p)}; };
  out = {address(fde), address(bases.text), address(bases.data)};
  return fde != nullptr;
}

}  // namespace jitunwind::eh
