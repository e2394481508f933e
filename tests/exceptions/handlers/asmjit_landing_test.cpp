// Landing pads at labels of asmjit's.
#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>

#include <gtest/gtest.h>

#include <cxxabi.h>
#include <unwind.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "jitunwind/builders/registers_x86_64.h"
#include "tests/asmjit/asmjit_names.h"

namespace jitunwind::test {
namespace {

using namespace asmjit;
using namespace asmjit::x86;
using Made = long (*)(void (*)());

int g_cleaned = 0;
void clean() { ++g_cleaned; }
void throw_error() { throw std::runtime_error("from below"); }
void throw_int() { throw 42; }

class AsmjitLanding : public testing::Test {
 protected:
  AsmjitLanding() {
    code.init(runtime.environment());
    code.attach(&a);
    g_cleaned = 0;
  }

  /// A call between two labels.
  void guarded_call() {
    a.bind(begin);
    a.call(rdi);
    a.bind(end);
  }
  /// Frees the exception in rax and returns 100 + its selector.
  void catch_it() {
    a.bind(pad);
    a.mov(ebx, edx);
    a.mov(rdi, rax);
    a.call(imm(&abi::__cxa_begin_catch));
    a.call(imm(&abi::__cxa_end_catch));
    a.lea(rax, ptr(rbx, 100));
  }
  /// Keeps rbx around the guarded call and returns 0, or the result of catch_it().
  void guarded_frame() {
    const Label leave = new_label(a);
    a.push(rbx);
    guarded_call();
    a.xor_(eax, eax);
    a.bind(leave);
    a.pop(rbx);
    a.ret();
    catch_it();
    a.jmp(leave);
  }
  Made add(const char* name) {
    Made made = nullptr;
    const asmjit::Error error = runtime.add(&made, &code, name);
    refused = refusals.empty() ? "" : refusals.front().text();
    EXPECT_TRUE(error == kErrorOk || !refused.empty());
    return made;
  }

  std::vector<AsmjitRefusal> refusals;
  AsmjitRuntime runtime{{.on_refusal = [this](const AsmjitRefusal& r) { refusals.push_back(r); }}};
  CodeHolder code;
  AsmjitAssembler a;
  Label begin, end, pad;
  std::string refused;

  void make_labels() {
    begin = new_label(a);
    end = new_label(a);
    pad = new_label(a);
  }
};

// covers: DY21
TEST_F(AsmjitLanding, CatchesByType) {
  make_labels();
  a.call_site(begin, end, pad).catches(typeid(std::runtime_error)).catches(typeid(int));
  guarded_frame();
  const Made made = add("catches");
  ASSERT_NE(made, nullptr) << refused;
  EXPECT_EQ(made([] {}), 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(made(throw_error), 101);
  EXPECT_EQ(made(throw_int), 102);
  EXPECT_THROW(made([] { throw 'c'; }), char);
}

/// The code has no frame pointer and lands with the SP of the call. The pad knows where the caller's registers are.
TEST_F(AsmjitLanding, CleansUpWithTheFrameOfTheCall) {
  make_labels();
  a.call_site(begin, end, pad);
  a.push(rbx);
  a.push(rbp);
  a.sub(rsp, 40);
  a.mov(rbp, -1);
  a.mov(qword_ptr(rsp, 32), 1234);
  guarded_call();
  a.add(rsp, 40);
  a.pop(rbp);
  a.pop(rbx);
  a.ret();
  a.bind(pad);
  a.mov(rbx, rax);
  a.call(imm(&clean));
  a.mov(rdi, rbx);
  a.call(imm(&_Unwind_Resume));
  a.ud2();
  const Made made = add("cleans up");
  ASSERT_NE(made, nullptr) << refused;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_THROW(made(throw_error), std::runtime_error);
    EXPECT_EQ(g_cleaned, i);
  }
}

TEST_F(AsmjitLanding, KeepsItsPromiseNotToThrow) {
  make_labels();
  a.terminates(begin, end);
  a.push(rbx);
  guarded_call();
  a.pop(rbx);
  a.ret();
  const Made made = add("noexcept");
  ASSERT_NE(made, nullptr) << refused;
  made([] {});
  EXPECT_DEATH(made(throw_error), "terminate called");
}

TEST_F(AsmjitLanding, IsDecidedByAHandler) {
  make_labels();
  a.handled_by([this](const PassedFrame& frame) {
    return FrameDecision::catch_at(frame.start() + label_offset(code, pad)).with(x86_64::rdx, 5);
  });
  a.call_site(begin, end, pad);
  guarded_frame();
  const Made made = add("handled");
  ASSERT_NE(made, nullptr) << refused;
  EXPECT_EQ(made(throw_error), 105);
}

/// Each procedure of the code has its own table.
TEST_F(AsmjitLanding, OfTwoProceduresInOneCode) {
  make_labels();
  Label second = new_label(a);
  Label outer_begin = new_label(a), outer_end = new_label(a);
  a.call_site(begin, end, pad).catches(typeid(int));
  a.terminates(outer_begin, outer_end);
  a.sub(rsp, 8);
  a.bind(outer_begin);
  a.call(second);
  a.bind(outer_end);
  a.add(rsp, 8);
  a.ret();
  a.bind(second);
  guarded_frame();
  const Made made = add("two");
  ASSERT_NE(made, nullptr) << refused;
  EXPECT_EQ(made(throw_int), 101);
  EXPECT_DEATH(made(throw_error), "terminate called");
}

TEST_F(AsmjitLanding, IsRefusedWhereCallsDifferInSp) {
  make_labels();
  a.call_site(begin, end, pad);
  a.push(rbx);
  a.bind(begin);
  a.call(rdi);
  a.push(rax);
  a.push(rax);
  a.call(rdi);
  a.add(rsp, 16);
  a.bind(end);
  a.pop(rbx);
  a.ret();
  a.bind(pad);
  a.ud2();
  EXPECT_EQ(add("two depths"), nullptr);
  EXPECT_NE(refused.find("is reached with SP = cfa-16 and with SP = cfa-32"), std::string::npos) << refused;
}

TEST_F(AsmjitLanding, IsRefusedOutsideOfTheProcedure) {
  make_labels();
  Label second = new_label(a);
  a.call_site(begin, end, pad);
  a.push(rbx);
  guarded_call();
  a.call(second);
  a.pop(rbx);
  a.ret();
  a.bind(second);
  a.nop();
  a.bind(pad);
  a.ret();
  EXPECT_EQ(add("astray"), nullptr);
  EXPECT_NE(refused.find("E_LANDING_PAD: "), std::string::npos) << refused;
}

TEST_F(AsmjitLanding, IsRefusedWithoutALabelThatIsBound) {
  make_labels();
  a.call_site(begin, end, pad);
  a.push(rbx);
  guarded_call();
  a.pop(rbx);
  a.ret();
  EXPECT_EQ(add("unbound"), nullptr);
  EXPECT_NE(refused.find("a call site or its landing pad has a label that is not bound"), std::string::npos) << refused;
}

}  // namespace
}  // namespace jitunwind::test
