// Every frame that asmjit can make and every idiom of the builders is executed one instruction at a time: at every
// boundary and during every call the walked caller must be the true one. Prints the comparisons; fails on any
// difference, refusal, or instruction that never ran.
#include <cstdio>

#include "tests/asmjit/frame_runs.h"

namespace {

using namespace jitunwind::test;

bool report(const char* what, const FrameRunFigures& figures) {
  std::printf("%-34s %s\n", what, figures.text().c_str());
  if (!figures.ok()) std::printf("%s", figures.failures.c_str());
  std::fflush(stdout);
  return figures.ok();
}

}  // namespace

int main() {
  const std::vector<FrameWish> wishes = all_frame_wishes();
  FrameRunFigures all;
  bool ok = true;
  const auto run = [&](const char* what, EmitterKind kind, std::size_t together) {
    const FrameRunFigures figures = run_frames(kind, wishes, together);
    ok &= report(what, figures);
    all.add(figures);
  };
  run("asmjit, AsmjitAssembler", EmitterKind::assembler, 1);
  run("asmjit, AsmjitBuilder", EmitterKind::builder, 7);
  run("asmjit, x86::Builder", EmitterKind::plain_builder, 7);
  run("asmjit, x86::Compiler", EmitterKind::compiler, 7);
  const FrameRunFigures idioms = run_idioms(all_idiom_wishes());
  ok &= report("idioms of the builders", idioms);
  all.add(idioms);
  all.failures.clear();
  std::printf("%-34s %s\n", "together", all.text().c_str());
  std::printf("%s\n", ok ? "passed" : "FAILED");
  return ok ? 0 : 1;
}
