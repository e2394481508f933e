// From what is known of a procedure's frames to its description: directives where they can say it, shared between
// procedures of one shape, else rows. Nothing is given out that was not proved instruction by instruction.
#pragma once

#include "jitunwind/adapters/asmjit/derivation/frame_analysis_p.h"
#include "jitunwind/builders/description.h"

namespace jitunwind::derivation {

/// Precondition: the analysis has run, the procedure is one of its own and has no refusal.
Result<Description, Refusal> describe(FrameAnalysis& analysis, const TracedProcedure& procedure, const CodeTrace& trace,
                                      const Arch& arch);

}  // namespace jitunwind::derivation
