// Legal code that few write: each sequence executed, and compared at every instruction; where the CPU cannot execute
// it, its rows.
#include <gtest/gtest.h>

#include <array>

#include "tests/asmjit/written_code.h"

namespace jitunwind::test {
namespace {

using namespace asmjit::x86;
using asmjit::Label;

extern "C" {
[[gnu::noinline]] void unusual_code_helper() { asm volatile("" ::: "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11"); }
}
constexpr auto k_unusual_helper = [] { return reinterpret_cast<std::uintptr_t>(&unusual_code_helper); };

void call_helper(AsmjitAssembler& a) {
  a.mov(rax, k_unusual_helper());
  a.call(rax);
}

/// Pushes as code does that passes a list of any length.
void push_in_a_loop(AsmjitAssembler& a, int times) {
  const Label again = new_label(a);
  a.mov(ecx, times);
  a.bind(again);
  a.push(rcx);
  a.dec(ecx);
  a.jnz(again);
}

TEST(UnusualCode, PushesInALoopUnderAFramePointer) {
  WrittenCode w;
  w.a.push(rbp);
  w.a.mov(rbp, rsp);
  w.a.push(rbx);
  push_in_a_loop(w.a, 5);
  w.a.mov(ebx, 1);
  call_helper(w.a);
  w.a.mov(rbx, ptr(rbp, -8));
  w.a.leave();
  w.a.ret();
  w.expect_right();
}

TEST(UnusualCode, SpRaisedByARegisterUnderAFramePointer) {
  for (const bool by_address : {false, true}) {
    WrittenCode w;
    w.a.push(rbp);
    w.a.mov(rbp, rsp);
    w.a.push(rbx);
    push_in_a_loop(w.a, 4);
    call_helper(w.a);
    w.a.mov(ecx, by_address ? 4 : 32);
    if (by_address)
      w.a.lea(rsp, ptr(rsp, rcx, 3));
    else
      w.a.add(rsp, rcx);
    w.a.mov(ebx, 1);
    call_helper(w.a);
    w.a.mov(rbx, ptr(rbp, -8));
    w.a.mov(rsp, rbp);
    w.a.pop(rbp);
    w.a.ret();
    w.expect_right();
  }
}

TEST(UnusualCode, SpRaisedByWhatItWasLoweredBy) {
  WrittenCode w;
  w.a.push(rbp);
  w.a.mov(rbp, rsp);
  w.a.push(rbx);
  w.a.push(r12);
  w.a.mov(ebx, 32);
  w.a.sub(rsp, rbx);
  call_helper(w.a);
  w.a.add(rsp, rbx);
  w.a.pop(r12);
  w.a.pop(rbx);
  w.a.pop(rbp);
  w.a.ret();
  w.expect_right();
}

/// SP is not restored by another amount, or by the same amount once SP was moved.
TEST(UnusualCode, SpRaisedByAnythingElseIsUnknown) {
  for (const bool moved : {false, true}) {
    WrittenCode w;
    w.a.push(rbp);
    w.a.mov(rbp, rsp);
    w.a.sub(rsp, rax);
    if (moved) w.a.push(rcx);
    w.a.add(rsp, moved ? rax : rdx);
    w.a.pop(rbp);
    w.a.ret();
    EXPECT_EQ(w.rows(), moved ? "ret at +0xc: returns with SP = an address of unknown distance to the cfa, not at the "
                                "return address: add at +0x8 moved SP by an unknown amount\n"
                              : "ret at +0xb: returns with SP = an address of unknown distance to the cfa, not at the "
                                "return address: add at +0x7 moved SP by an unknown amount\n");
  }
}

TEST(UnusualCode, StackProbedInALoop) {
  WrittenCode w;
  const Label again = new_label(w.a);
  w.a.lea(r11, ptr(rsp, -3 * 4096));
  w.a.bind(again);
  w.a.sub(rsp, 4096);
  w.a.mov(qword_ptr(rsp), 0);
  w.a.cmp(rsp, r11);
  w.a.jne(again);
  call_helper(w.a);
  w.a.add(rsp, 3 * 4096);
  w.a.ret();
  w.expect_right();

  WrittenCode forward;
  const Label done = new_label(forward.a), more = new_label(forward.a);
  forward.a.lea(r11, ptr(rsp, -2 * 4096));
  forward.a.bind(more);
  forward.a.sub(rsp, 4096);
  forward.a.cmp(r11, rsp);
  forward.a.je(done);
  forward.a.jmp(more);
  forward.a.bind(done);
  forward.a.add(rsp, 2 * 4096);
  forward.a.ret();
  forward.expect_right();
}

TEST(UnusualCode, RegisterKeptByExchange) {
  WrittenCode w;
  w.a.xchg(r11, rbx);
  w.a.xor_(ebx, ebx);
  w.a.xchg(rbx, r11);
  w.a.ret();
  EXPECT_EQ(w.rows(), "+0: cfa=rsp+8 ra=[cfa-8]\n+3: cfa=rsp+8 rbx=r11 ra=[cfa-8]\n+8: cfa=rsp+8 ra=[cfa-8]\n");
  w.expect_right();

  // SP itself gets an address of the frame.
  WrittenCode of_sp;
  of_sp.a.lea(r11, ptr(rsp, -64));
  of_sp.a.xchg(rsp, r11);
  of_sp.a.nop();
  of_sp.a.xchg(rsp, r11);
  of_sp.a.ret();
  of_sp.expect_right();
}

/// A cursor has no values of vector registers, so it could not find rbx. A copy may be in any register.
TEST(UnusualCode, RegisterKeptInAVectorRegister) {
  WrittenCode w;
  w.a.movq(xmm0, rbx);
  w.a.xor_(ebx, ebx);
  w.a.movq(rbx, xmm0);
  w.a.ret();
  EXPECT_EQ(w.rows(), "xor at +0x5: keeps rbx in xmm0 alone, where walks cannot read it\n");

  WrittenCode copy;
  copy.a.sub(rsp, 24);
  copy.a.movq(xmm1, rbx);
  copy.a.movq(qword_ptr(rsp, 8), xmm1);
  copy.a.xor_(ebx, ebx);
  copy.a.movq(xmm2, qword_ptr(rsp, 8));
  copy.a.movq(xmm3, xmm2);
  copy.a.movq(rbx, xmm3);
  copy.a.add(rsp, 24);
  copy.a.ret();
  copy.expect_right();
}

TEST(UnusualCode, RegisterSavedInDifferentSlotsOnTwoPaths) {
  WrittenCode w;
  const Label other = new_label(w.a), meet = new_label(w.a);
  w.a.sub(rsp, 24);
  w.a.test(rdi, rdi);
  w.a.jz(other);
  w.a.mov(ptr(rsp, 8), rbx);
  w.a.mov(ebx, 1);
  w.a.jmp(meet);
  w.a.bind(other);
  w.a.mov(ptr(rsp, 16), rbx);
  w.a.mov(ebx, 0);
  w.a.bind(meet);
  w.a.nop();
  w.a.ud2();
  EXPECT_EQ(w.rows(),
            "nop at +0x26: is reached from paths that keep the caller's rbx in different places: mov at +0x12 changed "
            "it\n");
}

TEST(UnusualCode, ItsOwnPcByACall) {
  for (const int way : {0, 1, 2}) {
    WrittenCode w;
    const Label next = new_label(w.a);
    w.a.push(rbx);
    w.pc_pushes.push_back(w.a.offset());
    w.a.call(next);
    w.a.bind(next);
    if (way == 0) w.a.pop(rbx);
    if (way == 1) w.a.mov(rbx, ptr(rsp)), w.a.add(rsp, 8);
    if (way == 2) w.a.add(rsp, 8);
    call_helper(w.a);
    w.a.pop(rbx);
    w.a.ret();
    w.expect_right();
  }
}

/// A procedure that runs its rest twice: it calls the code behind the call.
TEST(UnusualCode, ACallOfWhatIsBehindIt) {
  WrittenCode w;
  const Label next = new_label(w.a);
  w.a.push(rbx);
  w.a.pop(rbx);
  w.a.call(next);
  w.a.bind(next);
  w.a.push(rbx);
  w.a.pop(rbx);
  w.a.ret();
  EXPECT_EQ(describe_asmjit(w.code).procedures.size(), 2u);
  w.expect_right();
}

TEST(UnusualCode, ReturnsToAPushedLabel) {
  WrittenCode w;
  const Label target = new_label(w.a);
  w.a.push(rbx);
  w.a.lea(rax, ptr(target));
  w.a.push(rax);
  w.a.ret();
  embed_u64(w.a, 0);
  w.a.bind(target);
  w.a.mov(ebx, 1);
  w.a.pop(rbx);
  w.a.ret();
  w.expect_right();
}

TEST(UnusualCode, SpKeptTwiceAndRoundedDown) {
  WrittenCode w;
  w.a.push(rsp);
  w.a.push(qword_ptr(rsp));
  w.a.and_(rsp, -16);
  call_helper(w.a);
  w.a.mov(rsp, ptr(rsp, 8));
  w.a.ret();
  EXPECT_EQ(w.rows(),
            "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 ra=[cfa-8]\n+4: cfa=rsp+24 ra=[cfa-8]\n"
            "+8: cfa=[rsp+8]+8 ra=[cfa-8]\n+19: cfa=rsp+8 ra=[cfa-8]\n");
  w.expect_right([](std::uintptr_t start) {
    call_marked(start);
    // The stack is not aligned here, so SP is rounded by another amount.
    asm volatile("sub $8, %%rsp; call *%0; add $8, %%rsp"
                 :
                 : "r"(start)
                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
    return 0;
  });

  // SP is rounded by more than the copies allow for.
  WrittenCode by_more;
  by_more.a.push(rsp);
  by_more.a.push(qword_ptr(rsp));
  by_more.a.and_(rsp, -32);
  by_more.a.mov(rsp, ptr(rsp, 8));
  by_more.a.ret();
  EXPECT_EQ(by_more.rows(), "mov at +0x8: loads SP from memory that holds no known address\n");
}

TEST(UnusualCode, NestedEnter) {
  WrittenCode w;
  w.a.enter(16, 1);
  w.a.enter(32, 2);
  call_helper(w.a);
  w.a.leave();
  w.a.leave();
  w.a.ret();
  w.expect_right();
}

/// A failed transaction continues at its label with everything undone. Not every CPU has transactions.
TEST(UnusualCode, Transactions) {
  WrittenCode w;
  const Label failed = new_label(w.a), without = new_label(w.a);
  w.a.push(rbx);
  w.a.test(rdi, rdi);
  w.a.jz(without);
  w.a.xbegin(failed);
  w.a.push(rcx);
  w.a.pop(rcx);
  w.a.xend();
  w.a.bind(without);
  w.a.pop(rbx);
  w.a.ret();
  w.a.bind(failed);
  w.a.mov(ebx, 1);
  w.a.pop(rbx);
  w.a.ret();
  EXPECT_EQ(w.rows(),
            "+0: cfa=rsp+8 ra=[cfa-8]\n"
            "+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n"
            "+11: cfa=rsp+24 rbx=[cfa-16] ra=[cfa-8]\n"
            "+12: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n"
            "+16: cfa=rsp+8 ra=[cfa-8]\n"
            "+17: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n"
            "+1d: cfa=rsp+8 ra=[cfa-8]\n");
}

TEST(UnusualCode, InstructionsWrittenAsBytes) {
  constexpr std::array<std::uint8_t, 2> k_mov_bl{0xb3, 0x07};
  constexpr std::array<std::uint8_t, 1> k_nop{0x90};
  WrittenCode w;
  w.a.push(rbx);
  EXPECT_EQ(w.a.embed_instruction(k_nop), asmjit::kErrorOk);
  EXPECT_EQ(w.a.embed_instruction(k_mov_bl, {rbx}), asmjit::kErrorOk);
  call_helper(w.a);
  w.a.pop(rbx);
  w.a.ret();
  w.expect_right();

  EXPECT_EQ(w.a.embed_instruction({}), asmjit_version::k_invalid_argument);
  EXPECT_EQ(w.a.embed_instruction(std::array<std::uint8_t, 16>{}), asmjit_version::k_invalid_argument);

  WrittenCode not_saved;
  not_saved.a.embed_instruction(k_mov_bl, {rbx});
  not_saved.a.ret();
  EXPECT_EQ(not_saved.rows(),
            "ret at +0x2: returns without the caller's value in rbx: embedded instruction at +0x0 overwrote it, which "
            "was saved nowhere\n");
  WrittenCode moves_sp;
  moves_sp.a.embed_instruction(k_nop, {rsp});
  moves_sp.a.ret();
  EXPECT_EQ(moves_sp.rows(), "embedded instruction at +0x0: changes SP in a way that cannot be followed\n");
}

}  // namespace
}  // namespace jitunwind::test
