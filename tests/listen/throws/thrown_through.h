// Code made at run time that calls through and keeps a frame pointer, and exceptions through it; of a program that has
// never heard of this library. x86-64.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>

extern "C" {
void __register_frame(const void* begin);
void __deregister_frame(const void* begin);
int run_through(int argc, char** argv);
}

inline void throw_it() { throw std::runtime_error("through"); }
inline volatile int times = 0;

/// push rbp; mov rbp,rsp; call rdi; pop rbp; ret
inline constexpr std::array<std::uint8_t, 8> k_code{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
/// Its FDE's data behind the addresses: no augmentation data, and the rows.
inline constexpr std::array<std::uint8_t, 16> k_rows{0, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d,
                                                     6, 0x43, 0x0c, 7,  8,    0, 0,    0};

inline bool is_thrown_through(const void* code) {
  try {
    reinterpret_cast<void (*)(void (*)())>(reinterpret_cast<std::uintptr_t>(code))(throw_it);
    times = times + 1;  // no jump in place of the call
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

/// How many of three.
inline int count_thrown_through(const void* code) {
  int caught = 0;
  for (int i = 0; i < 3; ++i) caught += is_thrown_through(code) ? 1 : 0;
  return caught;
}
