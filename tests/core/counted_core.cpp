// Does one piece of work many times below code that is made at run time: `counted_core walk|step|throw COUNT`.
// callgrind counts the instructions. The program is linked with the core alone, and with the archive of everything.
#include <jitunwind/sdk/c/walk.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/core/made_code.h"

namespace {

using Call = void (*)(void (*)());

Call made = nullptr;
long count = 0;

void check(bool good) {
  if (!good) std::abort();
}

void make_code() {
  static unsigned char frames[sizeof k_frames];
  unsigned char* const page = map_code(frames, 1);
  check(page != nullptr);
  ju_object* registered = nullptr;
  check(register_made(page, frames, &registered, nullptr) == JU_OK);
  made = reinterpret_cast<Call>(page);
}

void walk() {
  void* addresses[16];
  for (long i = 0; i < count; ++i) check(ju_backtrace(addresses, 16) >= 3);
}

void step() {
  alignas(16) unsigned char context[1024];
  jitunwind_capture_context(context);
  ju_cursor begin;
  check(ju_cursor_at(&begin, context, JU_RETURNED_TO, nullptr) == JU_OK);
  for (long i = 0; i < count; ++i) {
    ju_cursor cursor = begin;
    for (int steps = 0; steps < 3; ++steps) check(ju_cursor_step(&cursor, nullptr) == JU_OK);
  }
}

void throws() { throw 1; }

void throw_often() {
  for (long i = 0; i < count; ++i) {
    try {
      made(throws);
    } catch (int) {
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::puts("counted_core walk|step|throw COUNT"), 1;
  make_code();
  count = std::atol(argv[2]);
  const char* const what = argv[1];
  if (std::strcmp(what, "throw") == 0) return throw_often(), 0;
  made(std::strcmp(what, "walk") == 0 ? walk : step);
}
