// The flag by which the processor traps behind every instruction (Intel SDM, volume 1, 3.4.3.3).
#pragma once

namespace registry_test {

inline void set_trap_flag() noexcept {
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "cc", "memory");
}
/// In a function with a frame pointer, by which its frame is found in between.
inline void clear_trap_flag() noexcept {
  asm volatile("lea -128(%%rsp), %%rsp; pushfq; andq $-257, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::"r"(
                   __builtin_frame_address(0))
               : "cc", "memory");
}

}  // namespace registry_test
