// The flag that makes the processor trap after every instruction (Intel SDM, volume 1, 3.4.3.3).
#pragma once

namespace registry_test {

inline void set_trap_flag() noexcept {
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "cc", "memory");
}
/// The asm's operand forces a frame pointer, by which the frame is found between these instructions.
inline void clear_trap_flag() noexcept {
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $-257, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::"r"(
                   __builtin_frame_address(0))
               : "cc", "memory");
}

}  // namespace registry_test
