// The operations that push a constant (DWARF 5, 2.5.1.1): the evaluator runs them, the CFI decoder recognises them.
#pragma once

#include <cstdint>
#include <optional>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"

namespace jitunwind::dwarf {

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
