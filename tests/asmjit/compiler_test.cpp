// Code that an x86::Compiler adds to its functions.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace jitunwind::test
