// Calls that are forwarded to the next definition, in a program with a static libgcc: there is no next definition
// before libgcc_s is loaded. Frames that were reported before are not known to libgcc_s, which must not be asked to
// remove them: it aborts then.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>

#include "tests/listen/throws/thrown_through.h"

namespace {

constexpr std::uint64_t k_page = 4096;
constexpr std::uint64_t k_nowhere = 0x5'0000'0000;  // which nobody executes

/// A catch-all area of a page, as LuaJIT registers it.
struct Area : ToldFrames {
  explicit Area(std::uint64_t code) : ToldFrames(0x1234, code, k_page) {}
};

}  // namespace

int main() {
  static const Area early(k_nowhere), late(k_nowhere + k_page);
  __register_frame(&early);
  void* const libgcc = ::dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
  if (libgcc == nullptr) return 2;
  auto* const function_at = reinterpret_cast<void* (*)(void*)>(::dlsym(libgcc, "_Unwind_FindEnclosingFunction"));
  const auto knows = [&](const Area& area) { return function_at(reinterpret_cast<void*>(area.begin + 16)) != nullptr; };
  __register_frame(&late);
  std::printf("early %s, late %s\n", knows(early) ? "known" : "unknown", knows(late) ? "known" : "unknown");
  __deregister_frame(&early);
  __deregister_frame(&late);
  std::printf("late %s\n", knows(late) ? "known" : "gone");
  return 0;
}
