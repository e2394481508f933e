// The program of the matrix: one scenario with frames of one kind, under the unwinder and the C++ run-time library that
// it is linked with.
//
//   program                 prints the scenarios
//   program SCENARIO KIND   says what it runs with, then what is wrong; "ok" at the end
//   program SCENARIO KIND after-a-throw
#include <cxxabi.h>
#include <dlfcn.h>
#include <unwind.h>

#include <cstdio>
#include <cstring>

#include "tests/exceptions/matrix/frames.h"
#include "tests/exceptions/matrix/scenarios.h"

namespace {

/// Prints the file that a function is in, as this program sees it.
void print_file(const char* what, const void* function) {
  Dl_info info;
  std::printf("%s: %s\n", what, ::dladdr(function, &info) != 0 ? info.dli_fname : "?");
}

/// Some run-time libraries are incomplete before a throw.
void throw_once() {
  try {
    throw 1;
  } catch (int) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace jitunwind::test;
  for (const Scenario& scenario : all_scenarios()) {
    if (argc < 3) {
      std::puts(scenario.name);
    } else if (std::strcmp(scenario.name, argv[1]) == 0) {
      print_file("raises", reinterpret_cast<const void*>(&_Unwind_RaiseException));
      print_file("resumes", reinterpret_cast<const void*>(&_Unwind_Resume));
      print_file("catches", reinterpret_cast<const void*>(&abi::__cxa_begin_catch));
      std::printf("path: %s\n", matrix_path());
      std::fflush(stdout);
      if (argc > 3) throw_once();
      run_scenario(scenario, argv[2]);
    }
  }
  return argc < 3 ? 0 : 2;
}
