// C++ exceptions through code made with asmjit: with its Compiler, whose frames it makes itself, and by hand.
#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/asmjit/asmjit_names.h"

namespace jitunwind::test {
namespace {

using namespace asmjit;
using Made = void (*)(void (*)());

int g_destroyed = 0;
std::vector<Made> g_frames;

void deeper() {
  struct Counted {
    ~Counted() { ++g_destroyed; }
  } const counted;
  if (g_frames.empty()) throw std::runtime_error("from below asmjit's code");
  const Made next = g_frames.back();
  g_frames.pop_back();
  next(deeper);
}

/// A function of the Compiler that keeps many values alive during its call.
Made compile(AsmjitRuntime& runtime, bool with_frame_pointer, unsigned alignment) {
  CodeHolder code;
  code.init(runtime.environment());
  x86::Compiler cc(&code);
  FuncNode* const function = add_func(cc, signature<void, void (*)()>());
  if (with_frame_pointer) set_preserved_fp(function->frame());
  const x86::Gp callee = new_int64(cc);
  set_arg(*function, 0, callee);
  std::vector<x86::Gp> kept;
  for (int i = 0; i < 6; ++i) {
    kept.push_back(new_int64(cc));
    cc.mov(kept.back(), -1 - i);
  }
  const x86::Mem slot = new_stack(cc, 64, alignment);
  cc.mov(slot, kept[0]);
  invoke(cc, callee, signature<void>());
  for (int i = 1; i < 6; ++i) cc.add(kept[0], kept[static_cast<std::size_t>(i)]);
  cc.mov(slot, kept[0]);
  cc.ret();
  end_func(cc);
  EXPECT_EQ(cc.finalize(), kErrorOk);
  Made made = nullptr;
  EXPECT_EQ(runtime.add(&made, &code, "compiled"), kErrorOk);
  return made;
}

Made write_by_hand(AsmjitRuntime& runtime) {
  CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  a.push(x86::rbp);
  a.push(x86::rbx);
  a.sub(x86::rsp, 24);
  a.mov(x86::rbp, -1);
  a.mov(x86::rbx, -1);
  a.call(x86::rdi);
  a.add(x86::rsp, 24);
  a.pop(x86::rbx);
  a.pop(x86::rbp);
  a.ret();
  Made made = nullptr;
  EXPECT_EQ(runtime.add(&made, &code, "written"), kErrorOk);
  return made;
}

// covers: EX14
TEST(AsmjitThrow, PassesEveryFrame) {
  AsmjitRuntime runtime;
  const std::vector<Made> all{write_by_hand(runtime), compile(runtime, false, 16), compile(runtime, true, 16),
                              compile(runtime, true, 64), compile(runtime, false, 64)};
  for (int round = 0; round < 3; ++round) {
    g_frames = all;
    g_destroyed = 0;
    EXPECT_THROW(deeper(), std::runtime_error);
    EXPECT_EQ(g_destroyed, static_cast<int>(all.size()) + 1);
  }
  for (const Made made : all) runtime.release(made);
}

}  // namespace
}  // namespace jitunwind::test
