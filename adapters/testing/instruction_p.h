// One machine instruction of the host, decoded by Zydis: an opinion independent of the library's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind::stepping {

inline constexpr std::size_t k_max_instruction_bytes = 15;

struct MachineInstruction {
  enum class Flow : std::uint8_t { next, call, ret, jump };
  std::size_t length = 0;
  Flow flow = Flow::next;  ///< jump: conditional ones too
};

/// Nothing when the bytes are no instruction.
std::optional<MachineInstruction> decode_instruction(std::span<const std::byte> bytes);

/// "48 83 ec 28  sub rsp, 0x28".
std::string instruction_text(std::span<const std::byte> bytes, Addr at);

/// Where each instruction of [code, code + size) begins, decoding one after the other from the first byte; ends at the
/// first byte that is no instruction. Host memory.
std::vector<Addr> instruction_starts(const void* code, std::size_t size);

}  // namespace jitunwind::stepping
