// asmjit's x86::Assembler, noting as it writes what each instruction does to the frame. AsmjitRuntime, or
// describe_asmjit(), turns that into unwind information: push, pop, sub, mov, lea, leave, enter, calls of emitProlog
// and emitEpilog, several epilogues, several procedures, data between them.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#pragma GCC visibility push(default)
namespace jitunwind {

namespace derivation {
class TraceRecorder;
}

/// In place of asmjit::x86::Assembler, whose interface it has. Must live, and stay attached to its CodeHolder, until
/// the code has been added to a runtime or described.
///
/// A procedure begins: at the first byte of the code; at the target of a call; where procedure() says so; and, if no
/// jump leads there, where emitProlog() writes and where a named global label is bound.
class AsmjitAssembler : public asmjit::x86::Assembler {
 public:
  explicit AsmjitAssembler(asmjit::CodeHolder* code = nullptr) noexcept;
  ~AsmjitAssembler() noexcept override;

  /// The next instruction is the first of a procedure; it is entered by calls from anywhere. Without a name it has that
  /// of a global label that is bound there.
  void procedure(std::string_view name = {}) noexcept;

  /// The instruction before is a call of a procedure outside of this code which takes `bytes` of arguments off the
  /// stack when it returns. Of calls to labels this is known.
  void callee_pops(std::int64_t bytes) noexcept;

  /// The instruction before is a jump through a register or memory: to one of these labels, or, without any, out of
  /// this code with the frame as it is. Without a word a jump goes to the label whose address its register holds;
  /// through a table of labels that this code holds; or to another procedure, if the frame is released.
  void jump_targets(std::span<const asmjit::Label> labels) noexcept;

  // What asmjit calls.
  asmjit::Error _emit(asmjit::InstId id, const asmjit::Operand_& o0, const asmjit::Operand_& o1,
                      const asmjit::Operand_& o2, const asmjit::Operand_* more) override;
  asmjit::Error align(asmjit::AlignMode mode, std::uint32_t alignment) override;
  asmjit::Error embed(const void* data, std::size_t size) override;
#if ASMJIT_LIBRARY_VERSION >= 0x011200
  asmjit::Error embed_data_array(asmjit::TypeId type, const void* data, std::size_t count,
                                 std::size_t repeat = 1) override;
  asmjit::Error embed_const_pool(const asmjit::Label& label, const asmjit::ConstPool& pool) override;
  asmjit::Error embed_label(const asmjit::Label& label, std::size_t size = 0) override;
  asmjit::Error embed_label_delta(const asmjit::Label& label, const asmjit::Label& base, std::size_t size = 0) override;
  asmjit::Error on_attach(asmjit::CodeHolder& code) noexcept override;
  asmjit::Error on_reinit(asmjit::CodeHolder& code) noexcept override;
#else
  asmjit::Error embedDataArray(asmjit::TypeId type, const void* data, std::size_t count,
                               std::size_t repeat = 1) override;
  asmjit::Error embedConstPool(const asmjit::Label& label, const asmjit::ConstPool& pool) override;
  asmjit::Error embedLabel(const asmjit::Label& label, std::size_t size = 0) override;
  asmjit::Error embedLabelDelta(const asmjit::Label& label, const asmjit::Label& base, std::size_t size = 0) override;
  asmjit::Error onAttach(asmjit::CodeHolder* code) noexcept override;
#endif

 private:
  friend struct AsmjitAccess;
  template <class Write>
  asmjit::Error noting_data(Write write);

  std::unique_ptr<derivation::TraceRecorder> recorder_;  // null when there was no memory for it
};

}  // namespace jitunwind
#pragma GCC visibility pop
