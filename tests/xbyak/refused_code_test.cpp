// Code of xbyak whose frame cannot be described is refused, with the place and the reason, and nothing is registered.
#include <jitunwind/xbyak.h>

#include <gtest/gtest.h>

#include <string>

#include "jitunwind/dyn_info/registry/registration_checks_internal.h"

namespace jitunwind::test {
namespace {

using xbyak::CodeGenerator, xbyak::Reading;
using Write = void (*)(CodeGenerator& c);

std::string refusal_of(Write write, Reading reading = Reading::noted) {
  CodeGenerator code;
  write(code);
  const Status status = code.register_code("made", reading);
  EXPECT_TRUE(status || code.registrations().empty());
  return status ? "" : status.error().text();
}

struct Refused {
  const char* reason;
  std::size_t at;
  Write write;
};

std::string text_of(const Refused& refused) {
  return Error{ErrorCode::invalid_argument, refused.at, refused.reason}.text();
}

constexpr Refused k_refused[] = {
    {"returns with rsp not at the return address", 1, [](CodeGenerator& c) { c.push(c.rbx), c.ret(); }},
    {"raises rsp above the return address", 0, [](CodeGenerator& c) { c.pop(c.rcx), c.jmp(c.rcx); }},
    {"moves rsp by an unknown amount, without a frame pointer in rbp", 0,
     [](CodeGenerator& c) { c.and_(c.rsp, 0xffffffc0), c.ret(); }},
    {"moves rsp by an unknown amount, without a frame pointer in rbp", 0,
     [](CodeGenerator& c) { c.sub(c.rsp, c.rdi), c.add(c.rsp, c.rdi), c.ret(); }},
    {"overwrites a register that calls preserve, and that is not saved", 0,
     [](CodeGenerator& c) { c.mov(c.rbp, c.rsp), c.leave(), c.ret(); }},
    {"overwrites rbp, by which the frame is found", 8,
     [](CodeGenerator& c) {
       c.push(c.rbp), c.mov(c.rbp, c.rsp), c.and_(c.rsp, 0xffffffc0), c.mov(c.rbp, c.rdi), c.leave(), c.ret();
     }},
    {"loads rsp from rbp, which is no frame pointer", 1,
     [](CodeGenerator& c) { c.push(c.rbp), c.mov(c.rsp, c.rbp), c.pop(c.rbp), c.ret(); }},
    {"releases the slot of a register that does not have its value again", 4,
     [](CodeGenerator& c) { c.push(c.rbp), c.mov(c.rbp, c.rsp), c.add(c.rsp, 8), c.ret(); }},
    {"saves a register below rsp", 0, [](CodeGenerator& c) { c.mov(c.ptr[c.rsp - 8], c.rbx), c.ret(); }},
    {"saves a register at an unknown distance from the caller's frame", 8,
     [](CodeGenerator& c) {
       c.push(c.rbp), c.mov(c.rbp, c.rsp), c.and_(c.rsp, 0xffffffc0), c.push(c.rbx), c.pop(c.rbx), c.leave(), c.ret();
     }},
    {"leaves the procedure with its frame in place", 1,
     [](CodeGenerator& c) { c.push(c.rbx), c.jmp(c.getCurr() + 4096), c.pop(c.rbx), c.ret(); }},
    {"is reached by nothing that was seen: procedure() says that one begins here", 1,
     [](CodeGenerator& c) { c.ret(), c.push(c.rbx), c.pop(c.rbx), c.ret(); }},
    {"is an instruction whose effect on the frame is not known", 0,
     [](CodeGenerator& c) { c.enter(16, 0), c.leave(), c.ret(); }},
    {"is reached with different frames", 3,
     [](CodeGenerator& c) {
       Xbyak::Label join;
       c.jz(join), c.push(c.rbx), c.L(join), c.pop(c.rbx), c.ret();
     }},
    {"is reached with different frames", 6,
     [](CodeGenerator& c) {
       Xbyak::Label other, join;
       c.jz(other), c.push(c.rbx), c.jmp(join), c.L(other), c.push(c.rcx), c.L(join), c.pop(c.rax), c.ret();
     }},
    {"was written twice", 0,
     [](CodeGenerator& c) {
       c.push(c.rbx), c.nop(), c.pop(c.rbx), c.ret();
       const std::size_t end = c.getSize();
       c.setSize(0), c.push(c.r12), c.setSize(end);
     }},
};

TEST(XbyakRefusals, NameThePlaceAndTheReason) {
  for (const Refused& refused : k_refused) {
    const std::string text = refusal_of(refused.write);
    EXPECT_EQ(text, text_of(refused));
  }
}

TEST(XbyakRefusals, CodeWithoutAReturn) {
  // Its StackFrame writes through the base class: not a word of the frame is noted.
  const Write unseen = [](CodeGenerator& c) { Xbyak::util::StackFrame frame(&c, 0, 9); };
  EXPECT_NE(refusal_of(unseen).find("control runs off the end"), std::string::npos);
  EXPECT_EQ(refusal_of(unseen, Reading::every), "");
  EXPECT_EQ(refusal_of([](CodeGenerator& c) { c.call(c.rdi), c.unreachable(); }), "");
  EXPECT_EQ(refusal_of([](CodeGenerator& c) { c.push(c.rbx), c.int3(), c.pop(c.rbx), c.ret(); }), "");
  EXPECT_NE(refusal_of([](CodeGenerator& c) {
              Xbyak::Label unbound;
              c.jmp(unbound);
            }).find("a label is bound nowhere"),
            std::string::npos);
}

/// These are found by reading every instruction alone.
TEST(XbyakRefusals, InstructionsOfOthers) {
  const Write unsaved = [](CodeGenerator& c) { c.xor_(c.ebx, c.ebx), c.ret(); };
  EXPECT_EQ(refusal_of(unsaved).starts_with("JITUNWIND_CHECK refuses it"), refuses_mistakes());
  EXPECT_NE(refusal_of(unsaved, Reading::every).find("that is not saved"), std::string::npos);
  const Write pushed = [](CodeGenerator& c) { static_cast<Xbyak::CodeGenerator&>(c).push(c.rbx), c.ret(); };
  EXPECT_NE(refusal_of(pushed, Reading::every).find("rsp not at the return address"), std::string::npos);
  const Write data = [](CodeGenerator& c) { c.ret(), c.db(0x62), c.db(0x62); };
  EXPECT_EQ(refusal_of(data, Reading::every), "");
}

}  // namespace
}  // namespace jitunwind::test
