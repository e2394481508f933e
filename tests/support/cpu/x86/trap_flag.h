// The flag that makes the processor trap after every instruction (Intel SDM, volume 1, 3.4.3.3).
#pragma once

namespace registry_test {

inline void set_trap_flag() noexcept { asm volatile("pushfl; orl $0x100, (%%esp); popfl" ::: "cc", "memory"); }
inline void clear_trap_flag() noexcept { asm volatile("pushfl; andl $-257, (%%esp); popfl" ::: "cc", "memory"); }

}  // namespace registry_test
