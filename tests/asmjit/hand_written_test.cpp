// Hand-written code: rows of every kind of sequence, several procedures, data, tables, sections, and all of it
// executed.
#include <gtest/gtest.h>

#include <array>

#include "tests/asmjit/written_code.h"

namespace jitunwind::test {
namespace {

using namespace asmjit::x86;
using asmjit::Label;

extern "C" {
[[gnu::noinline]] void hand_written_helper() { asm volatile(""); }
}
constexpr auto k_helper = [] { return reinterpret_cast<std::uintptr_t>(&hand_written_helper); };

TEST(HandWritten, FramePointerAndTwoEpilogues) {
  WrittenCode w;
  const Label other = new_label(w.a);
  w.a.push(rbp);
  w.a.mov(rbp, rsp);
  w.a.push(rbx);
  w.a.sub(rsp, 24);
  w.a.mov(rbx, rdi);
  w.a.test(rbx, rbx);
  w.a.jnz(other);
  w.a.add(rsp, 24);
  w.a.pop(rbx);
  w.a.pop(rbp);
  w.a.ret();
  w.a.bind(other);
  w.a.mov(rax, k_helper());
  w.a.call(rax);
  w.a.xor_(ebx, ebx);
  w.a.lea(rsp, ptr(rbp, -8));
  w.a.pop(rbx);
  w.a.pop(rbp);
  w.a.ret();
  EXPECT_EQ(w.rows(),
            "+0: cfa=rsp+8 ra=[cfa-8]\n"
            "+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]\n"
            "+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]\n"
            "+5: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]\n"
            "+1a: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]\n"
            "+1b: cfa=rsp+8 ra=[cfa-8]\n"
            "+1c: cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]\n"
            "+2f: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]\n"
            "+30: cfa=rsp+8 ra=[cfa-8]\n");
  w.expect_right([](std::uintptr_t start) {
    const auto f = reinterpret_cast<void (*)(long)>(start);
    return f(0), f(1), call_marked(start), 0;
  });
}

TEST(HandWritten, SavesByMoveAndByRegister) {
  WrittenCode w;
  w.a.sub(rsp, 40);
  w.a.mov(ptr(rsp, 8), rbx);
  w.a.mov(r10, r12);
  w.a.mov(ebx, 1);
  w.a.mov(r12d, 2);
  w.a.mov(r12, r10);
  w.a.mov(rbx, ptr(rsp, 8));
  w.a.add(rsp, 40);
  w.a.ret();
  EXPECT_EQ(w.rows(),
            "+0: cfa=rsp+8 ra=[cfa-8]\n"
            "+4: cfa=rsp+48 ra=[cfa-8]\n"
            "+9: cfa=rsp+48 rbx=[cfa-40] ra=[cfa-8]\n"
            "+17: cfa=rsp+48 rbx=[cfa-40] r12=r10 ra=[cfa-8]\n"
            "+1a: cfa=rsp+48 rbx=[cfa-40] ra=[cfa-8]\n"
            "+23: cfa=rsp+8 ra=[cfa-8]\n");
  w.expect_right();
}

TEST(HandWritten, EnterLeaveAndVariableMemory) {
  WrittenCode w;
  w.a.enter(32, 0);
  w.a.mov(eax, 80);
  w.a.sub(rsp, rax);
  w.a.mov(rax, k_helper());
  w.a.call(rax);
  w.a.leave();
  w.a.ret();
  EXPECT_EQ(w.rows(),
            "+0: cfa=rsp+8 ra=[cfa-8]\n"
            "+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]\n"
            "+19: cfa=rsp+8 ra=[cfa-8]\n");
  w.expect_right();
}

TEST(HandWritten, ReturnAddressInARegister) {
  WrittenCode w;
  w.a.push(rbx);
  w.a.mov(ebx, 3);
  w.a.pop(rbx);
  w.a.pop(rcx);
  w.a.nop();
  w.a.jmp(rcx);
  EXPECT_EQ(w.rows(),
            "+0: cfa=rsp+8 ra=[cfa-8]\n"
            "+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n"
            "+7: cfa=rsp+8 ra=[cfa-8]\n"
            "+8: cfa=rsp ra=rcx\n");
  w.expect_right();
}

TEST(HandWritten, UndescribedPushesBehindAFramePointer) {
  WrittenCode w;
  w.a.push(rbp);
  w.a.mov(rbp, rsp);
  w.a.push(rdi);
  w.a.push(7);
  w.a.pushfq();
  w.a.popfq();
  w.a.pop(rax);
  w.a.pop(qword_ptr(rsp, -64));
  w.a.mov(rsp, rbp);
  w.a.pop(rbp);
  w.a.ret(8);
  EXPECT_EQ(w.rows(),
            "+0: cfa=rsp+8 ra=[cfa-8]\n"
            "+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]\n"
            "+4: cfa=rbp+16 rbp=[cfa-16] ra=[cfa-8]\n"
            "+12: cfa=rsp+8 ra=[cfa-8]\n");
  w.expect_right();
}

TEST(HandWritten, ProceduresBeginWhereCallsNamesAndWordsSay) {
  WrittenCode w;
  const Label called = new_label(w.a), named = new_named_label(w.a, "by_label");
  w.a.push(rbx);
  w.a.call(called);
  w.a.pop(rbx);
  w.a.ret();
  embed_u64(w.a, 0x1122334455667788);
  w.a.align(asmjit::AlignMode::kCode, 32);
  w.a.bind(called);
  w.a.sub(rsp, 8);
  w.a.add(rsp, 8);
  w.a.ret();
  w.a.align(asmjit::AlignMode::kCode, 32);
  w.a.bind(named);
  w.a.push(r12);
  w.a.pop(r12);
  w.a.ret();
  w.a.procedure("by_word");
  w.a.push(r13);
  w.a.pop(r13);
  w.a.ret();
  const AsmjitDescription d = describe_asmjit(w.code);
  ASSERT_TRUE(d.complete()) << d.text();
  ASSERT_EQ(d.procedures.size(), 4u);
  const char* const names[] = {"", "", "by_label", "by_word"};
  const std::uint64_t begins[] = {0, 32, 64, 69}, ends[] = {8, 41, 69, 74};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(d.procedures[i].name, names[i]);
    EXPECT_EQ(d.procedures[i].begin, begins[i]);
    EXPECT_EQ(d.procedures[i].end, ends[i]) << "data and padding are no part of a procedure";
  }
  w.expect_right(
      [](std::uintptr_t start) { return call_marked(start), call_marked(start + 64), call_marked(start + 69), 0; });
}

TEST(HandWritten, DataMayComeFirst) {
  WrittenCode w;
  embed_u64(w.a, 0x90);
  w.a.procedure("behind_data");
  w.a.push(rbx);
  w.a.pop(rbx);
  w.a.ret();
  const AsmjitDescription d = describe_asmjit(w.code);
  ASSERT_TRUE(d.complete()) << d.text();
  ASSERT_EQ(d.procedures.size(), 1u);
  EXPECT_EQ(d.procedures[0].begin, 8u);
  w.expect_right([](std::uintptr_t start) { return call_marked(start + 8), 0; });
}

/// switch (index % 3), each case with a frame in place; `jump` is how the table is used.
void write_switch(WrittenCode& w, const std::function<void(const Label& table)>& jump, std::uint32_t entry_size) {
  const Label table = new_label(w.a), done = new_label(w.a);
  const Label cases[] = {new_label(w.a), new_label(w.a), new_label(w.a)};
  w.a.push(rbx);
  w.a.sub(rsp, 32);
  jump(table);
  for (const Label& c : cases) {
    w.a.bind(c);
    w.a.mov(ebx, 5);
    w.a.jmp(done);
  }
  w.a.align(asmjit::AlignMode::kData, 8);
  w.a.bind(table);
  for (const Label& c : cases) {
    if (entry_size == 8)
      embed_label(w.a, c);
    else
      embed_label_delta(w.a, c, table, entry_size);
  }
  w.a.bind(done);
  w.a.add(rsp, 32);
  w.a.pop(rbx);
  w.a.ret();
}

void expect_switch(WrittenCode& w) {
  w.expect_right([](std::uintptr_t start) {
    for (long i = 0; i < 3; ++i) reinterpret_cast<void (*)(long)>(start)(i);
    return 0;
  });
}

TEST(HandWritten, JumpsThroughTables) {
  WrittenCode through_memory;
  write_switch(
      through_memory,
      [&](const Label& table) {
        through_memory.a.lea(rax, ptr(table));
        through_memory.a.jmp(ptr(rax, rdi, 3));
      },
      8);
  expect_switch(through_memory);

  WrittenCode by_distance;
  write_switch(
      by_distance,
      [&](const Label& table) {
        by_distance.a.lea(rax, ptr(table));
        by_distance.a.movsxd(rcx, dword_ptr(rax, rdi, 2));
        by_distance.a.add(rax, rcx);
        by_distance.a.jmp(rax);
      },
      4);
  expect_switch(by_distance);
}

TEST(HandWritten, JumpsToALabelInARegister) {
  WrittenCode w;
  const Label target = new_label(w.a);
  w.a.push(rbx);
  w.a.lea(rax, ptr(target));
  w.a.jmp(rax);
  embed_u64(w.a, 0);
  w.a.bind(target);
  w.a.mov(ebx, 1);
  w.a.pop(rbx);
  w.a.ret();
  w.expect_right();
}

TEST(HandWritten, JumpsWhereItsAuthorSays) {
  WrittenCode w;
  const Label first = new_label(w.a), second = new_label(w.a);
  w.a.push(rbx);
  w.a.lea(rax, ptr(first));
  w.a.lea(rax, ptr(rax, rdi, 3));
  w.a.jmp(rax);
  w.a.jump_targets(std::array{first, second});
  w.a.bind(first);
  w.a.mov(ebx, 1);  // 5 bytes
  w.a.nop(), w.a.nop(), w.a.nop();
  w.a.bind(second);
  w.a.pop(rbx);
  w.a.ret();
  w.expect_right([](std::uintptr_t start) {
    const auto f = reinterpret_cast<void (*)(long)>(start);
    return f(0), f(1), 0;
  });
}

TEST(HandWritten, LeavesForAnExitThatKnowsItsFrame) {
  WrittenCode exit;
  std::uintptr_t shared_exit = 0;
  exit.a.add(rsp, 24);
  exit.a.pop(rbx);
  exit.a.ret();
  ASSERT_NE(exit.rows().find("returns with"), std::string::npos) << "in itself no procedure";
  asmjit::JitRuntime plain;
  ASSERT_EQ(plain.add(&shared_exit, &exit.code), asmjit::kErrorOk);
  WrittenCode w;
  w.a.push(rbx);
  w.a.sub(rsp, 24);
  w.a.mov(ebx, 1);
  w.a.mov(rax, shared_exit);
  w.a.jmp(rax);
  w.a.jump_targets({});
  w.expect_right();
}

TEST(HandWritten, ColdCodeInAnotherSection) {
  WrittenCode w;
  asmjit::Section* cold = nullptr;
  ASSERT_EQ(new_section(w.code, cold, ".cold"), asmjit::kErrorOk);
  const Label slow = new_label(w.a), back = new_label(w.a);
  w.a.push(rbp);
  w.a.push(rbx);
  w.a.sub(rsp, 24);
  w.a.test(rdi, rdi);
  w.a.jz(slow);
  // This is placed before `back` is bound: asmjit 1.21 loses a bound label that another section refers to.
  w.a.section(cold);
  w.a.bind(slow);
  w.a.mov(rax, k_helper());
  w.a.call(rax);
  w.a.jmp(back);
  w.a.section(text_section(w.code));
  w.a.bind(back);
  w.a.mov(ebx, 1);
  w.a.mov(ebp, 1);
  w.a.add(rsp, 24);
  w.a.pop(rbx);
  w.a.pop(rbp);
  w.a.ret();
  ASSERT_EQ(w.code.flatten(), asmjit::kErrorOk);
  EXPECT_EQ(w.rows(1), "+0: cfa=rsp+48 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]\n");
  w.expect_right([](std::uintptr_t start) {
    const auto f = reinterpret_cast<void (*)(long)>(start);
    return f(0), f(1), 0;
  });
}

TEST(HandWritten, CalleesThatPopTheirArguments) {
  WrittenCode w;
  const Label callee = new_label(w.a);
  const auto outside = [](std::uintptr_t start) { return call_marked(start), 0; };
  w.a.push(rbx);
  w.a.push(1);
  w.a.push(2);
  w.a.call(callee);
  w.a.pop(rbx);
  w.a.ret();
  w.a.align(asmjit::AlignMode::kCode, 16);
  w.a.bind(callee);
  w.a.test(rdi, rdi);
  const Label other = new_label(w.a);
  w.a.jz(other);
  w.a.ret(16);
  w.a.bind(other);
  w.a.ret(16);
  w.expect_right(outside);

  // The popping code is elsewhere: only the author knows of it.
  WrittenCode elsewhere;
  elsewhere.a.ret(16);
  std::uintptr_t popping = 0;
  ASSERT_EQ(elsewhere.runtime.add(&popping, &elsewhere.code), asmjit::kErrorOk);
  WrittenCode caller;
  caller.a.push(rbx);
  caller.a.push(1);
  caller.a.push(2);
  caller.a.mov(rax, popping);
  caller.a.call(rax);
  caller.a.callee_pops(16);
  caller.a.pop(rbx);
  caller.a.ret();
  caller.expect_right(outside);
}

TEST(HandWritten, TailCallsAndNoReturnCalls) {
  WrittenCode w;
  const Label second = new_named_label(w.a, "second");
  w.a.push(rbx);
  w.a.pop(rbx);
  w.a.jmp(second);
  w.a.align(asmjit::AlignMode::kCode, 16);
  w.a.bind(second);
  w.a.sub(rsp, 8);
  w.a.test(rsp, rsp);
  const Label never = new_label(w.a);
  w.a.jz(never);
  w.a.add(rsp, 8);
  w.a.mov(rax, k_helper());
  w.a.jmp(rax);
  w.a.bind(never);
  w.a.call(rax);  // at the end of the code: does not return
  EXPECT_EQ(describe_asmjit(w.code).procedures.size(), 1u) << "a label that a jump leads to is part of the procedure";
  w.expect_right();
}

TEST(HandWritten, CodeThatNothingReachesIsDead) {
  WrittenCode w;
  const Label end = new_label(w.a), dead = new_label(w.a);
  w.a.push(rbx);
  w.a.jmp(end);
  w.a.nop();
  w.a.bind(dead);
  w.a.pop(rax);
  w.a.jmp(dead);
  w.a.bind(end);
  w.a.pop(rbx);
  w.a.ret();
  w.expect_right();
}

TEST(HandWritten, PatchedInstructionsOfTheSameLengthCount) {
  WrittenCode w;
  w.a.push(rbx);
  w.a.pop(rbx);
  w.a.ret();
  ASSERT_EQ(set_offset(w.a, 0), asmjit::kErrorOk);
  w.a.push(rbp);
  w.a.pop(rbp);
  ASSERT_EQ(set_offset(w.a, 3), asmjit::kErrorOk);
  EXPECT_EQ(w.rows(), "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]\n+2: cfa=rsp+8 ra=[cfa-8]\n");
}

TEST(HandWritten, ProceduresOfOneShapeShareIt) {
  WrittenCode w;
  for (int i = 0; i < 50; ++i) {
    w.a.procedure();
    w.a.push(rbx);
    w.a.sub(rsp, 16);
    for (int n = 0; n <= i; ++n) w.a.mov(ebx, n);
    w.a.add(rsp, 16);
    w.a.pop(rbx);
    w.a.ret();
  }
  const AsmjitDescription d = describe_asmjit(w.code);
  ASSERT_EQ(d.procedures.size(), 50u);
  for (const AsmjitProcedure& p : d.procedures) EXPECT_EQ(p.description.shape(), d.procedures[0].description.shape());
}

}  // namespace
}  // namespace jitunwind::test
