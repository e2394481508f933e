// Answers of the C library and of libgcc about an address, without this library.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind::test {

inline void* as_pointer(Addr at) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }

/// Null: none.
inline const char* symbol_at(Addr at) {
  Dl_info info{};
  return ::dladdr(as_pointer(at), &info) != 0 ? info.dli_sname : nullptr;
}

/// The search of libgcc_s itself, whichever definition the process's calls reach.
class LibgccSearch {
 public:
  /// The begin of the function that covers the address; 0: none.
  Addr operator()(Addr at) const {
    Bases bases{};
    return find_(as_pointer(at), &bases) == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(bases.function);
  }
  /// The FDE that covers the address.
  const std::byte* fde(Addr at) const {
    Bases bases{};
    return static_cast<const std::byte*>(find_(as_pointer(at), &bases));
  }

 private:
  struct Bases {
    void* text;
    void* data;
    void* function;
  };
  const void* (*find_)(void*, Bases*) = reinterpret_cast<const void* (*)(void*, Bases*)>(
      ::dlsym(::dlopen("libgcc_s.so.1", RTLD_NOW), "_Unwind_Find_FDE"));
};

}  // namespace jitunwind::test
