// Code that no description can be derived for is refused. The refusal names the instruction and the reason, and nothing
// is registered.
#include <gtest/gtest.h>

#include <array>

#include "tests/asmjit/written_code.h"

namespace jitunwind::test {
namespace {

using namespace asmjit::x86;
using asmjit::Label;

struct Case {
  const char* name;
  std::function<void(AsmjitAssembler&)> write;
  const char* refusal;  // all of it
};

/// Writes the prologue of a frame without any registers or stack.
void write_prolog(asmjit::BaseEmitter& e, CallConvId convention) {
  asmjit::FuncDetail detail;
  asmjit::FuncFrame frame;
  EXPECT_EQ(detail.init(signature<void>(convention), e.environment()), asmjit::kErrorOk);
  EXPECT_EQ(frame.init(detail), asmjit::kErrorOk);
  EXPECT_EQ(frame.finalize(), asmjit::kErrorOk);
  EXPECT_EQ(emit_prolog(e, frame), asmjit::kErrorOk);
}

const Case k_cases[] = {
    {"SpFromAnywhere", [](auto& a) { a.mov(rsp, rdi), a.ret(); },
     "mov at +0x0: sets SP from a register that holds no known stack address\n"},
    {"SpFromMemory", [](auto& a) { a.mov(rsp, ptr(rdi)), a.ret(); },
     "mov at +0x0: loads SP from memory that holds no known address\n"},
    {"SpRaisedByARegister", [](auto& a) { a.add(rsp, rax), a.ret(); },
     "ret at +0x3: returns with SP = an address of unknown distance to the cfa, not at the return address: add at +0x0 "
     "moved SP by an unknown amount\n"},
    {"SpExchanged", [](auto& a) { a.xchg(rsp, rax), a.ret(); },
     "xchg at +0x0: changes SP in a way that cannot be followed\n"},
    {"PopsSp", [](auto& a) { a.push(rax), a.pop(rsp), a.ret(); },
     "pop at +0x1: loads SP from memory that holds no known address\n"},
    {"VariableMemoryWithoutAWayBack", [](auto& a) { a.sub(rsp, rax), a.add(rsp, rax), a.ret(); },
     "sub at +0x0: the distance of SP to the caller's frame is lost, and no register or slot keeps it\n"},
    {"AllocaWithoutAFramePointer", [](auto& a) { a.sub(rsp, rax), a.mov(ptr(rsp), rdi), a.ud2(); },
     "sub at +0x0: the distance of SP to the caller's frame is lost, and no register or slot keeps it\n"},
    {"RealignedWithoutAWayBack", [](auto& a) { a.and_(rsp, -64), a.nop(), a.ud2(); },
     "and at +0x0: the distance of SP to the caller's frame is lost, and no register or slot keeps it\n"},
    {"FramePointerLost",
     [](auto& a) { a.push(rbp), a.mov(rbp, rsp), a.and_(rsp, -64), a.mov(ebp, 1), a.nop(), a.ud2(); },
     "mov at +0x8: the distance of SP to the caller's frame is lost, and no register or slot keeps it: and at +0x4 "
     "moved SP by an unknown amount\n"},
    {"RegisterOverwritten", [](auto& a) { a.mov(ebx, 1), a.nop(), a.ud2(); },
     "mov at +0x0: rbx was overwritten before it was saved\n"},
    {"RegisterChangedByCpuid", [](auto& a) { a.emit(Inst::kIdCpuid), a.nop(), a.ud2(); },
     "cpuid at +0x0: rbx was overwritten before it was saved\n"},
    {"RegisterSavedWhereCalleesWrite",
     [](auto& a) { a.mov(ptr(rsp, -8), rbx), a.mov(ebx, 1), a.call(rax), a.mov(rbx, ptr(rsp, -8)), a.ret(); },
     "ret at +0x11: returns without the caller's value in rbx: mov at +0x5 changed it, call at +0xa lost the last copy "
     "of it\n"},
    {"RegisterNeededWhereCalleesWrote",
     [](auto& a) { a.mov(ptr(rsp, -8), rbx), a.mov(ebx, 1), a.call(rax), a.nop(), a.ud2(); },
     "call at +0xa: the last copy of the caller's rbx is lost: mov at +0x5 changed it\n"},
    {"RegisterLostOnOneOfTwoPaths",
     [](auto& a) {
       const Label join = new_label(a);
       a.push(rbx), a.test(rdi, rdi), a.jz(join), a.mov(ebx, 1), a.mov(ptr(rsp), rax), a.bind(join), a.add(rsp, 8),
           a.ret();
     },
     "ret at +0x17: returns without the caller's value in rbx: mov at +0xa changed it, mov at +0xf lost the last copy "
     "of it\n"},
    {"RegisterSavedInDifferentSlotsOnTwoPaths",
     [](auto& a) {
       const Label other = new_label(a), join = new_label(a);
       a.sub(rsp, 24), a.test(rdi, rdi), a.jz(other), a.mov(ptr(rsp, 8), rbx), a.jmp(join), a.bind(other),
           a.mov(ptr(rsp, 16), rbx), a.bind(join), a.nop(), a.mov(rbx, rdi), a.add(rsp, 24), a.ret();
     },
     "ret at +0x24: returns without the caller's value in rbx: nop at +0x1c is reached from paths that saved it in "
     "different places, mov at +0x1d overwrote it\n"},
    {"RegisterSavedOnOneOfTwoPaths",
     [](auto& a) {
       const Label join = new_label(a);
       a.sub(rsp, 24), a.test(rdi, rdi), a.jz(join), a.mov(ptr(rsp, 8), rbx), a.bind(join), a.nop(), a.mov(rbx, rdi),
           a.add(rsp, 24), a.ret();
     },
     "ret at +0x1a: returns without the caller's value in rbx: nop at +0x12 is reached from paths of which some had "
     "not "
     "saved it, mov at +0x13 overwrote it\n"},
    {"RegisterSavedInDifferentSlotsAndNeeded",
     [](auto& a) {
       const Label other = new_label(a), join = new_label(a);
       a.sub(rsp, 24), a.test(rdi, rdi), a.jz(other), a.mov(ptr(rsp, 8), rbx), a.jmp(join), a.bind(other),
           a.mov(ptr(rsp, 16), rbx), a.bind(join), a.nop(), a.mov(rbx, rdi), a.call(rax), a.ud2();
     },
     "mov at +0x1d: rbx was overwritten where no copy of it is at one place: nop at +0x1c is reached from paths "
     "that saved it in different places\n"},
    {"RegisterNotRestored", [](auto& a) { a.push(rbx), a.mov(ebx, 1), a.add(rsp, 8), a.ret(); },
     "ret at +0xa: returns without the caller's value in rbx, which is in [cfa-16]: mov at +0x1 changed it\n"},
    {"RegistersRestoredInTheWrongOrder", [](auto& a) { a.push(rbx), a.push(r12), a.pop(rbx), a.pop(r12), a.ret(); },
     "ret at +0x6: returns without the caller's value in rbx, which is in r12: pop at +0x3 changed it\n"},
    {"ReturnsWithItsFrame", [](auto& a) { a.sub(rsp, 24), a.ret(); },
     "ret at +0x4: returns with SP = cfa-32, not at the return address\n"},
    {"ReturnAddressOverwritten", [](auto& a) { a.mov(qword_ptr(rsp), 0), a.nop(), a.ud2(); },
     "mov at +0x0: the return address is lost\n"},
    {"ReturnsToAnotherAddress", [](auto& a) { a.mov(qword_ptr(rsp), 0), a.ret(); },
     "ret at +0x8: returns with SP = cfa-8, not at the return address: mov at +0x0 overwrote it\n"},
    {"LeavesLikeAnInterrupt", [](auto& a) { a.emit(Inst::kIdIretq); },
     "iretq at +0x0: leaves the procedure in a way that has no caller\n"},
    {"StatesThatDisagree",
     [](auto& a) {
       const Label join = new_label(a);
       a.test(rdi, rdi), a.jz(join), a.push(rax), a.bind(join), a.nop(), a.ret();
     },
     "nop at +0xa: is reached with SP = cfa-8 and with SP = cfa-16\n"},
    {"LoopThatMovesSp",
     [](auto& a) {
       const Label again = new_label(a);
       a.nop(), a.bind(again), a.push(rax), a.jmp(again);
     },
     "push at +0x1: is reached with SP = cfa-8 and with SP = cfa-16\n"},
    {"RunsIntoData", [](auto& a) { a.nop(), embed_u64(a, 0xc3c3c3c3c3c3c3c3); },
     "nop at +0x0: goes on into bytes that are no instruction\n"},
    {"JumpsIntoData",
     [](auto& a) {
       const Label data = new_label(a);
       a.jmp(data), a.bind(data), embed_u64(a, 0xc3);
     },
     "jmp at +0x0: jumps to a label that is not bound to an instruction\n"},
    {"IndirectJumpInTheMiddle", [](auto& a) { a.push(rbx), a.jmp(rax), a.pop(rbx), a.ret(); },
     "jmp at +0x1: jumps to an unknown address with SP = cfa-16, not at the return address\n"},
    {"IndirectJumpThroughMemory", [](auto& a) { a.mov(ebx, 1), a.jmp(qword_ptr(rax)); },
     "jmp at +0x5: jumps to an unknown address without the caller's value in rbx: mov at +0x0 overwrote it, which was "
     "saved nowhere\n"},
    {"JumpIntoTheMiddleByArithmetic",
     [](auto& a) {
       const Label pushes = new_label(a);
       a.push(rbx), a.lea(rax, ptr(pushes)), a.add(rax, rdi), a.jmp(rax), a.bind(pushes), a.push(1), a.push(2), a.ud2();
     },
     "jmp at +0xb: jumps to an unknown address with SP = cfa-16, not at the return address\n"},
    {"JumpTargetsThatAreData",
     [](auto& a) {
       const Label data = new_label(a);
       a.jmp(rax), a.jump_targets(std::array{data}), a.bind(data), embed_u64(a, 0xc3);
     },
     "jmp at +0x0: jumps to a label that is not bound to an instruction\n"},
    {"ReturnsByJumpWithItsFrame", [](auto& a) { a.mov(rcx, ptr(rsp)), a.jmp(rcx); },
     "jmp at +0x4: returns with SP = cfa-8, below the caller's frame\n"},
    {"ReturnsByJumpWithoutARegister", [](auto& a) { a.push(rbx), a.mov(ebx, 1), a.pop(rcx), a.pop(rcx), a.jmp(rcx); },
     "jmp at +0x8: returns without the caller's value in rbx, which is in [cfa-16]: mov at +0x1 changed it\n"},
    {"CommonTailOfTwoConventions",
     [](auto& a) {
       const Label tail = new_label(a);
       for (const CallConvId convention : {CallConvId::kCDecl, CallConvId::kX64Windows}) {
         a.procedure();
         write_prolog(a, convention);
         a.jmp(tail);
       }
       a.align(asmjit::AlignMode::kCode, 16), a.bind(tail), a.ret();
     },
     "ret at +0x10: is reached from procedures of different calling conventions\n"},
    {"RunsIntoAnotherProcedure",
     [](auto& a) {
       const Label other = new_label(a);
       a.call(other), a.push(rbx), a.bind(other), a.ret();
     },
     "push at +0x5: goes on into another procedure with SP = cfa-16, not at the return address\n"},
    {"LabelThatNothingReaches",
     [](auto& a) {
       const Label mystery = new_label(a);
       a.ret(), a.bind(mystery), a.push(rbx), a.pop(rbx), a.ret();
     },
     "push at +0x1: is reached by nothing that was seen: name its label if a procedure begins here\n"},
    {"CodeBehindData", [](auto& a) { embed_u64(a, 1), a.ret(); },
     "ret at +0x8: is reached by nothing that was seen: name its label if a procedure begins here\n"},
    {"CalleesThatPopThisOrThat",
     [](auto& a) {
       const Label callee = new_label(a), other = new_label(a);
       a.call(callee), a.ret();
       a.bind(callee), a.test(rdi, rdi), a.jz(other), a.ret(8), a.bind(other), a.ret(16);
     },
     "ret at +0x5: returns with SP = cfa+8, not at the return address\n"
     "ret at +0x12: returns popping other arguments than another ret does\n"},
    {"CodeWrittenOver", [](auto& a) { a.mov(eax, 1), a.ret(), set_offset(a, 0), a.nop(), set_offset(a, 6); },
     "+0x0: was written over other code\n"},
    {"DataWrittenOverCode", [](auto& a) { a.nop(), a.ret(), set_offset(a, 0), a.embed("\x90", 1), set_offset(a, 2); },
     "+0x0: was written over other code\n"},
};

class Refusals : public testing::TestWithParam<Case> {};

TEST_P(Refusals, NameInstructionAndReason) {
  WrittenCode w;
  GetParam().write(w.a);
  const AsmjitDescription d = describe_asmjit(w.code);
  EXPECT_EQ(d.text(), GetParam().refusal);
  EXPECT_FALSE(d.complete());
  void* start = &start;
  EXPECT_EQ(w.runtime.add(&start, &w.code), asmjit_version::k_invalid_state);
  EXPECT_EQ(start, nullptr);
  EXPECT_EQ(w.runtime.registered(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Code, Refusals, testing::ValuesIn(k_cases),
                         [](const auto& info) { return std::string(info.param.name); });

std::string refusal_of(asmjit::CodeHolder& code) { return describe_asmjit(code).text(); }

constexpr const char* k_not_seen = "+0x0: bytes here were not written through an AsmjitAssembler that is attached\n";

TEST(Refusals, OfEmittersThatKeepNoRecord) {
  asmjit::JitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  {
    constexpr const char* keeps_none =
        "+0x0: an asmjit::x86::Assembler keeps no record of what it writes: use jitunwind::AsmjitAssembler\n";
    Assembler plain(&code);
    plain.ret();
    EXPECT_EQ(refusal_of(code), keeps_none);
    AsmjitAssembler idle(&code);
    EXPECT_EQ(refusal_of(code), keeps_none);
    idle.nop();
    EXPECT_EQ(refusal_of(code), k_not_seen) << "the first byte is plain's";
  }
  EXPECT_EQ(refusal_of(code), "+0x0: no emitter is attached to the code any more\n");
  AsmjitAssembler late(&code);
  EXPECT_EQ(refusal_of(code), k_not_seen);
  late.nop();
  EXPECT_EQ(refusal_of(code), k_not_seen);
}

/// Emitters that wrote nothing do not matter, whatever they are.
TEST(Refusals, NotOfIdleEmitters) {
  asmjit::JitRuntime runtime;
  for (const bool by_builder : {false, true}) {
    asmjit::CodeHolder code;
    code.init(runtime.environment());
    Builder idle_builder(&code), builder(&code);
    AsmjitAssembler idle(&code), a(&code);
    Assembler idle_plain(&code);
    Compiler idle_compiler(&code);
    if (by_builder) {
      builder.push(rbx), builder.pop(rbx), builder.ret();
      ASSERT_EQ(builder.finalize(), asmjit::kErrorOk);
    } else {
      a.push(rbx), a.pop(rbx), a.ret();
    }
    const AsmjitDescription d = describe_asmjit(code);
    EXPECT_EQ(d.text(), "");
    EXPECT_EQ(d.procedures.size(), 1u);
    idle_plain.JITUNWIND_ASMJIT(setOffset, set_offset)(1);
    idle_plain.push(rcx);
    EXPECT_NE(refusal_of(code), "") << "what another has written over is noticed";
  }
}

/// Each writes a part; two builders of which one was finalized are told apart by the bytes.
TEST(Refusals, NotOfSeveralEmittersThatWereSeen) {
  asmjit::JitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  asmjit::Section* cold = nullptr;
  ASSERT_EQ(new_section(code, cold, ".cold"), asmjit::kErrorOk);
  AsmjitAssembler hot(&code), other(&code);
  other.section(cold);
  const Label slow = new_label(hot), back = new_label(hot), cases[] = {new_label(hot), new_label(hot)};
  const Label cold_cases[] = {new_label(hot), new_label(hot)};
  hot.push(rbx);
  hot.jz(slow);
  hot.jmp(rax);
  hot.jump_targets(cases);
  hot.bind(cases[0]);
  hot.nop();
  hot.bind(cases[1]);
  other.bind(slow);
  other.mov(ebx, 1);
  other.jmp(rax);
  other.jump_targets(cold_cases);
  other.bind(cold_cases[0]);
  other.nop();
  other.bind(cold_cases[1]);
  other.jmp(back);
  hot.bind(back);
  hot.pop(rbx);
  hot.ret();
  // The third emitter writes behind the first one's code, in the same section.
  AsmjitAssembler third(&code);
  third.procedure("third");
  third.push(r12);
  third.pop(r12);
  third.ret();
  ASSERT_EQ(code.flatten(), asmjit::kErrorOk);
  const AsmjitDescription d = describe_asmjit(code);
  ASSERT_EQ(d.text(), "");
  ASSERT_EQ(d.procedures.size(), 3u);
  EXPECT_EQ(d.procedures[1].name, "third");
  const AsmjitProcedure& in_cold = d.procedures[2];
  EXPECT_EQ(in_cold.description.to_text(in_cold.end - in_cold.begin), "+0: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n");

  asmjit::CodeHolder of_builders;
  of_builders.init(runtime.environment());
  Builder first(&of_builders), second(&of_builders);
  first.push(rcx);
  second.push(rbx), second.pop(rbx), second.ret();
  ASSERT_EQ(second.finalize(), asmjit::kErrorOk);
  EXPECT_EQ(refusal_of(of_builders), "");
}

/// The bytes differ from the emitted ones: a frame's size was filled in behind the emitter's back. Bytes that are
/// written through the emitter, or put back, are accepted.
TEST(Refusals, OfBytesChangedInTheBuffer) {
  WrittenCode w;
  const Label called = new_label(w.a);
  w.a.long_().sub(rsp, 0x1008);
  w.a.call(called);
  w.a.call(asmjit::imm(reinterpret_cast<void*>(&refusal_of)));
  w.a.lea(rax, ptr(called));
  w.a.long_().add(rsp, 0x1008);
  w.a.ret();
  w.a.bind(called);
  w.a.ret();
  EXPECT_EQ(refusal_of(w.code), "");
  std::uint8_t& size = text_section(w.code)->data()[4];
  size = 0x20;
  EXPECT_EQ(refusal_of(w.code), "sub at +0x0: has other bytes in the buffer than were written for it\n");
  void* start = nullptr;
  EXPECT_EQ(w.runtime.add(&start, &w.code), asmjit_version::k_invalid_state);
  size = 0x10;
  EXPECT_EQ(refusal_of(w.code), "");
  const std::size_t end = w.a.offset();
  set_offset(w.a, 0);
  w.a.long_().sub(rsp, 0x2008);
  set_offset(w.a, end);
  EXPECT_EQ(refusal_of(w.code).substr(0, 21), "ret at +0x20: returns") << refusal_of(w.code);
}

TEST(Refusals, OfBuildersThatDoNotSayWhatTheCodeIs) {
  asmjit::JitRuntime runtime;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  Builder builder(&code);
  builder.push(rbx);
  builder.pop(rbx);
  builder.ret();
  constexpr const char* not_the_nodes =
      "+0x0: the code is not what the attached emitter's nodes say: use an AsmjitAssembler for what was added\n";
  EXPECT_EQ(refusal_of(code), not_the_nodes) << "not finalized";
  ASSERT_EQ(builder.finalize(), asmjit::kErrorOk);
  EXPECT_EQ(refusal_of(code), "");
  // The test changes the three bytes to an instruction with another register.
  text_section(code)->data()[1] = 0x5d;
  EXPECT_EQ(refusal_of(code), not_the_nodes);
  text_section(code)->data()[1] = 0x5b;
  EXPECT_EQ(refusal_of(code), "");
  builder.ret();
  EXPECT_EQ(refusal_of(code), not_the_nodes) << "nodes behind the code";

  asmjit::CodeHolder other;
  other.init(runtime.environment());
  Compiler unfinished(&other);
  add_func(unfinished, signature<void>());
  unfinished.add(new_int64(unfinished), 1);
  end_func(unfinished);
  EXPECT_EQ(refusal_of(other), not_the_nodes) << "registers not allocated";

  asmjit::CodeHolder third;
  third.init(runtime.environment());
  Builder nonsense(&third);
  nonsense.emit(Inst::kIdMov, eax);
  EXPECT_EQ(refusal_of(third), "+0x0: the emitter's nodes cannot be written as instructions: it was not finalized\n");
}

TEST(Refusals, OfOtherCpus) {
  asmjit::CodeHolder code;
  code.init(asmjit::Environment(asmjit::Arch::kX86));
  AsmjitAssembler a(&code);
  a.ret();
  EXPECT_EQ(refusal_of(code), "+0x0: code for another CPU than x86-64\n");
}

TEST(Refusals, DoNotTakeOtherProceduresWithThem) {
  std::vector<std::string> told;
  AsmjitRuntime runtime(
      {.undescribed = Undescribed::add, .on_refusal = [&](const AsmjitRefusal& r) { told.push_back(r.text()); }});
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  a.procedure("good");
  a.push(rbx);
  a.pop(rbx);
  a.ret();
  a.procedure("bad");
  a.mov(rsp, rdi);
  a.ret();
  void* start = nullptr;
  ASSERT_EQ(runtime.add(&start, &code), asmjit::kErrorOk);
  EXPECT_NE(start, nullptr);
  EXPECT_EQ(runtime.registered(), 1u);
  EXPECT_EQ(told,
            std::vector<std::string>{"bad: mov at +0x3: sets SP from a register that holds no known stack address"});
  EXPECT_EQ(runtime.release(start), asmjit::kErrorOk);
  EXPECT_EQ(runtime.registered(), 0u);
}

class Handler : public asmjit::ErrorHandler {
 public:
#if JITUNWIND_ASMJIT_SNAKE_CASE
  void handle_error(asmjit::Error error, const char* message, asmjit::BaseEmitter*) override {
#else
  void handleError(asmjit::Error error, const char* message, asmjit::BaseEmitter*) override {
#endif
    last = error;
    text = message;
    if (throws) throw 1;
  }
  asmjit::Error last = asmjit::kErrorOk;
  std::string text;
  bool throws = false;
};

TEST(Refusals, NameWhatWasGivenToAdd) {
  std::vector<std::string> told;
  AsmjitRuntime runtime({.on_refusal = [&](const AsmjitRefusal& r) { told.push_back(r.text()); }});
  void* start = nullptr;
  WrittenCode w;
  w.a.mov(rsp, rdi);
  w.a.ret();
  w.a.procedure("its_own");
  w.a.mov(rsp, rdi);
  w.a.ret();
  EXPECT_EQ(runtime.add(&start, &w.code, "my_function"), asmjit_version::k_invalid_state);
  asmjit::CodeHolder unseen;
  unseen.init(runtime.environment());
  Assembler plain(&unseen);
  plain.ret();
  EXPECT_EQ(runtime.add(&start, &unseen, "plain"), asmjit_version::k_invalid_state);
  EXPECT_EQ(told, (std::vector<std::string>{
                      "my_function: mov at +0x0: sets SP from a register that holds no known stack address",
                      "its_own: mov at +0x4: sets SP from a register that holds no known stack address",
                      "plain: +0x0: an asmjit::x86::Assembler keeps no record of what it writes: use "
                      "jitunwind::AsmjitAssembler"}));
}

/// This runs in its own process, since the refusal is printed once in each.
TEST(Refusals, ThatNobodyHearsAreSaidOnce) {
  const auto refuse = [](bool heard) {
    AsmjitRuntimeOptions options;
    if (heard) options.on_refusal = [](const AsmjitRefusal&) {};
    AsmjitRuntime runtime(options);
    asmjit::CodeHolder code;
    code.init(runtime.environment());
    Assembler plain(&code);
    plain.ret();
    void* start = nullptr;
    (void)runtime.add(&start, &code, "my_function");
  };
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT((refuse(true), std::fputs("heard\n", stderr), refuse(false), refuse(false), std::exit(0)),
              testing::ExitedWithCode(0),
              "^heard\njitunwind: AsmjitRuntime::add\\(\\) refuses code: my_function: \\+0x0: an "
              "asmjit::x86::Assembler keeps no record of what it writes: use jitunwind::AsmjitAssembler \\(said once; "
              "on_refusal or an ErrorHandler hears of all\\)\n$");
}

TEST(Refusals, ReachTheErrorHandlerOfTheCode) {
  for (const bool throws : {false, true}) {
    Handler handler;
    WrittenCode w;
    w.code.JITUNWIND_ASMJIT(setErrorHandler, set_error_handler)(&handler);
    w.a.mov(rsp, rdi);
    w.a.ret();
    handler.throws = throws;
    void* start = nullptr;
    EXPECT_EQ(w.runtime.add(&start, &w.code), asmjit_version::k_invalid_state);
    EXPECT_EQ(handler.last, asmjit_version::k_invalid_state);
    EXPECT_EQ(handler.text, "mov at +0x0: sets SP from a register that holds no known stack address\n");
  }
}

}  // namespace
}  // namespace jitunwind::test
