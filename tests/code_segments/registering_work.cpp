// Registers and cancels code whose instructions are counted: registering_work alone|beside_segments ROUNDS.
#include <cstdlib>
#include <optional>
#include <string_view>

#include "tests/code_segments/committed.h"

int main(int argc, char** argv) {
  using namespace jitunwind;
  if (argc != 3) return 2;
  std::optional<CodeSegments> segments;
  if (argv[1] == std::string_view("beside_segments")) segments.emplace();
  if (segments && !segments->allocate(16)) return 1;
  alignas(16) static std::byte code[sizeof test::FrameCode::k_bytes];
  const Description description = test::frame_description("registered");
  const Code place{.start = reinterpret_cast<std::uintptr_t>(code), .size = sizeof code};
  for (long rounds = std::atol(argv[2]); rounds > 0; --rounds)
    if (!register_code(description, place)) return 1;
  return segments && segments->status().files != 1;
}
