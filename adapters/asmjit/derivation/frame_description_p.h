// Converts the states of a procedure's frames to its description: directives if they can express it, shared between
// procedures of one shape, else rows. Every description is proved instruction by instruction.
#pragma once

#include <cstdint>
#include <optional>

#include "jitunwind/adapters/asmjit/derivation/frame_analysis_p.h"
#include "jitunwind/builders/description.h"

namespace jitunwind::derivation {

/// Precondition: the analysis has run, and the procedure is one of its own without refusal. Directives behind the
/// offset `tail` are placed from the end, so that the description fits other sizes, too. Its default is the begin of an
/// epilogue that ends the procedure.
Result<Description, Refusal> describe(FrameAnalysis& analysis, const TracedProcedure& procedure, const CodeTrace& trace,
                                      const Arch& arch, std::optional<std::uint32_t> tail = {});

}  // namespace jitunwind::derivation
