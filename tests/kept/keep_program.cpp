// Walks one stack twice in every way, and prints where each walk came past.
#include <jitunwind/jitunwind.h>

#include <dlfcn.h>
#include <libunwind.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "jitunwind/unwind_core/modules/local_modules.h"

namespace {

using jitunwind::Frame;

std::array<void*, 64> addresses;
volatile int sink;

/// Prints the offset in the file, which is the same in every run.
void print(const char* way, const void* pc) {
  Dl_info in{};
  if (::dladdr(pc, &in) == 0 || !in.dli_fname) return;
  const char* const slash = std::strrchr(in.dli_fname, '/');
  std::printf("%s %s+%zx\n", way, slash ? slash + 1 : in.dli_fname,
              static_cast<std::size_t>(static_cast<const char*>(pc) - static_cast<const char*>(in.dli_fbase)));
}

void print(const char* way, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) print(way, addresses[i]);
}

struct Noted {
  const char* name;
  ~Noted() { std::printf("passed %s\n", name); }
};

[[gnu::noinline]] void walk() {
  for (const Frame& frame : jitunwind::walk_here()) {
    print("step", reinterpret_cast<const void*>(frame.pc()));
    std::printf("origin %s\n", jitunwind::origin_name(frame.origin()));
  }
  print("backtrace", jitunwind::backtrace(addresses));
  const int found = unw_backtrace(addresses.data(), static_cast<int>(addresses.size()));
  print("unw_backtrace", static_cast<std::size_t>(found));
  if (sink >= 0) throw 7;
}

[[gnu::noinline]] void descend(int depth) {
  const Noted noted{depth % 2 == 0 ? "even" : "odd"};
  if (depth == 0)
    walk();
  else
    descend(depth - 1);
  sink = depth;
}

/// Asks three times for the module of a function, in a library that can be unloaded; other modules are never asked
/// about.
[[gnu::noinline]] void find_module(const char* path) {
  void* const library = ::dlopen(path, RTLD_NOW);
  const auto at = reinterpret_cast<std::uintptr_t>(library ? ::dlsym(library, "room_call") : nullptr);
  const std::uint64_t before = jitunwind::statistics().modules.misses;
  jitunwind::Module module;
  int found = 0;
  for (int i = 0; i < 3; ++i) found += jitunwind::local_modules().find(at, module) ? 1 : 0;
  std::printf("module found %d times\n", found);
  std::fprintf(stderr, "modules read %d times\n", static_cast<int>(jitunwind::statistics().modules.misses - before));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 1;
  std::fprintf(stderr, "keeps %s\n", jitunwind::local_space().row_cache ? "rows" : "nothing");
  find_module(arguments[1]);
  for (int i = 0; i < 3; ++i) {
    try {
      descend(12);
    } catch (int thrown) {
      std::printf("caught %d\n", thrown);
    }
  }
  return 0;
}
