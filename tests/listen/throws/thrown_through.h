// Code made at run time that calls through and keeps a frame pointer, and exceptions through it, for programs that do
// not know this library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "told_frame_code.h"

extern "C" {
void __register_frame(const void* begin);
void __deregister_frame(const void* begin);
int run_through(int argc, char** argv);
}

inline void throw_it() { throw std::runtime_error("through"); }
inline volatile int passages = 0;

using Code = jitunwind::test::ToldFrameCode;

inline void copy_code(std::byte* to) {
  std::memcpy(to, Code::k_bytes.data(), Code::k_bytes.size());
  __builtin___clear_cache(reinterpret_cast<char*>(to), reinterpret_cast<char*>(to + Code::k_bytes.size()));
}

/// .eh_frame of one piece of code, with a personality routine: a CIE, "zPR" with absolute addresses, an FDE, an end
/// (LSB 5.0 core, 10.6.1).
struct [[gnu::packed]] ToldFrames {
  std::uint32_t cie_length = 28;
  std::uint32_t cie_id = 0;
  std::array<std::uint8_t, 10> cie{
      1, 'z', 'P', 'R', 0, Code::k_code_alignment, Code::k_data_alignment, Code::k_return_address, 10, 0};
  std::uint64_t personality;
  std::uint8_t encoding = 0;
  std::array<std::uint8_t, 5> cie_rows = Code::k_entry;
  std::uint32_t fde_length = 40;
  std::uint32_t cie_distance = 36;
  std::uint64_t begin;
  std::uint64_t size;
  std::array<std::uint8_t, 20> fde = Code::k_fde_data;
  std::uint32_t end = 0;
  ToldFrames(std::uint64_t routine, std::uint64_t code, std::uint64_t code_size)
      : personality(routine), begin(code), size(code_size) {}
};

inline bool is_thrown_through(const void* code) {
  try {
    reinterpret_cast<void (*)(void (*)())>(reinterpret_cast<std::uintptr_t>(code))(throw_it);
    passages = passages + 1;  // no jump in place of the call
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

/// Throws three times, and counts the exceptions that arrive.
inline int count_thrown_through(const void* code) {
  int caught = 0;
  for (int i = 0; i < 3; ++i) caught += is_thrown_through(code) ? 1 : 0;
  return caught;
}
