// The unwind information of code that asmjit wrote, derived from what its emitters wrote, or why there is none.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <string>
#include <vector>

#include "jitunwind/builders/description.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Why nothing is known of a procedure, and the instruction that is to blame.
struct AsmjitRefusal {
  std::string procedure;     ///< its name; when it has none, what add() was given, or ""
  std::uint64_t offset = 0;  ///< in bytes from the start of the code
  std::string instruction;   ///< its mnemonic, "" when it is not about one
  std::string reason;        ///< with the instructions that led there

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

/// What was found out about an emitted code.
struct AsmjitDescription {
  std::vector<AsmjitProcedure> procedures;  ///< in the order of their code
  std::vector<AsmjitRefusal> refusals;      ///< empty: every procedure is described

  bool complete() const noexcept { return refusals.empty(); }
  /// The refusals, a line each.
  std::string text() const;
};

/// Describes every procedure of `code`, right at each of its instructions, or refuses. Needs the emitters that wrote
/// the code, still attached: one AsmjitAssembler or several, or else one x86::Builder or x86::Compiler after finalize()
/// (whose nodes are written once more, into a buffer of our own, and compared byte for byte). Others that are attached
/// and wrote nothing of it are of no account. Code with several sections must be flattened first. x86-64 only; any
/// other code is refused.
///
/// Throws std::bad_alloc. Thread-safe as long as each thread has its own CodeHolder.
AsmjitDescription describe_asmjit(asmjit::CodeHolder& code);

}  // namespace jitunwind
#pragma GCC visibility pop
