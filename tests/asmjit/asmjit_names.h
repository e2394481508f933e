// asmjit's interface by one set of names for all versions, as far as the tests use it.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>

#include "jitunwind/adapters/asmjit/asmjit_version_p.h"

namespace jitunwind::test {

using asmjit::CallConvId;
using asmjit::RegGroup;

using asmjit_version::new_label;
inline asmjit::Label new_named_label(asmjit::BaseEmitter& e, const char* name) {
  return e.JITUNWIND_ASMJIT(newNamedLabel, new_named_label)(name);
}
inline std::uint64_t label_offset(const asmjit::CodeHolder& code, const asmjit::Label& label) {
  return code.JITUNWIND_ASMJIT(labelOffsetFromBase, label_offset_from_base)(label);
}
inline asmjit::Error embed_label(asmjit::BaseEmitter& e, const asmjit::Label& label, std::size_t size = 0) {
  return e.JITUNWIND_ASMJIT(embedLabel, embed_label)(label, size);
}
inline asmjit::Error embed_label_delta(asmjit::BaseEmitter& e, const asmjit::Label& label, const asmjit::Label& base,
                                       std::size_t size) {
  return e.JITUNWIND_ASMJIT(embedLabelDelta, embed_label_delta)(label, base, size);
}
inline asmjit::Error embed_u64(asmjit::BaseEmitter& e, std::uint64_t value) { return e.embed(&value, sizeof value); }
using asmjit_version::emit_epilog;
using asmjit_version::emit_prolog;
inline asmjit::Error set_offset(asmjit::BaseAssembler& a, std::size_t offset) {
  return a.JITUNWIND_ASMJIT(setOffset, set_offset)(offset);
}
inline asmjit::Error new_section(asmjit::CodeHolder& code, asmjit::Section*& out, const char* name) {
#if JITUNWIND_ASMJIT_SNAKE_CASE
  return code.new_section(asmjit::Out(out), name, SIZE_MAX, asmjit::SectionFlags::kExecutable, 16);
#else
  return code.newSection(&out, name, SIZE_MAX, asmjit::SectionFlags::kExecutable, 16);
#endif
}
inline asmjit::Section* text_section(asmjit::CodeHolder& code) {
  return code.JITUNWIND_ASMJIT(textSection, text_section)();
}

template <class... Types>
asmjit::FuncSignature signature(CallConvId convention = CallConvId::kCDecl) {
#if JITUNWIND_ASMJIT_SNAKE_CASE
  return asmjit::FuncSignature::build<Types...>(convention);
#else
  return asmjit::FuncSignatureT<Types...>(convention);
#endif
}
/// A signature: void, with so many 64-bit integers. asmjit 1.9's signatures point into the object that built them, so
/// it must stay where it is.
class IntegerSignature {
 public:
  IntegerSignature(CallConvId convention, std::uint32_t arguments) : built_(convention) {
#if JITUNWIND_ASMJIT_SNAKE_CASE
    built_.set_ret_t<void>();
    for (std::uint32_t i = 0; i < arguments; ++i) built_.add_arg(asmjit::TypeId::kInt64);
#else
    built_.setRetT<void>();
    for (std::uint32_t i = 0; i < arguments; ++i) built_.addArg(asmjit::TypeId::kInt64);
#endif
  }
  IntegerSignature(const IntegerSignature&) = delete;
  IntegerSignature& operator=(const IntegerSignature&) = delete;
  operator const asmjit::FuncSignature&() const { return built_; }

 private:
#if JITUNWIND_ASMJIT_SNAKE_CASE
  asmjit::FuncSignature built_;
#else
  asmjit::FuncSignatureBuilder built_;
#endif
};
inline asmjit::FuncNode* add_func(asmjit::BaseCompiler& cc, const asmjit::FuncSignature& s) {
  return cc.JITUNWIND_ASMJIT(addFunc, add_func)(s);
}
inline asmjit::Error end_func(asmjit::BaseCompiler& cc) { return cc.JITUNWIND_ASMJIT(endFunc, end_func)(); }
inline asmjit::x86::Gp new_int64(asmjit::x86::Compiler& cc) { return cc.JITUNWIND_ASMJIT(newInt64, new_gp64)(); }
inline void set_arg(asmjit::FuncNode& f, std::uint32_t index, const asmjit::x86::Gp& reg) {
  f.JITUNWIND_ASMJIT(setArg, set_arg)(index, reg);
}
inline asmjit::x86::Mem new_stack(asmjit::x86::Compiler& cc, std::uint32_t size, std::uint32_t alignment) {
  return cc.JITUNWIND_ASMJIT(newStack, new_stack)(size, alignment);
}
template <class Target>
asmjit::InvokeNode* invoke(asmjit::x86::Compiler& cc, const Target& target, const asmjit::FuncSignature& s) {
  asmjit::InvokeNode* node = nullptr;
#if JITUNWIND_ASMJIT_SNAKE_CASE
  (void)cc.invoke(asmjit::Out(node), target, s);
#else
  (void)cc.invoke(&node, target, s);
#endif
  return node;
}

inline void set_preserved_fp(asmjit::FuncFrame& f) { f.JITUNWIND_ASMJIT(setPreservedFP, set_preserved_fp)(); }
inline void set_func_calls(asmjit::FuncFrame& f) { f.JITUNWIND_ASMJIT(setFuncCalls, set_func_calls)(); }
inline void set_avx_enabled(asmjit::FuncFrame& f) { f.JITUNWIND_ASMJIT(setAvxEnabled, set_avx_enabled)(); }
inline void set_avx_cleanup(asmjit::FuncFrame& f) { f.JITUNWIND_ASMJIT(setAvxCleanup, set_avx_cleanup)(); }
inline void set_mmx_cleanup(asmjit::FuncFrame& f) { f.JITUNWIND_ASMJIT(setMmxCleanup, set_mmx_cleanup)(); }
/// asmjit 1.21 has this; 1.9 ignores it.
inline void set_branch_protection([[maybe_unused]] asmjit::FuncFrame& f) {
#if JITUNWIND_ASMJIT_SNAKE_CASE
  f.set_indirect_branch_protection();
#endif
}
inline void set_local_stack(asmjit::FuncFrame& f, std::uint32_t size, std::uint32_t alignment) {
  f.JITUNWIND_ASMJIT(setLocalStackSize, set_local_stack_size)(size);
  if (alignment != 0) f.JITUNWIND_ASMJIT(setLocalStackAlignment, set_local_stack_alignment)(alignment);
}
inline void set_call_stack_size(asmjit::FuncFrame& f, std::uint32_t size) {
  f.JITUNWIND_ASMJIT(setCallStackSize, set_call_stack_size)(size);
}
inline void add_dirty(asmjit::FuncFrame& f, RegGroup group, std::uint32_t mask) {
  f.JITUNWIND_ASMJIT(addDirtyRegs, add_dirty_regs)(group, mask);
}
inline void set_sa_register(asmjit::FuncFrame& f, std::uint32_t id) {
  f.JITUNWIND_ASMJIT(setSARegId, set_sa_reg_id)(id);
}
using asmjit_version::saved_registers;
inline std::uint32_t local_stack_offset(const asmjit::FuncFrame& f) {
  return f.JITUNWIND_ASMJIT(localStackOffset, local_stack_offset)();
}
using asmjit_version::has_preserved_fp;

}  // namespace jitunwind::test
