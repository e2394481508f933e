#include "jitunwind/adapters/testing/instruction_p.h"

#include <Zydis/Zydis.h>

#include <array>
#include <cstdint>
#include <cstdio>

namespace jitunwind::stepping {
namespace {

const ZydisDecoder& decoder() {
  static const ZydisDecoder instance = [] {
    ZydisDecoder d;
    ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return d;
  }();
  return instance;
}

MachineInstruction::Flow flow_of(ZydisInstructionCategory category) {
  switch (category) {
    case ZYDIS_CATEGORY_CALL:
      return MachineInstruction::Flow::call;
    case ZYDIS_CATEGORY_RET:
      return MachineInstruction::Flow::ret;
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
      return MachineInstruction::Flow::jump;
    default:
      return MachineInstruction::Flow::next;
  }
}

}  // namespace

std::optional<MachineInstruction> decode_instruction(std::span<const std::byte> bytes) {
  ZydisDecodedInstruction decoded;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder(), nullptr, bytes.data(), bytes.size(), &decoded)))
    return std::nullopt;
  return MachineInstruction{decoded.length, flow_of(decoded.meta.category)};
}

std::string instruction_text(std::span<const std::byte> bytes, Addr at) {
  ZydisDisassembledInstruction decoded;
  const bool known =
      ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, at, bytes.data(), bytes.size(), &decoded));
  std::string text;
  for (const std::byte b : bytes.first(known ? decoded.info.length : bytes.size())) {
    std::array<char, 4> hex;
    std::snprintf(hex.data(), hex.size(), "%02x ", std::to_integer<unsigned>(b));
    text += hex.data();
  }
  return text + " " + (known ? decoded.text : "(not an instruction)");
}

std::vector<Addr> instruction_starts(const void* code, std::size_t size) {
  std::vector<Addr> starts;
  const std::span bytes(static_cast<const std::byte*>(code), size);
  for (std::size_t at = 0; at < size;) {
    const auto instruction = decode_instruction(bytes.subspan(at));
    if (!instruction) break;
    starts.push_back(reinterpret_cast<std::uintptr_t>(code) + at);
    at += instruction->length;
  }
  return starts;
}

}  // namespace jitunwind::stepping
