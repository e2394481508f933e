// Compares our rows of a whole file with those of another program, and with what our own tables and our own encoder
// make of the same FDEs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/world_cfi/reference.h"

namespace jitunwind::world {

struct Explained {
  std::uint64_t count = 0;
  std::string witness;  ///< where it was seen first
};

struct Figures {
  std::uint64_t files = 0;
  std::uint64_t fdes = 0;
  std::uint64_t rows = 0;                      ///< compared with the reference's, register by register
  std::uint64_t expressions = 0;               ///< evaluated
  std::uint64_t found = 0;                     ///< FDEs found again through .eh_frame_hdr, by first and last address
  std::uint64_t encoded = 0;                   ///< FDEs whose rows were encoded and read back
  std::uint64_t quick = 0;                     ///< FDEs whose rows were found in short as well
  std::uint64_t not_quick = 0;                 ///< rows that are compact and were not
  std::map<std::string, Explained> explained;  ///< classes of differences that are not ours
  std::uint64_t unexplained = 0;
  std::vector<std::string> messages;  ///< of the first unexplained ones

  void add(const Figures& other);
  void explain(const std::string& kind, const std::string& witness, std::uint64_t count = 1);
  void add_message(const std::string& message);
};

/// Compares every FDE of .eh_frame and .debug_frame. Throws std::runtime_error if the tool cannot be run.
Figures compare_file(const std::string& path, Tool tool);

/// Checks without a reference: through .eh_frame_hdr to every FDE; rows -> CFI -> rows; evaluation of every expression.
Figures check_file(const std::string& path);

}  // namespace jitunwind::world
