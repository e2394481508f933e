// A row as a vector of UWX_LKUP_FDESC, and back: the frame at one address, in the words of Unwind Express.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "jitunwind/sdk/uwx/answers/callbacks_p.h"
#include "jitunwind/unwind_core/rows/frame_row.h"

namespace jitunwind::uwx {

/// By RegisterInfo::uwx, or UWX_REG_IP and UWX_REG_SP. Null: the CPU has no such register.
const RegisterInfo* register_of(int regid, const Arch& arch) noexcept;

/// What LOOKUP tells of a frame beside its row.
struct FrameFacts {
  Addr text_base = 0;    ///< 0: not known
  Addr func_start = 0;   ///< likewise
  AddrRange code{};      ///< of the function, where its unwind information says it; empty: not known
  int context = 0;       ///< code of a context frame; 0: it is none
  bool has_row = true;   ///< false: FDESC has said no more than that it is a context frame
  Addr module_name = 0;  ///< in host memory, as long as the answer is there; 0: none
  Addr func_name = 0;
};

/// Error: a key that is unknown (BADKEY), or a value that makes no row (BADUDESC).
Status read_frame(const Answer& answer, const Arch& arch, FrameRow& out, FrameFacts& facts) noexcept;

/// Writes pairs, without an end, and returns how many words they take. Nothing: FDESC has no words for the row, or
/// there is no room.
std::optional<std::size_t> write_frame(const FrameRow& row, const Arch& arch, std::span<std::uint64_t> into) noexcept;

/// Words that any row takes.
inline constexpr std::size_t k_frame_words = 2 * (FrameRow::k_max_rules + 4);

}  // namespace jitunwind::uwx
