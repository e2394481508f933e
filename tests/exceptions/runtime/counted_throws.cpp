// Throws through functions made at run time, through none of which was thrown before: all have one description. Its
// test counts the instructions of pass(). Argument: how many functions there are.
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/exceptions/runtime/c_jit_frame.h"

namespace {

void* throw_one(void*) { throw 1; }

}  // namespace

/// The name is the argument of --toggle-collect.
extern "C" [[gnu::noinline]] int pass(const jitunwind::test::CJitFrame& frame) {
  try {
    frame(throw_one, nullptr);
  } catch (int thrown) {
    return thrown;
  }
  return 0;
}

int main(int argc, char** argv) {
  std::vector<std::unique_ptr<jitunwind::test::CJitFrame>> frames(argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0);
  for (auto& frame : frames) frame = std::make_unique<jitunwind::test::CJitFrame>();
  std::size_t caught = 0;
  for (const auto& frame : frames) caught += static_cast<std::size_t>(pass(*frame));
  return caught != 0 && caught == frames.size() ? 0 : 1;
}
