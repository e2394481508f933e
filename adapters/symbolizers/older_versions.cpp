// The versions of dladdr() and dladdr1() that programs import which were linked with glibc before 2.34. They are the
// same functions. clang 14 does not know the attribute symver.
#include <dlfcn.h>

extern "C" {
int jitunwind_older_dladdr(const void* address, Dl_info* info) noexcept { return dladdr(address, info); }
int jitunwind_older_dladdr1(const void* address, Dl_info* info, void** extra, int flags) noexcept {
  return dladdr1(address, info, extra, flags);
}
}

asm(".symver jitunwind_older_dladdr, dladdr@" DLADDR_VERSION);
asm(".symver jitunwind_older_dladdr1, dladdr1@" DLADDR1_VERSION);
