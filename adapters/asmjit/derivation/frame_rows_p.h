// From what is known of a frame to a row, and the proof that a row, whoever made it, says nothing that is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "jitunwind/adapters/asmjit/derivation/frame_state_p.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

namespace jitunwind::derivation {

/// Registers that the caller of a procedure of the psABI relies on.
RegSet abi_preserved(const Arch& arch) noexcept;

/// Which register rows measure the CFA from while several can tell it.
enum class CfaBase : std::uint8_t { frame_pointer, stack_pointer };

/// Why there is no row: the CFA (SP stands for it), the return address or a preserved register cannot be found.
struct LostPlace {
  RegNum reg = k_no_reg;
  std::string reason;  ///< "": nothing holds the register's value
};

/// A row that holds in this state. The CFA is found through the usual frame pointer or SP when they are at a known
/// distance; while SP is not, rather through a copy of an address in memory at SP; else through any register. Registers
/// are found where they were stored, else where they are.
Result<FrameRow, LostPlace> plan_row(const FrameState& state, const Arch& arch, CfaBase preferred);

/// "r12", "[cfa-16]": a place that holds what the register held at entry, if there is one.
std::string place_text(const FrameState& state, const Arch& arch, RegNum reg);

/// True when applying the row in this state gives the CFA, the return address and every preserved register, and every
/// other register that the row speaks of.
bool proves(const FrameState& state, const Arch& arch, const FrameRow& row) noexcept;

}  // namespace jitunwind::derivation
