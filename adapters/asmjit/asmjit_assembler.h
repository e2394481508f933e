// asmjit's x86::Assembler, noting as it writes what each instruction does to the frame. AsmjitRuntime, or
// describe_asmjit(), turns that into unwind information: push, pop, sub, mov, lea, leave, enter, calls of emitProlog
// and emitEpilog, several epilogues, several procedures, data between them.
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

/// Why exceptions land at a landing pad: as behind call_site() of the builders (docs/builders.md "Exceptions that land
/// in the code"); none: as cleans_up(). Valid as long as its assembler is attached. Memory that runs out shows when
/// the code is described.
class AsmjitCallSite {
 public:
  /// The filter value of a landing pad is that of the first of these that holds, in their order. Each returns itself.
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

  /// Writes bytes that are one instruction, which asmjit has no name for. It goes on behind itself, leaves memory of
  /// the frame and SP alone, and changes no registers but those of `changes`. At most 15 bytes.
  asmjit::Error embed_instruction(std::span<const std::uint8_t> bytes,
                                  std::initializer_list<asmjit::Operand> changes = {}) noexcept;

  /// The instruction before is a call of a procedure outside of this code which takes `bytes` of arguments off the
  /// stack when it returns. Of calls to labels this is known.
  void callee_pops(std::int64_t bytes) noexcept;

  /// The instruction before is a jump through a register or memory: to one of these labels, or, without any, out of
  /// this code with the frame as it is. Without a word a jump goes to the label whose address its register holds;
  /// through a table of labels that this code holds; or to another procedure, if the frame is released.
  void jump_targets(std::span<const asmjit::Label> labels) noexcept;

  /// Exceptions that leave a call between the labels go on at `landing_pad`, in the same procedure, with SP and
  /// preserved registers as during the call. All of those calls must have the same SP. Labels may be bound later.
  /// Selectors of a procedure's types are 1, 2, ... in the order in which its call sites name them.
  AsmjitCallSite call_site(const asmjit::Label& begin, const asmjit::Label& end,
                           const asmjit::Label& landing_pad) noexcept;
  /// As noexcept: exceptions that leave a call between the labels end in std::terminate().
  void terminates(const asmjit::Label& begin, const asmjit::Label& end) noexcept;
  /// `handler` decides what exceptions do to frames of the procedure that the next instruction is in. Its call sites
  /// then say only at which landing pads it may go on, and from which calls; reasons do not count.
  void handled_by(FrameHandler handler) noexcept;

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
