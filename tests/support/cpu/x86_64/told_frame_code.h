// x86-64 code that calls through and keeps a frame pointer, void frame(void (*f)()), and call frame information of code
// of this CPU. The header needs nothing of this library.
#pragma once

#include <elf.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace jitunwind::test {

struct ToldFrameCode {
  static constexpr std::uint16_t k_machine = EM_X86_64;
  static constexpr std::array<std::uint8_t, 8> k_bytes{
      0x55,              // push rbp
      0x48, 0x89, 0xe5,  // mov rbp,rsp
      0xff, 0xd7,        // call rdi
      0x5d,              // pop rbp
      0xc3,              // ret
  };
  /// The part of an FDE for this code behind its range: no augmentation data, and the instructions.
  static constexpr std::array<std::uint8_t, 20> k_fde_data{0, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x43, 0x0c, 7, 8};

  // Fields of the CIE: the alignment factors of advances and offsets, the return address's register, and the row at the
  // entry.
  static constexpr std::uint8_t k_code_alignment = 1, k_data_alignment = 0x78, k_return_address = 16;
  static constexpr std::array<std::uint8_t, 5> k_entry{0x0c, 7, 8, 0x90, 1};
  static constexpr const char* k_entry_row = "cfa=rsp+8 ra=[cfa-8]";

  /// A procedure that calls its argument and loses the address that it called: void procedure(void (*f)()). Its first
  /// instruction is its prologue.
  static constexpr std::array<std::uint8_t, 12> k_forgetful{
      0x53,              // push rbx
      0x48, 0x89, 0xfb,  // mov rbx,rdi
      0x31, 0xff,        // xor edi,edi
      0xff, 0xd3,        // call rbx
      0x31, 0xdb,        // xor ebx,ebx
      0x5b,              // pop rbx
      0xc3,              // ret
  };
  static constexpr std::size_t k_prologue_size = 1;

  /// Instructions of an FDE for code whose first instruction saves a register. The row holds from the fourth byte on,
  /// or earlier.
  static constexpr std::array<std::uint8_t, 5> k_saves{0x41, 0x0e, 16, 0x83, 2};
  static constexpr const char* k_saved_row = "cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]";
  /// DW_CFA_advance_loc 1; DW_CFA_def_cfa_offset 32.
  static constexpr const char* k_row_of_32_bytes = "cfa=rsp+32 ra=[cfa-8]";
};

}  // namespace jitunwind::test
