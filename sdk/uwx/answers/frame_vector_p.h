// Conversion of a row to a vector of UWX_LKUP_FDESC, and back: the frame at one address in the terms of Unwind Express.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "jitunwind/sdk/uwx/answers/callbacks_p.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

namespace jitunwind::uwx {

/// Finds a register by RegisterInfo::uwx, or by UWX_REG_IP and UWX_REG_SP. Null: the CPU has no such register.
const RegisterInfo* register_of(int regid, const Arch& arch) noexcept;

/// The facts of a frame that LOOKUP gives besides its row.
struct FrameFacts {
  Addr text_base = 0;    ///< 0: not known
  Addr func_start = 0;   ///< 0: not known
  AddrRange code{};      ///< of the function, if its unwind information has it; empty: not known
  int context = 0;       ///< code of a context frame; 0: it is none
  bool has_row = true;   ///< false: FDESC says only that it is a context frame
  Addr module_name = 0;  ///< in host memory, as long as the answer exists; 0: none
  Addr func_name = 0;
};

/// Error: an unknown key (BADKEY), or a value that makes no row (BADUDESC).
Status read_frame(const Answer& answer, const Arch& arch, FrameRow& out, FrameFacts& facts) noexcept;

/// Writes pairs without an end, and returns their number of words. Empty: FDESC cannot express the row, or there is no
/// room.
std::optional<std::size_t> write_frame(const FrameRow& row, const Arch& arch, std::span<std::uint64_t> into) noexcept;

/// The number of words that is enough for any row.
inline constexpr std::size_t k_frame_words = 2 * (FrameRow::k_max_rules + 4);

}  // namespace jitunwind::uwx
