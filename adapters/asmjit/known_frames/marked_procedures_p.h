// Procedures of plain code, which an AsmjitAssembler wrote: one pass over the instructions, in the order of their
// bytes, records the directives of each.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>

#include "jitunwind/adapters/asmjit/code_writers_p.h"
#include "jitunwind/builders/draft/mark_recorder.h"
#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::derivation {

/// Offsets in bytes from the start of the code; `end` is exclusive.
struct MarkedProcedure {
  MarkedProcedure(std::string_view its_name, std::uint64_t at) : name(its_name), begin(at) {
    marks.set_ends_without_return();  // the last instruction may be a jump that keeps the frame
  }

  std::string name;
  std::uint64_t begin;
  std::uint64_t end = 0;
  MarkRecorder marks{arch::x86_64};
};

/// Marks all procedures of a code by its only record. Empty: there is none, or FrameAnalysis has to follow it. That is
/// so for whatever PlainFrame does not know, for paths that meet with different frames, for jumps to unknown places
/// with the frame in place, for landing pads, and for all that is refused. Throws std::bad_alloc. Thread-safe as
/// describe_asmjit().
std::list<MarkedProcedure> mark_procedures(const CodeWriters::Record& record);

}  // namespace jitunwind::derivation
