// The adapter, its test and the examples as one translation unit and one program, since the headers of LLVM are most of
// what each takes to compile: orc_llvm_N, orc_llvm_N walk, orc_llvm_N calc [ARGUMENT...].
#include <string_view>

#define main run_other_version
#include "tests/orc_versions/other_version.cpp"
#undef main

#define main run_walk
#include "examples/orc_walk.cpp"
#undef main

#define main run_calc
#include "examples/orc_calc/main.cpp"
#undef main

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "walk") return run_walk();
  return name == "calc" ? run_calc(argc - 1, argv + 1) : run_other_version();
}
