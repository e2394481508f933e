#include "jitunwind/adapters/system_unwinder/find_fde/loaded_handles_p.h"

#include <dlfcn.h>

// A static program has none of these.
#pragma weak dlsym
#pragma weak dladdr
#pragma weak dlclose

namespace jitunwind {

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

}  // namespace jitunwind
