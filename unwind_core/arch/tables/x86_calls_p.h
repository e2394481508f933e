// Calls of x86, with 32 and with 64 bits: the bytes are the same, but disp32 is relative to rip with 64.
#pragma once

#include <cstdint>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::arch {

// Calls: e8 rel32 and ff /2 (Intel SDM, volume 2, "CALL"): ModRM with 2 in its middle field; prefixes do not change the
// end. Forms: register, [register]; [register+disp8]; SIB; SIB+disp8; disp32 or rip-relative; SIB+disp32. A far call
// (ff /3, 9a) pushes another frame.
inline constexpr std::uint8_t k_x86_call_rel[] = {0xe8, 0, 0, 0, 0};
inline constexpr std::uint8_t k_x86_call_rel_mask[] = {0xff, 0, 0, 0, 0};
inline constexpr std::uint8_t k_x86_call_register[] = {0xff, 0xd0};
inline constexpr std::uint8_t k_x86_call_memory[] = {0xff, 0x10};
inline constexpr std::uint8_t k_x86_call_memory_mask[] = {0xff, 0xfc};
inline constexpr std::uint8_t k_x86_call_high_memory[] = {0xff, 0x16};
inline constexpr std::uint8_t k_x86_call_high_memory_mask[] = {0xff, 0xfe};
inline constexpr std::uint8_t k_x86_call_disp8[] = {0xff, 0x50, 0, 0};
inline constexpr std::uint8_t k_x86_call_disp32[] = {0xff, 0x90, 0, 0, 0, 0, 0};
inline constexpr std::uint8_t k_x86_call_sib[] = {0xff, 0x14, 0, 0, 0, 0, 0};
inline constexpr std::uint8_t k_x86_call_sib_disp8[] = {0xff, 0x54, 0, 0};
inline constexpr std::uint8_t k_x86_call_sib_disp32[] = {0xff, 0x94, 0, 0, 0, 0, 0};
inline constexpr std::uint8_t k_x86_call_rip[] = {0xff, 0x15, 0, 0, 0, 0};
inline constexpr std::uint8_t k_x86_call_group_mask[] = {0xff, 0xf8, 0, 0, 0, 0, 0};
inline constexpr std::uint8_t k_x86_call_exact_mask[] = {0xff, 0xff, 0, 0, 0, 0, 0};

constexpr CodePattern x86_call(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> mask,
                               std::uint8_t length) {
  return {bytes.first(length), mask.first(length), length, 0};
}
inline constexpr CodePattern k_x86_calls[] = {
    {k_x86_call_rel, k_x86_call_rel_mask, 5, 0, 4},
    x86_call(k_x86_call_register, k_x86_call_group_mask, 2),
    x86_call(k_x86_call_rip, k_x86_call_exact_mask, 6),
    x86_call(k_x86_call_disp8, k_x86_call_group_mask, 3),
    x86_call(k_x86_call_memory, k_x86_call_memory_mask, 2),
    x86_call(k_x86_call_high_memory, k_x86_call_high_memory_mask, 2),
    x86_call(k_x86_call_disp32, k_x86_call_group_mask, 6),
    x86_call(k_x86_call_sib, k_x86_call_exact_mask, 3),
    x86_call(k_x86_call_sib_disp8, k_x86_call_exact_mask, 4),
    x86_call(k_x86_call_sib_disp32, k_x86_call_exact_mask, 7),
    x86_call(k_x86_call_sib, k_x86_call_exact_mask, 7),  // SIB without base: disp32
};

}  // namespace jitunwind::arch
