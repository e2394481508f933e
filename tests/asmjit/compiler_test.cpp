// Code that an x86::Compiler adds to its functions.
#include <gtest/gtest.h>

#include "jitunwind/adapters/asmjit/known_frames/compiled_functions_p.h"
#include "tests/asmjit/frame_shapes.h"
#include "tests/asmjit/written_code.h"

namespace jitunwind::test {
namespace {

using namespace asmjit::x86;
using asmjit::ConstPoolScope;

Mem new_constant(Compiler& cc, ConstPoolScope scope, std::uint64_t value) {
  return cc.JITUNWIND_ASMJIT(newConst, new_const)(scope, &value, sizeof value);
}

// covers: DY47
TEST(AsmjitCompiler, ConstantsBehindFunctionsAreNoPartOfThem) {
  WrittenCode w;
  w.code.detach(&w.a);
  Compiler cc(&w.code);
  for (const char* name : {"first", "second"}) {
    cc.bind(new_named_label(cc, name));
    asmjit::FuncNode* function = add_func(cc, signature<void>());
    ASSERT_NE(function, nullptr);
    add_dirty(function->frame(), RegGroup::kGp, 1u << 3 | 1u << 12);
    const Gp value = new_int64(cc);
    // The constants would be instructions: ret, push rbp.
    cc.mov(value, new_constant(cc, ConstPoolScope::kLocal, 0xc3c3c3c3c3c3c3c3));
    cc.add(value, new_constant(cc, ConstPoolScope::kGlobal, 0x5555555555555555));
    cc.mov(rbx, value);
    cc.mov(r12, value);
    end_func(cc);
  }
  ASSERT_EQ(cc.finalize(), asmjit::kErrorOk);
  const AsmjitDescription d = describe_asmjit(w.code);
  ASSERT_TRUE(d.complete()) << d.text();
  ASSERT_EQ(d.procedures.size(), 2u);
  EXPECT_EQ(d.procedures[0].name, "first");
  EXPECT_EQ(d.procedures[1].name, "second");
  EXPECT_GE(d.procedures[1].begin, d.procedures[0].end + sizeof(std::uint64_t));
  const std::size_t code_size = asmjit_version::buffer_size(*text_section(w.code));
  EXPECT_GE(code_size, d.procedures[1].end + 2 * sizeof(std::uint64_t));
  w.expect_right([&](std::uintptr_t start) {
    for (const AsmjitProcedure& p : d.procedures) call_marked(start + p.begin);
    return 0;
  });
}

/// Whether the frames of a Compiler's code are known without following its instructions.
template <class Write>
bool has_known_frames(Write write) {
  asmjit::CodeHolder code;
  code.init(AsmjitRuntime().environment());
  Compiler cc(&code);
  write(cc);
  EXPECT_EQ(cc.finalize(), asmjit::kErrorOk);
  EXPECT_EQ(code.flatten(), asmjit::kErrorOk);
  return derivation::describe_compiled(code).has_value();
}

/// Two functions: the second calls the first in a loop. The way back to the loop's begin is behind its epilogue.
template <class Write>
void write_loop(Compiler& cc, Write write) {
  const asmjit::FuncNode* first = add_func(cc, signature<void>());
  end_func(cc);
  asmjit::FuncNode* second = add_func(cc, signature<void>());
  add_dirty(second->frame(), RegGroup::kGp, 1u << 12);
  const Gp value = new_int64(cc);
  const asmjit::Label again = new_label(cc);
  cc.mov(value, 3);
  cc.bind(again);
  invoke(cc, first->label(), signature<void>());
  cc.mov(r12, value);
  write(cc, value);
  cc.dec(value);
  cc.jnz(again);
  end_func(cc);
}
template <class Write>
bool has_known_frame_with(Write write) {
  return has_known_frames([&](Compiler& cc) { write_loop(cc, write); });
}

TEST(AsmjitCompiler, CodeBehindAnEpilogueHasTheFrameOfTheBody) {
  WrittenCode w;
  w.code.detach(&w.a);
  Compiler cc(&w.code);
  write_loop(cc, [](Compiler&, const Gp&) {});
  ASSERT_EQ(cc.finalize(), asmjit::kErrorOk);
  const AsmjitDescription d = describe_asmjit(w.code);
  ASSERT_EQ(d.procedures.size(), 2u) << d.text();
  const AsmjitProcedure& loop = d.procedures[1];
  const Result<FrameRow> last = loop.description.row(loop.end - loop.begin - 1, loop.end - loop.begin);
  ASSERT_TRUE(last);
  // Compilers of today may choose registers so that no code is needed there.
  constexpr bool is_of_today = JITUNWIND_ASMJIT_SNAKE_CASE != 0;
  EXPECT_TRUE(is_of_today || last->rule(12).kind != RegRule::Kind::unspecified)
      << "the compiler wrote nothing behind the epilogue";
  w.expect_right([&](std::uintptr_t start) { return call_marked(start + loop.begin), 0; });
}

TEST(AsmjitCompiler, FunctionsThatLeaveTheirFramesAloneAreNotFollowed) {
  EXPECT_TRUE(has_known_frame_with([](Compiler&, const Gp&) {}));
  EXPECT_TRUE(has_known_frame_with([](Compiler& cc, const Gp& value) { cc.mov(new_stack(cc, 64, 32), value); }));
  for (const FrameWish& wish : some_frame_wishes()) {
    const auto write = [&](Compiler& cc) {
      emit_frame(cc, EmitterKind::compiler, wish, new_named_label(cc, "wished"));
    };
    // Other conventions preserve registers that only rows describe.
    EXPECT_EQ(has_known_frames(write), follows_psabi(wish.convention)) << wish.text();
  }
}

TEST(AsmjitCompiler, FunctionsThatTouchTheirFramesAreFollowed) {
  using Touch = void (*)(Compiler&, const Gp&);
  const std::pair<const char*, Touch> touches[] = {
      {"push", [](Compiler& cc, const Gp& value) { cc.push(value), cc.pop(value); }},
      {"moves SP", [](Compiler& cc, const Gp&) { cc.sub(rsp, 16), cc.add(rsp, 16); }},
      {"unsaved register", [](Compiler& cc, const Gp& value) { cc.xchg(rbx, value), cc.xchg(rbx, value); }},
      {"unsaved register by cpuid", [](Compiler& cc, const Gp&) { cc.cpuid(eax, ebx, ecx, edx); }},
      {"leaves", [](Compiler& cc, const Gp& value) { cc.jmp(value); }},
      {"returns", [](Compiler& cc, const Gp&) { cc.emit(Inst::kIdRet); }},
      {"name in the middle", [](Compiler& cc, const Gp&) { cc.bind(new_named_label(cc, "inner")); }},
      {"code of another function", [](Compiler& cc, const Gp&) { cc.jz(asmjit::Label(0)); }},
  };
  for (const auto& [what, touch] : touches) EXPECT_FALSE(has_known_frame_with(touch)) << what;
}

}  // namespace
}  // namespace jitunwind::test
