// C++ exceptions through code made with asmjit: with its Compiler, whose frames it makes itself, and by hand.
#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

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
  FuncNode* const function = cc.addFunc(FuncSignatureT<void, void (*)()>(CallConvId::kCDecl));
  if (with_frame_pointer) function->frame().setPreservedFP();
  const x86::Gp callee = cc.newIntPtr();
  function->setArg(0, callee);
  std::vector<x86::Gp> kept;
  for (int i = 0; i < 6; ++i) {
    kept.push_back(cc.newInt64());
    cc.mov(kept.back(), -1 - i);
  }
  x86::Mem slot = cc.newStack(64, alignment);
  slot.setSize(8);
  cc.mov(slot, kept[0]);
  InvokeNode* invoke = nullptr;
  cc.invoke(&invoke, callee, FuncSignatureT<void>(CallConvId::kCDecl));
  for (int i = 1; i < 6; ++i) cc.add(kept[0], kept[static_cast<std::size_t>(i)]);
  cc.mov(slot, kept[0]);
  cc.ret();
  cc.endFunc();
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
