// A library with its own copy of our library.
#include <vector>

#include "tests/debuggers/jit_code.h"

namespace {
std::vector<std::unique_ptr<debuggers_test::JitCode>>* all = nullptr;
[[gnu::destructor]] void forget() { delete all; }
}  // namespace

extern "C" [[gnu::visibility("default")]] void (*plugin_code(const char* shape, const char* name, void (*callee)()))() {
  if (all == nullptr) all = new std::vector<std::unique_ptr<debuggers_test::JitCode>>;
  all->push_back(std::make_unique<debuggers_test::JitCode>(shape, name, callee));
  return all->back()->entry();
}
