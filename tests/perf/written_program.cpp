// The program runs for a while below functions made at run time that are registered: main, jit_frame, go_on, jit_frame,
// burn, jit_spins. The argument "lines" makes it attach perf itself and tell a source line of the inner one, and
// "late" attach perf when all are registered.
#include <array>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/adapters/perf/perf.h"
#include "tests/support/executable_copy.h"
#include "tests/support/jit_frame.h"

namespace {

using jitunwind::test::JitFrame;

const JitFrame* inner = nullptr;

/// mov ecx, 10000; next: dec ecx; jnz next; ret
const std::vector<std::uint8_t> k_spins{0xb9, 0x10, 0x27, 0, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
const jitunwind::test::ExecutableCopy spins(k_spins);

}  // namespace

extern "C" [[gnu::noinline]] void* burn(void* argument) {
  const auto begin = std::clock();
  while (std::clock() - begin < CLOCKS_PER_SEC / 5) reinterpret_cast<void (*)()>(spins.begin())();
  return argument;
}

extern "C" [[gnu::noinline]] void* go_on(void* argument) {
  void* const got = (*inner)(burn, argument);
  asm volatile("");  // a tail call would leave the frame out
  return got;
}

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "lines" && !jitunwind::attach_perf()) return 1;
  const auto leaf = jitunwind::test::host::describe("jit_spins").build();
  const auto registered = jitunwind::register_code(*leaf, spins.begin(), k_spins.size());
  if (!registered) return 1;
  JitFrame first, second;
  inner = &second;
  if (how == "late" && !jitunwind::attach_perf()) return 1;
  if (how == "lines") {
    const std::array<jitunwind::ToldLine, 1> line{{{0, 4711, "made_up.src"}}};
    (void)second.registration().cancel();
    (void)jitunwind::tell_perf_lines({second.start(), second.start() + second.size()}, line);
    const auto description = JitFrame::described().build();
    auto again = jitunwind::register_code(*description, {.start = second.start(), .size = second.size()});
    if (!again) return 1;
    second.registration() = std::move(*again);
  }
  first(go_on, nullptr);
  return 0;
}
