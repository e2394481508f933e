// Who wrote a code: the emitters that are attached to it.
#pragma once

#include <asmjit/x86.h>

#include <list>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_code.h"
#include "jitunwind/adapters/asmjit/builder_replay_p.h"

namespace jitunwind::derivation {

/// The records of all emitters, each of which is looked at once. The nodes of a builder are written a second time when
/// its record is asked for, and once. The emitters must neither change nor go meanwhile.
class CodeWriters {
 public:
  /// Emitters that wrote nothing are ignored. Throws std::bad_alloc.
  explicit CodeWriters(const ::asmjit::CodeHolder& code);

  struct Record {
    const TraceRecorder* recorder = nullptr;
    const ::asmjit::CodeHolder* code = nullptr;  ///< that it is of: the code itself, or a copy of it
  };
  /// The record of x86-64 code that one emitter wrote, which is no Compiler. Empty: there is none.
  Record only_record();
  /// The trace of everything that was written into the code.
  Result<CodeTrace, Refusal> trace();

 private:
  const BuilderReplay& replay(std::size_t builder);

  const ::asmjit::CodeHolder& code_;
  const TraceRecorder* recorder_ = nullptr;  // the last of the assemblers'
  std::vector<::asmjit::BaseBuilder*> builders_;
  std::list<BuilderReplay> replays_;  // of the first builders
  std::size_t assemblers_ = 0;        // with records
  bool has_other_assembler_ = false;
};

/// describe_asmjit() of a code and its writers.
AsmjitDescription describe_written(::asmjit::CodeHolder& code, CodeWriters& writers);

}  // namespace jitunwind::derivation
