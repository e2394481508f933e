// Every shape of frame that asmjit's FuncFrame can be told to make on x86-64, as code whose body destroys what the
// frame saved.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::test {

enum class EmitterKind : std::uint8_t { assembler, builder, plain_builder, compiler };

/// The requirements for a frame. Register masks are by asmjit's ids (rbx 3, rbp 5, r12..r15).
struct FrameWish {
  asmjit::CallConvId convention = asmjit::CallConvId::kCDecl;
  std::uint32_t dirty = 0;
  std::uint32_t dirty_vectors = 0;
  bool frame_pointer = false;
  std::uint32_t local_size = 0;
  std::uint32_t alignment = 0;  ///< of the local stack; 0: the natural one
  std::uint32_t call_stack = 0;
  bool calls = false;
  std::uint32_t argument_register = UINT32_MAX;  ///< FuncFrame's SA register; UINT32_MAX: asmjit chooses
  std::uint32_t popped = 0;                      ///< bytes of arguments: ret n
  bool avx = false;
  bool avx_cleanup = false;
  bool mmx_cleanup = false;
  bool branch_protection = false;  ///< asmjit 1.21
  bool masks = false;              ///< the convention preserves k1, k2 and mm3 too

  std::string text() const;
};

/// Returns all wishes, some hundreds. The list is deterministic.
std::vector<FrameWish> all_frame_wishes();
/// Returns a few dozen wishes of every kind.
std::vector<FrameWish> some_frame_wishes();
/// Both lists leave out wishes that need a CPU feature which this machine lacks.

/// Returns whether a procedure of this convention preserves what the psABI says and no more. An asmjit::x86::Builder
/// does not tell.
bool follows_psabi(asmjit::CallConvId convention);
/// Registers that callers of such a procedure rely on, by DWARF number.
std::vector<RegNum> preserved_by(asmjit::CallConvId convention);

/// Writes one procedure as wished through `emitter`, which may hold others already, and binds `label` to its first
/// instruction. Throws std::runtime_error when asmjit refuses.
void emit_frame(asmjit::BaseEmitter& emitter, EmitterKind kind, const FrameWish& wish, const asmjit::Label& label);

}  // namespace jitunwind::test
