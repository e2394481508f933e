// One piece of work on a procedure of one size, for a simulator that counts instructions:
//   PROGRAM KIND SIZE
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/large/long_code.h"
#ifdef WITH_ASMJIT
#include <jitunwind/asmjit.h>

#include "tests/asmjit/asmjit_names.h"
#endif

extern "C" const void* _Unwind_Find_FDE(const void* pc, void* bases);

namespace jitunwind::test {
namespace {

/// Throws for the first time; `size` rows precede the place.
void throw_through(LongCode::Says says, std::size_t size) {
  const LongCode code(size / 2);
  const Description description = code.describe(says);
  const Registration live = code.registered(description);
  try {
    code.call([] { throw 1; });
  } catch (int) {
    return;
  }
  std::exit(3);
}

/// Asks the first questions about each part of a procedure, as throws from everywhere would, and some more.
void ask_everywhere(std::size_t rows, bool in_order) {
  const LongCode code(rows / 2);
  const Description description = code.describe();
  const Registration live = code.registered(description);
  std::vector<Addr> places;
  for (Addr at = code.begin(); at < code.begin() + static_cast<Addr>(code.end()); at += 64) places.push_back(at);
  if (!in_order) std::ranges::shuffle(places, std::mt19937(1));
  void* bases[3];
  for (const Addr at : places)
    if (_Unwind_Find_FDE(reinterpret_cast<void*>(at), bases) == nullptr) std::exit(3);
}

#ifdef WITH_ASMJIT
using namespace asmjit::x86;

/// Each function writes something `size` times.
void write_calls(Assembler& a, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    a.push(1);
    a.push(2);
    a.call(rax);
    a.add(rsp, 16);
  }
}
void write_exits(Assembler& a, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    const asmjit::Label behind = new_label(a);
    a.test(rax, rax);
    a.je(behind);
    a.pop(rbx);
    a.ret();
    a.bind(behind);
  }
}
/// Each early return has another depth of SP, so that states return that are neither the first nor the latest.
void write_nested_exits(Assembler& a, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    const asmjit::Label behind = new_label(a);
    const int depth = static_cast<int>(i % 4) * 16;
    if (depth != 0) a.sub(rsp, depth);
    a.test(rax, rax);
    a.je(behind);
    a.add(rsp, depth);
    a.pop(rbx);
    a.ret();
    a.bind(behind);
    if (depth != 0) a.add(rsp, depth);
  }
}
void write_pushes(Assembler& a, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) a.push(i % 2 == 0 ? rbx : rcx);
  for (std::size_t i = 0; i < size; ++i) a.pop(i % 2 == 0 ? rcx : rbx);
}
/// SP becomes unknown and known again.
void write_realigned(Assembler& a, std::size_t size) {
  a.push(rbp);
  a.mov(rbp, rsp);
  for (std::size_t i = 0; i < size; ++i) {
    a.and_(rsp, -64);
    a.call(rax);
    a.mov(rsp, rbp);
  }
  a.pop(rbp);
}

void add(void (*write)(Assembler&, std::size_t), std::size_t size) {
  AsmjitRuntime runtime({.on_refusal = [](const AsmjitRefusal& refusal) { std::puts(refusal.text().c_str()); }});
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  a.push(rbx);
  write(a, size);
  a.pop(rbx);
  a.ret();
  void* start = nullptr;
  if (runtime.add(&start, &code) != asmjit::kErrorOk) std::exit(3);
}
#endif

const std::map<std::string, std::function<void(std::size_t)>> k_work{
    {"build", [](std::size_t size) { (void)LongCode(size / 2).describe(); }},
    {"build_rows", [](std::size_t size) { (void)LongCode(size / 2).describe(LongCode::Says::rows); }},
    {"text", [](std::size_t size) { (void)LongCode(size / 2).describe().to_text(); }},
    {"throw", [](std::size_t size) { throw_through(LongCode::Says::directives, size); }},
    // These have ten times as many rows, because a few rows share one FDE.
    {"ask_in_order", [](std::size_t size) { ask_everywhere(10 * size, true); }},
    {"ask_at_random", [](std::size_t size) { ask_everywhere(10 * size, false); }},
    {"throw_rows", [](std::size_t size) { throw_through(LongCode::Says::rows, size); }},
#ifdef WITH_ASMJIT
    {"add_calls", [](std::size_t size) { add(write_calls, size); }},
    {"add_exits", [](std::size_t size) { add(write_exits, size); }},
    {"add_nested_exits", [](std::size_t size) { add(write_nested_exits, size); }},
    {"add_pushes", [](std::size_t size) { add(write_pushes, size); }},
    {"add_realigned", [](std::size_t size) { add(write_realigned, size); }},
#endif
};

}  // namespace
}  // namespace jitunwind::test

int main(int argc, char** argv) {
  const auto& work = jitunwind::test::k_work;
  if (argc == 1)
    for (const auto& [name, run] : work) std::puts(name.c_str());
  if (argc == 3) work.at(argv[1])(std::strtoul(argv[2], nullptr, 10));
}
