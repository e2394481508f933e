// Publishes the functions of an arena in files that stay, and ends. Other programs open them as libraries.
//   PROGRAM FUNCTIONS SHAPES     prints a line for each: path, offset in the file
// The files are in $JITUNWIND_CODE_DIR.
#include <dlfcn.h>
#include <jitunwind/code_segments.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/describe.h"
#include "bench/jit_arena.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  ::setenv("JITUNWIND_CODE_FILES", "keep", 1);
  const bench::JitArena arena(std::strtoul(argv[1], nullptr, 10), 32, std::strtoul(argv[2], nullptr, 10));
  jitunwind::CodeSegments segments;
  for (const bench::JitFunction& function : arena.functions()) {
    const auto room = segments.allocate(function.size).value();
    std::memcpy(room.writable.data(), function.code, function.size);
    segments.commit(bench::describe(function, "jit"), {.start = room.start, .size = function.size}).value();
    Dl_info info{};
    auto* const start = reinterpret_cast<const char*>(static_cast<std::uintptr_t>(room.start));
    if (::dladdr(start, &info) == 0) return 1;
    std::printf("%s %td\n", info.dli_fname, start - static_cast<const char*>(info.dli_fbase));
  }
  return segments.seal() ? 0 : 1;
}
