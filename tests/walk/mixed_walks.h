// Random stacks with every kind of frame, on which every way to walk must find the same: the cursor that makes each row
// anew, the cursor that keeps rows, and the walks of addresses.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace jitunwind::test {

struct MixedWalkFigures {
  std::size_t stacks = 0;
  std::size_t compared = 0;     ///< walks, each in every way
  std::size_t in_handlers = 0;  ///< of these, of what a signal interrupted
  std::size_t by_timer = 0;     ///< of those, wherever a timer's signal came
  std::size_t frames = 0;       ///< of the compared walks
  std::size_t deepest = 0;
  std::size_t different = 0;
  std::string first_difference;

  bool ok() const { return different == 0; }
  std::string text() const;
};

/// Walks `stacks` random stacks on each of two threads at once, one of them the calling thread.
MixedWalkFigures walk_mixed_stacks(std::size_t stacks);

}  // namespace jitunwind::test
