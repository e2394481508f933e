// One machine instruction of the host, decoded by Zydis, whose result is independent of the library's own decoders.
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
  Flow flow = Flow::next;  ///< jump includes conditional ones
};

/// None when the bytes are no instruction.
std::optional<MachineInstruction> decode_instruction(std::span<const std::byte> bytes);

/// "48 83 ec 28  sub rsp, 0x28".
std::string instruction_text(std::span<const std::byte> bytes, Addr at);

/// The begin of each instruction of [code, code + size), decoded in sequence from the first byte up to the first byte
/// that is no instruction. The code is in host memory.
std::vector<Addr> instruction_starts(const void* code, std::size_t size);

}  // namespace jitunwind::stepping
