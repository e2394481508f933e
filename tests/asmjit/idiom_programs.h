// Code written instruction by instruction, and beside each instruction the builder's idiom for it: every way of making,
// using and leaving a frame that the builders have words for.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_assembler.h"
#include "jitunwind/builders/description.h"

namespace jitunwind::test {

struct IdiomWish {
  enum class Frame : std::uint8_t { none, push_mov, push_lea, enter };
  enum class Saves : std::uint8_t { none, push_one, push_all, store_at_sp, store_at_fp, move, red_zone };
  enum class Memory : std::uint8_t { none, small, large, realigned, variable, probed };
  enum class Release : std::uint8_t { add, lea, mov, leave, reload_sp };
  enum class Exit : std::uint8_t { ret, ret_popping, jump_to_popped };

  Frame frame = Frame::none;
  Saves saves = Saves::none;
  Memory memory = Memory::none;
  Release release = Release::add;
  Exit exit = Exit::ret;
  bool early_return = false;  ///< two epilogues; the procedure takes turns
  bool calls = false;         ///< a procedure that pops 16 bytes of arguments
  bool from_end = false;      ///< the epilogue is described by offsets from the end

  std::string text() const;
};

/// Returns every combination that makes sense.
std::vector<IdiomWish> all_idiom_wishes();

/// The code of one wish: a procedure without arguments, to be called twice. Its body destroys every register it saved.
struct IdiomProgram {
  IdiomWish wish;
  Description description;
  std::size_t size = 0;  ///< bytes, from the start of the code
};

/// Writes it as the first procedure of the CodeHolder that `a` is attached to. Throws std::runtime_error when the
/// builder refuses.
IdiomProgram write_idioms(AsmjitAssembler& a, const IdiomWish& wish);

}  // namespace jitunwind::test
