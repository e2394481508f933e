// Walking with this library by each of its interfaces. This is separate from registration, because the program that
// does not link Unwind Express measures that, too.
#include <jitunwind/c.h>
#include <jitunwind/jitunwind.h>
#include <uwx_self.h>

#include "bench/peer.h"

namespace bench {

namespace {

std::size_t backtrace(std::span<void*> into) { return jitunwind::backtrace(into); }

std::size_t step(std::span<void*> into) {
  std::size_t count = 0;
  alignas(16) std::byte context[jitunwind::k_context_size];
  jitunwind_capture_context(context);
  jitunwind::Cursor cursor = jitunwind::cursor_at(context, jitunwind::Cursor::Top::returned_to);
  while (count < into.size()) {
    const auto moved = cursor.step();
    if (!moved || !*moved) break;
    into[count++] = reinterpret_cast<void*>(cursor.pc());
  }
  return count;
}

/// The cursor of C. A step costs at most 1.1 times a `step`.
std::size_t ju_steps(std::span<void*> into) {
  std::size_t count = 0;
  ju_cursor cursor;
  if (ju_cursor_here(&cursor, nullptr) != JU_OK) return 0;
  while (count < into.size() && ju_cursor_step(&cursor, nullptr) == JU_OK)
    into[count++] = reinterpret_cast<void*>(ju_frame_pc(&cursor));
  return count;
}

std::size_t range(std::span<void*> into) {
  std::size_t count = 0;
  for (const jitunwind::Frame& frame : jitunwind::walk_here()) {
    if (count == into.size()) break;
    into[count++] = reinterpret_cast<void*>(frame.pc());
  }
  return count;
}

/// An environment for walks of one thread, as a program keeps it.
struct UwxSelf {
  UwxSelf() : env(uwx_init()), info(uwx_self_init_info(env)) {
    (void)uwx_register_callbacks(env, reinterpret_cast<std::intptr_t>(info), &uwx_self_copyin, &uwx_self_lookupip);
  }
  uwx_env* env;
  uwx_self_info* info;
};

/// Unwind Express. A step costs at most three of `step`.
std::size_t uwx_steps(std::span<void*> into) {
  thread_local const UwxSelf self;
  std::size_t count = 0;
  if (uwx_self_init_context(self.env) != UWX_OK) return 0;
  while (count < into.size() && uwx_step(self.env) == UWX_OK) {
    std::uint64_t ip = 0;
    (void)uwx_get_reg(self.env, UWX_REG_IP, &ip);
    into[count++] = reinterpret_cast<void*>(ip);
  }
  return count;
}

constexpr Walker k_walkers[]{{"backtrace", backtrace, true},
                             {"step", step, true},
                             {"ju_cursor_step", ju_steps, true},
                             {"range", range, true},
                             {"uwx_step", uwx_steps, true}};

}  // namespace

const char* thrower() { return JITUNWIND_THROWER; }
std::span<const Walker> walkers() { return k_walkers; }

}  // namespace bench
