// Code of xbyak is registered by its own generator, and run: the rows are right at every instruction, and exceptions
// pass.
#include <jitunwind/xbyak.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "jitunwind/adapters/testing/check_by_stepping.h"
#include "jitunwind/sdk/walk.h"
#include "tests/support/failing_memory.h"

namespace jitunwind::test {
namespace {

using xbyak::CodeGenerator, xbyak::Reading, xbyak::StackFrame;
using Made = int (*)(void (*)(), long);

constexpr int k_result = 4711;
const Reading k_readings[] = {Reading::noted, Reading::every};

void do_nothing() {}

AddrRange range_of(const Xbyak::CodeGenerator& code) {
  const auto begin = reinterpret_cast<std::uintptr_t>(code.getCode());
  return {begin, begin + code.getSize()};
}

/// Calls the code, which calls its first argument and returns k_result, with a second one of 0 and of 1.
int run(const Xbyak::CodeGenerator& code) {
  const auto made = reinterpret_cast<Made>(reinterpret_cast<std::uintptr_t>(code.getCode()));
  return made(do_nothing, 0) == k_result && made(do_nothing, 1) == k_result ? 0 : 1;
}

void expect_right(CodeGenerator& code, const std::string& what, bool has_data) {
  for (const Reading reading : k_readings) {
    const Status status = code.register_code("made", reading);
    ASSERT_TRUE(status) << what << ": " << status.error().text();
    const AddrRange range = range_of(code);
    const SteppingReport report = check_by_stepping({&range, 1}, [&] { return run(code); });
    EXPECT_TRUE(report) << what << "\n" << report.text();
    EXPECT_TRUE(report.not_run.empty() || has_data) << what << "\n" << report.text();
  }
}

/// Overwrites what a function may not change without saving it.
void spoil(CodeGenerator& code, const Xbyak::util::Pack& registers) {
  for (std::size_t n = 0; n < registers.size(); ++n) code.mov(registers[n], 0x1000 + n);
}

struct Wish {
  int parameters, temporaries, stack;
};

/// Every StackFrame, with an epilogue in its middle.
struct Framed : CodeGenerator {
  explicit Framed(const Wish& wish) {
    Xbyak::Label on;
    StackFrame frame(this, wish.parameters, wish.temporaries, wish.stack);
    mov(rax, reinterpret_cast<std::uintptr_t>(&do_nothing));
    if (wish.stack != 0) call(rax);  // rsp is aligned
    spoil(*this, frame.t);
    test(rsi, rsi);
    jz(on);
    mov(eax, k_result);
    frame.close();
    L(on);
    spoil(*this, frame.t);
    mov(eax, k_result);
  }
};

TEST(Xbyak, StackFramesOfEveryKind) {
  constexpr int k_step = k_is_sanitized ? 5 : 1;
  std::vector<std::unique_ptr<Framed>> codes;
  std::vector<AddrRange> ranges;
  for (const int used : {0, static_cast<int>(Xbyak::util::UseRCX), static_cast<int>(Xbyak::util::UseRDX),
                         Xbyak::util::UseRCX | Xbyak::util::UseRDX})
    for (int parameters = 2; parameters <= 4; ++parameters)
      for (int temporaries = 0; parameters + temporaries <= 12; temporaries += k_step)
        for (const int stack : {0, 8, 200}) {
          codes.push_back(std::make_unique<Framed>(Wish{parameters, temporaries | used, stack}));
          const Status status = codes.back()->register_code("made", k_readings[codes.size() % 2]);
          ASSERT_TRUE(status) << status.error().text();
          ranges.push_back(range_of(*codes.back()));
        }
  const SteppingReport report = check_by_stepping(ranges, [&] {
    for (const auto& code : codes)
      if (reinterpret_cast<Made>(reinterpret_cast<std::uintptr_t>(code->getCode()))(do_nothing, 0) != k_result)
        return 1;
    return 0;
  });
  EXPECT_TRUE(report) << report.text();
  EXPECT_EQ(report.activations, codes.size());
}

using Writer = void (*)(CodeGenerator& c);
struct Written {
  const char* what;
  Writer write;
  bool has_data = false;  ///< read as instructions that never run
};

void write_pushes(CodeGenerator& c) {
  c.push(c.rbx);
  c.push(c.rbp);
  c.push(c.r12);
  c.mov(c.rbp, 7);  // a counter
  c.xor_(c.ebx, c.ebx);
  c.push(c.rsi);
  c.sub(c.rsp, 8);
  c.call(c.rdi);
  c.add(c.rsp, 8);
  c.pop(c.rbx);
  c.mov(c.eax, k_result);
  c.pop(c.r12);
  c.pop(c.rbp);
  c.pop(c.rbx);
  c.ret();
}

/// A return in the middle, a loop that is entered at its condition, and one whose body is reached from behind alone.
void write_returns(CodeGenerator& c) {
  Xbyak::Label deeper, body, condition;
  c.push(c.rbx);
  c.mov(c.eax, k_result);
  c.test(c.rsi, c.rsi);
  c.jnz(deeper);
  c.pop(c.rbx);
  c.ret();
  c.L(deeper);
  c.sub(c.rsp, 24);
  c.mov(c.ebx, 3);
  c.jmp(condition);
  c.L(body);
  c.push(c.rax);
  c.call(c.rdi);
  c.pop(c.rax);
  c.L(condition);
  c.dec(c.ebx);
  c.jnz(body);
  c.add(c.rsp, 24);
  c.pop(c.rbx);
  c.ret();
}

void write_aligned(CodeGenerator& c) {
  Xbyak::Label on;
  c.push(c.rbp);
  c.mov(c.rbp, c.rsp);
  c.push(c.rbx);
  c.push(c.r15);
  c.and_(c.rsp, 0xffffffc0);
  c.sub(c.rsp, 128);
  c.mov(c.ebx, c.esi);
  c.call(c.rdi);
  c.mov(c.eax, k_result);
  c.test(c.ebx, c.ebx);
  c.jz(on, CodeGenerator::T_NEAR);
  c.lea(c.rsp, c.ptr[c.rbp - 16]);
  c.pop(c.r15);
  c.pop(c.rbx);
  c.pop(c.rbp);
  c.ret();
  c.L(on);
  c.mov(c.rbx, c.ptr[c.rbp - 8]);
  c.mov(c.r15, c.ptr[c.rbp - 16]);
  c.leave();
  c.ret();
}

void write_by_moves(CodeGenerator& c) {
  c.lea(c.rsp, c.ptr[c.rsp - 40]);
  c.mov(c.ptr[c.rsp + 32], c.rbx);
  c.mov(c.ptr[c.rsp + 24], c.rbp);
  c.mov(c.ptr[c.rsp], c.rsi);
  c.lea(c.rbp, c.ptr[c.rsp + 16]);
  c.mov(c.ptr[c.rbp], c.r14);
  c.xor_(c.ebx, c.ebx);
  c.xor_(c.r14d, c.r14d);
  c.call(c.rdi);
  c.mov(c.r14, c.ptr[c.rbp]);
  c.mov(c.rbx, c.ptr[c.rsp + 32]);
  c.mov(c.rbp, c.ptr[c.rsp + 24]);
  c.mov(c.eax, k_result);
  c.add(c.rsp, 40);
  c.ret();
}

/// alloca, a frame of unknown size with a saved register below, a jump through a table, and data in between.
void write_table(CodeGenerator& c) {
  Xbyak::Label table, zero, one;
  c.push(c.rbp);
  c.mov(c.rbp, c.rsp);
  c.sub(c.rsp, 16);
  c.shl(c.rsi, 4);
  c.sub(c.rsp, c.rsi);
  c.mov(c.ptr[c.rbp - 8], c.rbx);
  c.mov(c.rbx, c.rsi);
  c.call(c.rdi);
  c.lea(c.rax, c.ptr[c.rip + table]);
  c.shr(c.rbx, 1);
  c.jmp(c.ptr[c.rax + c.rbx]);
  c.L(table);
  c.putL(zero);
  c.putL(one);
  c.L(zero);
  c.mov(c.eax, k_result);
  c.mov(c.rbx, c.ptr[c.rbp - 8]);
  c.leave();
  c.ret();
  c.L(one);
  c.mov(c.rbx, c.ptr[c.rbp - 8]);
  c.mov(c.rsp, c.rbp);
  c.pop(c.rbp);
  c.mov(c.eax, k_result);
  c.ret();
}

/// alloca with a slot below the known part of the frame, and rbp as a counter when rsp is restored.
void write_counter(CodeGenerator& c) {
  Xbyak::Label on;
  c.push(c.rbp);
  c.mov(c.rbp, c.rsp);
  c.mov(c.eax, 32);
  c.sub(c.rsp, c.rax);
  c.mov(c.ptr[c.rbp - 8], c.rbx);
  c.mov(c.rbx, c.rdi);
  c.test(c.rsi, c.rsi);
  c.jnz(on);
  c.mov(c.eax, k_result);
  c.mov(c.rbx, c.ptr[c.rbp - 8]);
  c.leave();
  c.ret();
  c.L(on);
  c.call(c.rbx);
  c.mov(c.rax, c.rbx);
  c.mov(c.rbx, c.ptr[c.rbp - 8]);
  c.mov(c.rsp, c.rbp);
  c.mov(c.ebp, 7);
  c.call(c.rax);
  c.mov(c.eax, k_result);
  c.pop(c.rbp);
  c.ret();
}

/// Local labels by names, a tail call, pushes of other things.
void write_labels(CodeGenerator& c) {
  c.inLocalLabel();
  c.push(c.rbx);
  c.push(0x1234);
  c.pushfq();
  c.mov(c.ebx, 2);
  c.L(".again");
  c.sub(c.ebx, 1);
  c.jz(".out");
  c.jmp(".again");
  c.L(".out");
  c.popfq();
  c.pop(c.rax);
  c.pop(c.rbx);
  c.push(c.rax);
  c.pop(c.rdx);
  c.cmp(c.edx, 0x1234);
  c.jne(".wrong");
  c.mov(c.rax, reinterpret_cast<std::uintptr_t>(+[] { return k_result; }));
  c.jmp(c.rax);
  c.L(".wrong");
  c.outLocalLabel();
}

constexpr Written k_written[] = {{"pushes", write_pushes},          {"returns", write_returns},
                                 {"aligned", write_aligned},        {"by moves", write_by_moves},
                                 {"by a table", write_table, true}, {"a counter", write_counter}};

TEST(Xbyak, FramesByHand) {
  for (const Written& written : k_written) {
    CodeGenerator code;
    written.write(code);
    expect_right(code, written.what, written.has_data);
  }
}

TEST(Xbyak, TailCallsAndLocalLabels) {
  CodeGenerator code;
  write_labels(code);
  code.ud2();
  const Status status = code.register_code("made");
  ASSERT_TRUE(status) << status.error().text();
  const AddrRange range = range_of(code);
  const SteppingReport report = check_by_stepping({&range, 1}, [&] { return run(code); });
  EXPECT_TRUE(report) << report.text();
}

TEST(Xbyak, CodeThatGrowsMoves) {
  CodeGenerator code(16, Xbyak::AutoGrow);
  Xbyak::Label far_away;
  code.push(code.rbx);
  code.test(code.rsi, code.rsi);
  code.jnz(far_away, CodeGenerator::T_NEAR);
  code.mov(code.eax, k_result);
  code.pop(code.rbx);
  code.ret();
  code.nop(20000);
  code.L(far_away);
  code.mov(code.eax, k_result);
  code.pop(code.rbx);
  code.ret();
  const Status early = code.register_code("made");
  ASSERT_FALSE(early);
  EXPECT_NE(early.error().text().find("not final before ready()"), std::string::npos);
  code.ready();
  const Status status = code.register_code("made");
  ASSERT_TRUE(status) << status.error().text();
  const AddrRange range = range_of(code);
  const SteppingReport report = check_by_stepping({&range, 1}, [&] { return run(code); });
  EXPECT_TRUE(report) << report.text();
}

/// Generators that know nothing of this library, helpers that write through the base class, xbyak's own StackFrame.
TEST(Xbyak, EveryInstructionOfAnyGenerator) {
  struct Plain : Xbyak::CodeGenerator {
    Plain() {
      Xbyak::util::StackFrame frame(this, 2, 9, 24);
      xor_(ebx, ebx);
      call(rdi);
      mov(eax, k_result);
    }
  };
  const Plain plain;
  const auto registered = xbyak::register_code(plain, "plain");
  ASSERT_TRUE(registered) << registered.error().text();
  const SteppingReport report = check_by_stepping(*registered, [&] { return run(plain); });
  EXPECT_TRUE(report && report.not_run.empty()) << report.text();
  CodeGenerator with_table;
  write_table(with_table);
  const auto refused = xbyak::register_code(with_table, "table");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("jumps to an unknown address with the frame in place"), std::string::npos);
}

TEST(Xbyak, SeveralProcedures) {
  CodeGenerator code;
  Xbyak::Label second;
  code.push(code.rbx);
  code.call(second);
  code.pop(code.rbx);
  code.ret();
  code.align(16);
  code.procedure("second");
  code.L(second);
  code.sub(code.rsp, 8);
  code.call(code.rdi);
  code.mov(code.eax, k_result);
  code.add(code.rsp, 8);
  code.ret();
  const Status status = code.register_code("first");
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(code.registrations().size(), 2u);
  const AddrRange range = range_of(code);
  const SteppingReport report = check_by_stepping({&range, 1}, [&] { return run(code); });
  EXPECT_TRUE(report) << report.text();
  static std::vector<std::string> names;
  names.clear();
  code.getCode<void (*)(void (*)())>()([] {
    for (const Frame& frame : walk_here()) names.push_back(frame.name());
  });
  ASSERT_GT(names.size(), 4u);
  EXPECT_EQ((std::vector<std::string>(names.begin() + 2, names.begin() + 4)),
            (std::vector<std::string>{"second", "first"}));
  EXPECT_EQ(names.back(), "_start");
  code.reset();
  EXPECT_TRUE(code.registrations().empty());
}

TEST(Xbyak, ExceptionsPass) {
  for (const Written& written : k_written) {
    CodeGenerator code;
    written.write(code);
    ASSERT_TRUE(code.register_code("made"));
    EXPECT_THROW(code.getCode<Made>()([] { throw std::runtime_error("from below"); }, 1), std::runtime_error)
        << written.what;
  }
}

}  // namespace
}  // namespace jitunwind::test
