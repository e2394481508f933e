// Converts a frame state to a row, and proves that a row of any origin agrees with a state.
#pragma once

#include <cstdint>
#include <string>

#include "jitunwind/adapters/asmjit/derivation/frame_state_p.h"
#include "jitunwind/unwind_core/error.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

namespace jitunwind::derivation {

/// Registers that the psABI preserves.
RegSet abi_preserved(const Arch& arch) noexcept;

/// The preferred base register of the CFA when several have a known distance to it.
enum class CfaBase : std::uint8_t { frame_pointer, stack_pointer };

/// The reason why there is no row: the CFA (SP stands for it), the return address or a preserved register is lost.
struct LostPlace {
  RegNum reg = k_no_reg;
  std::string reason;  ///< "": nothing holds the register's value
};

/// Plans a row that holds in this state. The CFA is found through the usual frame pointer or SP if their distance is
/// known. If SP's is not, a copy of an address in memory at SP is preferred. Any other register comes last. Registers
/// are found in their slots, else in the registers that hold them.
Result<FrameRow, LostPlace> plan_row(const FrameState& state, const Arch& arch, CfaBase preferred);

/// "r12", "[cfa-16]": a place that holds the register's value at entry; "no place" if there is none.
std::string place_text(const FrameState& state, const Arch& arch, RegNum reg);

/// True when the row, applied in this state, gives the CFA, the return address, every preserved register, and every
/// other register that the row has a rule for.
bool proves(const FrameState& state, const Arch& arch, const FrameRow& row) noexcept;

}  // namespace jitunwind::derivation
