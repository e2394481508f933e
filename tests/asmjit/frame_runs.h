// Runs wished frames one instruction at a time and judges what the adapter makes of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tests/asmjit/frame_shapes.h"
#include "tests/asmjit/idiom_programs.h"

namespace jitunwind::test {

struct FrameRunFigures {
  std::size_t shapes = 0;
  std::size_t procedures = 0;
  std::size_t with_directives = 0;  ///< the others are described by rows
  std::size_t frame_shapes = 0;     ///< distinct
  std::uint64_t instructions = 0;   ///< boundaries compared, with each of the sources
  std::uint64_t after_calls = 0;
  std::uint64_t mismatches = 0;
  std::uint64_t missed = 0;  ///< instructions that never ran
  std::string failures;      ///< refusals, faults, mismatches, a line or more each

  void add(const FrameRunFigures& other);
  bool ok() const { return failures.empty() && procedures != 0 && mismatches == 0 && missed == 0; }
  std::string text() const;
};

/// Writes the frames with an emitter of this kind, `together` procedures in one CodeHolder with constants behind each,
/// adds them, calls each once, and compares every instruction with two sources of rows: the descriptions as they are,
/// and this process's registry.
FrameRunFigures run_frames(EmitterKind kind, std::span<const FrameWish> wishes, std::size_t together);

/// Runs code that was described to a builder while it was emitted. The judges are the builder's description and the one
/// that the adapter derives and registers.
/// one that the adapter derives and registers.
FrameRunFigures run_idioms(std::span<const IdiomWish> wishes);

}  // namespace jitunwind::test
