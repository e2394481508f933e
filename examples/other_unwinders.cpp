#include "examples/other_unwinders.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <ucontext.h>

#include <array>
#include <cstdio>

namespace examples {
namespace {

std::string frames_text(std::size_t count, const char* end) {
  std::array<char, 96> text;
  std::snprintf(text.data(), text.size(), "%zu frames, %s", count, end);
  return text.data();
}

[[gnu::noinline]] OtherWalk walk_with_glibc() {
  OtherWalk walk{"backtrace()", true, {}, {}};
  std::array<void*, 256> addresses;
  const int count = ::backtrace(addresses.data(), static_cast<int>(addresses.size()));
  for (int i = 2; i < count; ++i)
    walk.pcs.insert(reinterpret_cast<jitunwind::Addr>(addresses[static_cast<std::size_t>(i)]));
  walk.said = frames_text(walk.pcs.size(), "through JIT code because libgcc_s asks jitunwind about it");
  return walk;
}

/// nongnu libunwind, through its shared library, so that its names stay apart from this library's.
[[gnu::noinline]] OtherWalk walk_with_libunwind() {
  OtherWalk walk{"libunwind", false, {}, "not installed (Debian: libunwind8)"};
  void* library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  if (!library) return walk;
  const auto getcontext_ = reinterpret_cast<int (*)(void*)>(dlsym(library, "_Ux86_64_getcontext"));
  const auto init = reinterpret_cast<int (*)(void*, void*)>(dlsym(library, "_ULx86_64_init_local"));
  const auto step = reinterpret_cast<int (*)(void*)>(dlsym(library, "_ULx86_64_step"));
  const auto get = reinterpret_cast<int (*)(void*, int, unsigned long*)>(dlsym(library, "_ULx86_64_get_reg"));
  if (!getcontext_ || !init || !step || !get) return walk;
  walk.present = true;
  ucontext_t context{};
  std::array<unsigned long, 127> cursor{};  // unw_cursor_t
  getcontext_(&context);
  init(cursor.data(), &context);
  int moved = step(cursor.data());  // out of this function
  while (moved > 0 && walk.pcs.size() < 256 && (moved = step(cursor.data())) > 0) {
    unsigned long pc = 0;
    get(cursor.data(), 16, &pc);
    walk.pcs.insert(pc);
  }
  walk.said = frames_text(walk.pcs.size(), moved == 0 ? "\"end of the stack\", it says" : "then an error");
  return walk;
}

}  // namespace

[[gnu::noinline]] std::vector<OtherWalk> walk_with_others() {
  std::vector<OtherWalk> walks;
  walks.push_back(walk_with_glibc());
  walks.push_back(walk_with_libunwind());
  return walks;
}

}  // namespace examples
