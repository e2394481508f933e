// asmjit renamed its interface from camelCase to snake_case at 1.18. These names are those of today; with them the
// examples compile with either.
#pragma once

#include <asmjit/x86.h>

#include <cstddef>
#include <cstdint>

#if ASMJIT_LIBRARY_VERSION >= 0x011200
#define EXAMPLES_ASMJIT(camel, snake) snake
#else
#define EXAMPLES_ASMJIT(camel, snake) camel
#endif

namespace examples {

inline asmjit::Label new_label(asmjit::BaseEmitter& emitter) { return emitter.EXAMPLES_ASMJIT(newLabel, new_label)(); }
inline std::uint64_t label_offset(const asmjit::CodeHolder& code, const asmjit::Label& label) {
  return code.EXAMPLES_ASMJIT(labelOffset, label_offset)(label);
}
inline std::size_t code_size(const asmjit::CodeHolder& code) { return code.EXAMPLES_ASMJIT(codeSize, code_size)(); }
inline void set_error_handler(asmjit::CodeHolder& code, asmjit::ErrorHandler* handler) {
  code.EXAMPLES_ASMJIT(setErrorHandler, set_error_handler)(handler);
}

template <class... Types>
asmjit::FuncSignature signature() {
  return asmjit::EXAMPLES_ASMJIT(FuncSignatureT<Types...>, FuncSignature::build<Types...>)();
}
inline asmjit::FuncNode* add_func(asmjit::BaseCompiler& compiler, const asmjit::FuncSignature& of) {
  return compiler.EXAMPLES_ASMJIT(addFunc, add_func)(of);
}
inline void end_func(asmjit::BaseCompiler& compiler) { (void)compiler.EXAMPLES_ASMJIT(endFunc, end_func)(); }
inline asmjit::x86::Gp new_gp32(asmjit::x86::Compiler& compiler) {
  return compiler.EXAMPLES_ASMJIT(newInt32, new_gp32)();
}
inline void set_arg(auto& node, std::uint32_t index, const asmjit::x86::Gp& value) {
  node.EXAMPLES_ASMJIT(setArg, set_arg)(index, value);
}
inline void set_ret(asmjit::InvokeNode& call, std::uint32_t index, const asmjit::x86::Gp& value) {
  call.EXAMPLES_ASMJIT(setRet, set_ret)(index, value);
}
inline asmjit::InvokeNode* invoke(asmjit::x86::Compiler& compiler, const asmjit::Imm& target,
                                  const asmjit::FuncSignature& of) {
  asmjit::InvokeNode* call = nullptr;
  (void)compiler.invoke(EXAMPLES_ASMJIT(&call, asmjit::Out(call)), target, of);
  return call;
}

}  // namespace examples
