// asmjit's x86::Assembler with a trace: it records the effect of each instruction on the frame. AsmjitRuntime or
// describe_asmjit() derives unwind information from the trace. Supported: push, pop, sub, mov, lea, leave, enter, calls
// of emitProlog and emitEpilog, several epilogues, several procedures, data between them.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <typeinfo>

#include "jitunwind/builders/frame_handler.h"

#pragma GCC visibility push(default)
namespace jitunwind {

namespace derivation {
class TraceRecorder;
struct TracedCallSite;
}  // namespace derivation

/// The reasons for which exceptions land at a landing pad, as after call_site() of the builders (docs/builders.md
/// "Exceptions that land in the code"). A site without a reason is a cleanup. Valid as long as its assembler is
/// attached. Exhausted memory is reported when the code is described.
class AsmjitCallSite {
 public:
  /// The filter value at a landing pad is that of the first reason that applies, in the order of the calls. Each call
  /// returns the object itself.
  AsmjitCallSite& catches(const std::type_info& type) noexcept;
  AsmjitCallSite& catches_all() noexcept;
  AsmjitCallSite& allows(std::initializer_list<const std::type_info*> types) noexcept;
  AsmjitCallSite& cleans_up() noexcept;

 private:
  friend class AsmjitAssembler;
  AsmjitCallSite(derivation::TraceRecorder* recorder, derivation::TracedCallSite* site) noexcept
      : recorder_(recorder), site_(site) {}
  template <class Say>
  AsmjitCallSite& because(Say say) noexcept;

  derivation::TraceRecorder* recorder_;
  derivation::TracedCallSite* site_;  // null without memory
};

/// Replaces asmjit::x86::Assembler and has its interface. It must live, and stay attached to its CodeHolder, until the
/// code has been added to a runtime or described.
///
/// A procedure begins at the first byte of the code, at the target of a call, and at a call of procedure(). It also
/// begins at emitProlog() and at a named global label, if no jump leads there.
class AsmjitAssembler : public asmjit::x86::Assembler {
 public:
  explicit AsmjitAssembler(asmjit::CodeHolder* code = nullptr) noexcept;
  ~AsmjitAssembler() noexcept override;

  /// Begins a procedure at the next instruction, which calls from anywhere may enter. A procedure without a name takes
  /// the name of a global label that is bound there.
  void procedure(std::string_view name = {}) noexcept;

  /// Writes one instruction as bytes, for instructions that asmjit does not support. It continues at the next
  /// instruction, keeps memory of the frame and SP, and changes no registers but those of `changes`. It has at most 15
  /// bytes.
  asmjit::Error embed_instruction(std::span<const std::uint8_t> bytes,
                                  std::initializer_list<asmjit::Operand> changes = {}) noexcept;

  /// Declares that the preceding instruction calls a procedure outside this code, which pops `bytes` of arguments when
  /// it returns. Calls to labels need no declaration.
  void callee_pops(std::int64_t bytes) noexcept;

  /// Declares the targets of the preceding jump through a register or memory: one of these labels, or, if the list is
  /// empty, a place outside this code with the frame in place. A jump without a declaration goes to the label whose
  /// address its register holds; through a table of labels in this code; or to another procedure, if the frame is
  /// released.
  void jump_targets(std::span<const asmjit::Label> labels) noexcept;

  /// Exceptions that leave a call between the labels continue at `landing_pad`, in the same procedure, with SP and
  /// preserved registers as during the call. SP must be the same at all of those calls. Labels may be bound later.
  /// Selectors of a procedure's types are 1, 2, ... in the order in which its call sites name them.
  AsmjitCallSite call_site(const asmjit::Label& begin, const asmjit::Label& end,
                           const asmjit::Label& landing_pad) noexcept;
  /// Exceptions that leave a call between the labels end in std::terminate(), as in a noexcept function.
  void terminates(const asmjit::Label& begin, const asmjit::Label& end) noexcept;
  /// Sets a handler that decides what exceptions do to frames of the procedure of the next instruction. The procedure's
  /// call sites then only state the landing pads that the handler may choose, and for which calls; their reasons have
  /// no effect.
  void handled_by(FrameHandler handler) noexcept;

  // Functions that asmjit calls.
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

  asmjit::Error emit_other(asmjit::InstId id, const asmjit::Operand_& o0, const asmjit::Operand_& o1,
                           const asmjit::Operand_& o2, const asmjit::Operand_* more);

  struct GiveBack {
    void operator()(derivation::TraceRecorder* recorder) const noexcept;
  };
  std::unique_ptr<derivation::TraceRecorder, GiveBack> recorder_;  // null when there was no memory for it
};

}  // namespace jitunwind
#pragma GCC visibility pop
