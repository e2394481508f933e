// Threads that walk from a profiling signal, while others replace procedures at the same addresses by ones with another
// frame.
#pragma once

#include <cstddef>
#include <string>

namespace jitunwind::test {

struct ChurnFigures {
  std::size_t walks = 0;
  std::size_t by_cursor = 0;   ///< of these, single steps with all registers
  std::size_t wrong = 0;       ///< another list of frames than the calls that are being made
  std::size_t short_ones = 0;  ///< ended before the outermost frame
  std::size_t jit_frames = 0;
  std::size_t deepest = 0;   ///< procedures on one stack
  std::size_t replaced = 0;  ///< procedures, all at addresses that another had before
  std::string first_bad;     ///< the first walk that was wrong or short, for whoever looks why

  std::string text() const;
};

/// Goes on until `walks` have been made. Each is compared with a list that the walked thread keeps of its calls.
ChurnFigures churn(std::size_t walks);

}  // namespace jitunwind::test
