// The numbers of DWARF in call frame information. The names are those of DWARF 5, 7.7.1 (operations) and 7.24 (call
// frame instructions), and of LSB 5.0 core, 10.5 (pointer encodings).
#pragma once

#include <cstdint>
#include <optional>

#include "jitunwind/unwind_core/byte_reader.h"

namespace jitunwind::dwarf {

enum Op : std::uint8_t {
  op_addr = 0x03,
  op_deref = 0x06,
  op_const1u = 0x08,
  op_const1s = 0x09,
  op_const2u = 0x0a,
  op_const2s = 0x0b,
  op_const4u = 0x0c,
  op_const4s = 0x0d,
  op_const8u = 0x0e,
  op_const8s = 0x0f,
  op_constu = 0x10,
  op_consts = 0x11,
  op_dup = 0x12,
  op_drop = 0x13,
  op_over = 0x14,
  op_pick = 0x15,
  op_swap = 0x16,
  op_rot = 0x17,
  op_xderef = 0x18,
  op_abs = 0x19,
  op_and = 0x1a,
  op_div = 0x1b,
  op_minus = 0x1c,
  op_mod = 0x1d,
  op_mul = 0x1e,
  op_neg = 0x1f,
  op_not = 0x20,
  op_or = 0x21,
  op_plus = 0x22,
  op_plus_uconst = 0x23,
  op_shl = 0x24,
  op_shr = 0x25,
  op_shra = 0x26,
  op_xor = 0x27,
  op_bra = 0x28,
  op_eq = 0x29,
  op_ge = 0x2a,
  op_gt = 0x2b,
  op_le = 0x2c,
  op_lt = 0x2d,
  op_ne = 0x2e,
  op_skip = 0x2f,
  op_lit0 = 0x30,
  op_lit31 = 0x4f,
  op_reg0 = 0x50,
  op_reg31 = 0x6f,
  op_breg0 = 0x70,
  op_breg31 = 0x8f,
  op_regx = 0x90,
  op_fbreg = 0x91,
  op_bregx = 0x92,
  op_piece = 0x93,
  op_deref_size = 0x94,
  op_xderef_size = 0x95,
  op_nop = 0x96,
  op_push_object_address = 0x97,
  op_call2 = 0x98,
  op_call_ref = 0x9a,
  op_call_frame_cfa = 0x9c,
  op_stack_value = 0x9f,
  op_addrx = 0xa1,
  op_reinterpret = 0xa9,
};

/// The first three have the opcode in the upper two bits and an operand in the lower six.
enum Cfa : std::uint8_t {
  cfa_advance_loc = 0x40,
  cfa_offset = 0x80,
  cfa_restore = 0xc0,
  cfa_nop = 0x00,
  cfa_set_loc = 0x01,
  cfa_advance_loc1 = 0x02,
  cfa_advance_loc2 = 0x03,
  cfa_advance_loc4 = 0x04,
  cfa_offset_extended = 0x05,
  cfa_restore_extended = 0x06,
  cfa_undefined = 0x07,
  cfa_same_value = 0x08,
  cfa_register = 0x09,
  cfa_remember_state = 0x0a,
  cfa_restore_state = 0x0b,
  cfa_def_cfa = 0x0c,
  cfa_def_cfa_register = 0x0d,
  cfa_def_cfa_offset = 0x0e,
  cfa_def_cfa_expression = 0x0f,
  cfa_expression = 0x10,
  cfa_offset_extended_sf = 0x11,
  cfa_def_cfa_sf = 0x12,
  cfa_def_cfa_offset_sf = 0x13,
  cfa_val_offset = 0x14,
  cfa_val_offset_sf = 0x15,
  cfa_val_expression = 0x16,
  cfa_mips_advance_loc8 = 0x1d,
  cfa_aarch64_negate_ra_state_with_pc = 0x2c,
  cfa_gnu_window_save = 0x2d,  // on AArch64: DW_CFA_AARCH64_negate_ra_state
  cfa_gnu_args_size = 0x2e,
  cfa_gnu_negative_offset_extended = 0x2f,
};

/// The low four bits are the format, and the next three say what the value is relative to. Bit 7 says that the result
/// is the address of the value.
enum Pe : std::uint8_t {
  pe_absptr = 0x00,
  pe_uleb128 = 0x01,
  pe_udata2 = 0x02,
  pe_udata4 = 0x03,
  pe_udata8 = 0x04,
  pe_signed = 0x08,
  pe_sleb128 = 0x09,
  pe_sdata2 = 0x0a,
  pe_sdata4 = 0x0b,
  pe_sdata8 = 0x0c,
  pe_format_mask = 0x0f,
  pe_pcrel = 0x10,
  pe_textrel = 0x20,
  pe_datarel = 0x30,
  pe_funcrel = 0x40,
  pe_aligned = 0x50,
  pe_application_mask = 0x70,
  pe_indirect = 0x80,
  pe_omit = 0xff,
};

/// The operations that push a constant (DWARF 5, 2.5.1.1): the evaluator runs them, the CFI decoder recognises them.
/// Returns the constant that `op` pushes and takes its operand from `reader`. Returns nothing and takes nothing for
/// other operations. DW_OP_addr is one of those, because its operand needs relocation.
inline std::optional<std::uint64_t> read_literal(std::uint8_t op, ByteReader& reader) noexcept {
  if (op >= op_lit0 && op <= op_lit31) return std::uint64_t{op} - op_lit0;
  switch (op) {
    case op_const1u:
      return reader.u8();
    case op_const1s:
      return static_cast<std::uint64_t>(reader.signed_of(1));
    case op_const2u:
      return reader.u16();
    case op_const2s:
      return static_cast<std::uint64_t>(reader.signed_of(2));
    case op_const4u:
      return reader.u32();
    case op_const4s:
      return static_cast<std::uint64_t>(reader.signed_of(4));
    case op_const8u:
    case op_const8s:
      return reader.u64();
    case op_constu:
      return reader.uleb();
    case op_consts:
      return static_cast<std::uint64_t>(reader.sleb());
    default:
      return std::nullopt;
  }
}

}  // namespace jitunwind::dwarf
