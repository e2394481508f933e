// The unwind information of code that asmjit generates, derived from the trace of its emitters, or the reasons for a
// refusal.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <string>
#include <vector>

#include "jitunwind/builders/description.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The reason why a procedure has no description, and the instruction at fault.
struct AsmjitRefusal {
  std::string procedure;     ///< its name; without one, the name given to add(), or ""
  std::uint64_t offset = 0;  ///< bytes from the start of the code
  std::string instruction;   ///< its mnemonic; "" if no single instruction is at fault
  std::string reason;        ///< includes the instructions that led there

  /// "vm_call: add at +0x1c: changes SP in a way that cannot be followed".
  std::string text() const;
};

/// Offsets in bytes from the start of the code; `end` is exclusive.
struct AsmjitProcedure {
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Description description;
};

/// The descriptions that were derived for an emitted code.
struct AsmjitDescription {
  std::vector<AsmjitProcedure> procedures;  ///< in the order of their code
  std::vector<AsmjitRefusal> refusals;      ///< empty: every procedure is described

  bool complete() const noexcept { return refusals.empty(); }
  /// The refusals, one per line.
  std::string text() const;
};

/// Describes every procedure of `code`, right at each of its instructions, or refuses. The emitters that wrote the code
/// must still be attached: one or several AsmjitAssemblers, or one x86::Builder or x86::Compiler after finalize(). The
/// nodes of a builder are serialized a second time, into a private buffer, and compared byte for byte. Attached
/// emitters that wrote nothing are ignored. Code with several sections must be flattened first. x86-64 only; other code
/// is refused.
///
/// Throws std::bad_alloc. Thread-safe as long as each thread has its own CodeHolder.
AsmjitDescription describe_asmjit(asmjit::CodeHolder& code);

}  // namespace jitunwind
#pragma GCC visibility pop
