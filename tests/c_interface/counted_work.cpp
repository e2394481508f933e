// Does one piece of work many times, by C++ or by C: `counted_work KIND in_c|in_cpp COUNT`. callgrind counts the
// instructions.
#include <jitunwind/c.h>
#include <jitunwind/jitunwind.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

const unsigned char code_bytes[64] = {};

void check(bool good) {
  if (!good) std::abort();
}

void register_in_cpp(long count) {
  using namespace jitunwind::x86_64;
  const auto description = describe("counted").push({0, 1}, rbx).pop({-2, -1}, rbx).build();
  for (long i = 0; i < count; ++i) {
    auto registered = jitunwind::register_code(*description, code_bytes, sizeof code_bytes);
    check(bool(registered));
    check(bool(registered->cancel()));
  }
}

void register_in_c(long count) {
  ju_builder* builder = nullptr;
  ju_description* description = nullptr;
  check(ju_describe(JU_CPU_X86_64, "counted", &builder, nullptr) == JU_OK);
  ju_push(builder, 0, 1, JU_X86_64_RBX);
  ju_pop(builder, -2, -1, JU_X86_64_RBX);
  check(ju_build(builder, &description, nullptr) == JU_OK);
  for (long i = 0; i < count; ++i) {
    ju_code code;
    ju_code_init(&code, code_bytes, sizeof code_bytes);
    ju_registration* registration = nullptr;
    check(ju_register(description, &code, &registration, nullptr) == JU_OK);
    check(ju_cancel(registration, nullptr) == JU_OK);
  }
  ju_description_free(description);
  ju_builder_free(builder);
}

/// Works below so many frames. Each round uses a copy of one cursor, so that only steps are counted.
[[gnu::noinline]] long below(long frames, void (*work)(long), long count) {
  if (frames == 0) return work(count), 0;
  const long depth = below(frames - 1, work, count);
  asm volatile("");
  return depth + 1;
}

constexpr long k_frames = 20;

void step_in_cpp(long count) {
  alignas(16) std::byte context[jitunwind::k_context_size];
  jitunwind_capture_context(context);
  jitunwind::Cursor cursor = jitunwind::cursor_at(context, jitunwind::Cursor::Top::returned_to);
  check(bool(cursor.step()));  // from this function's own frame, which is as large as its variables
  const jitunwind::Cursor begin = cursor;
  for (long i = 0; i < count; ++i) {
    cursor = begin;
    for (long step = 0; step < k_frames; ++step) {
      const auto moved = cursor.step();
      check(moved && *moved);
    }
  }
}

void step_in_c(long count) {
  alignas(16) std::byte context[jitunwind::k_context_size];
  jitunwind_capture_context(context);
  ju_cursor cursor;
  check(ju_cursor_at(&cursor, context, JU_RETURNED_TO, nullptr) == JU_OK);
  check(ju_cursor_step(&cursor, nullptr) == JU_OK);
  const ju_cursor begin = cursor;
  for (long i = 0; i < count; ++i) {
    cursor = begin;
    for (long step = 0; step < k_frames; ++step) check(ju_cursor_step(&cursor, nullptr) == JU_OK);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::puts("counted_work register|step in_c|in_cpp COUNT"), 1;
  const bool in_c = std::string(argv[2]) == "in_c";
  const long count = std::atol(argv[3]);
  if (std::string(argv[1]) == "register") {
    (in_c ? register_in_c : register_in_cpp)(count);
  } else {
    // The frames begin at the end of a page, wherever the stack does: each page that a walk meets is asked for.
    constexpr std::uintptr_t k_page = 4096;
    const auto at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    void* const room = __builtin_alloca(at % k_page);
    asm volatile("" : : "r"(room) : "memory");
    below(k_frames + 2, in_c ? step_in_c : step_in_cpp, count);
  }
}
