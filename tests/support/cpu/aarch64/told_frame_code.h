// AArch64 code that calls through and keeps a frame pointer, void frame(void (*f)()), and call frame information of
// code of this CPU. The header needs nothing of this library.
#pragma once

#include <elf.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace jitunwind::test {

struct ToldFrameCode {
  static constexpr std::uint16_t k_machine = EM_AARCH64;
  static constexpr std::array<std::uint8_t, 20> k_bytes{
      0xfd, 0x7b, 0xbf, 0xa9,  // stp x29,x30,[sp,#-16]!
      0xfd, 0x03, 0x00, 0x91,  // mov x29,sp
      0x00, 0x00, 0x3f, 0xd6,  // blr x0
      0xfd, 0x7b, 0xc1, 0xa8,  // ldp x29,x30,[sp],#16
      0xc0, 0x03, 0x5f, 0xd6,  // ret
  };
  /// The part of an FDE for this code behind its range: no augmentation data, and the instructions.
  static constexpr std::array<std::uint8_t, 20> k_fde_data{0,    0x41, 0x0e, 16,   0x9d, 2, 0x9e, 1,   0x41,
                                                           0x0d, 29,   0x42, 0x0c, 31,   0, 0xdd, 0xde};

  // Fields of the CIE: the alignment factors of advances and offsets, the return address's register, and the row at the
  // entry.
  static constexpr std::uint8_t k_code_alignment = 4, k_data_alignment = 0x78, k_return_address = 30;
  static constexpr std::array<std::uint8_t, 5> k_entry{0x0c, 31, 0};
  static constexpr const char* k_entry_row = "cfa=sp";

  /// A procedure that calls its argument and loses the address that it called: void procedure(void (*f)()). Its first
  /// instruction is its prologue.
  static constexpr std::array<std::uint8_t, 28> k_forgetful{
      0xf3, 0x7b, 0xbf, 0xa9,  // stp x19,x30,[sp,#-16]!
      0xf3, 0x03, 0x00, 0xaa,  // mov x19,x0
      0x00, 0x00, 0x80, 0xd2,  // mov x0,#0
      0x60, 0x02, 0x3f, 0xd6,  // blr x19
      0x13, 0x00, 0x80, 0xd2,  // mov x19,#0
      0xf3, 0x7b, 0xc1, 0xa8,  // ldp x19,x30,[sp],#16
      0xc0, 0x03, 0x5f, 0xd6,  // ret
  };
  static constexpr std::size_t k_prologue_size = 4;

  /// Instructions of an FDE for code whose first instruction saves a register. The row holds from the fourth byte on,
  /// or earlier.
  static constexpr std::array<std::uint8_t, 7> k_saves{0x41, 0x0e, 16, 0x93, 2, 0x9e, 1};
  static constexpr const char* k_saved_row = "cfa=sp+16 x19=[cfa-16] ra=[cfa-8]";
  /// DW_CFA_advance_loc 1; DW_CFA_def_cfa_offset 32.
  static constexpr const char* k_row_of_32_bytes = "cfa=sp+32";
};

}  // namespace jitunwind::test
