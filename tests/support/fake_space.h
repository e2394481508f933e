// An address space whose rows are given as text, one for each code range.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/unwind_core/no_modules.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/walk/cursor.h"
#include "tests/support/fake_memory.h"

namespace jitunwind::test {

class GivenRows : public RowSource {
 public:
  explicit GivenRows(const Arch& arch) : arch_(arch) {}

  void add(AddrRange range, const std::string& text) {
    const auto parsed = parse_row(text, arch_, pool_);
    if (!parsed) throw std::runtime_error(text + ": " + parsed.error().what);
    FrameRow row = parsed->row;
    row.range = range;
    row.origin = RowOrigin::eh_frame;
    row.keeps_by = KeepsBy::module;
    rows_.push_back(row);
  }
  void break_at(Addr at, Error error) { broken_.emplace_back(at, error); }

  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    for (const auto& [at, error] : broken_)
      if (at == lookup.at.lookup()) return error;
    for (const FrameRow& row : rows_) {
      if (!row.range.contains(lookup.at.lookup())) continue;
      out = row;
      return true;
    }
    return false;
  }

 private:
  const Arch& arch_;
  ExpressionPool pool_;
  std::vector<FrameRow> rows_;
  std::vector<std::pair<Addr, Error>> broken_;
};

/// An address space with everything that a cursor needs, on any CPU.
struct FakeSpace {
  explicit FakeSpace(const Arch& a, bool big_endian = false) : arch(a), memory(big_endian), rows(a) {}

  Cursor cursor(Addr pc, Addr sp, std::initializer_list<std::pair<const char*, std::uint64_t>> others = {},
                Cursor::Top top = Cursor::Top::interrupted) const {
    RegisterFile registers;
    registers.set(arch.column(arch.pc), pc);
    registers.set(arch.column(arch.sp), sp);
    for (const auto& [name, value] : others) {
      const RegisterInfo* info = arch.by_name(name);
      registers.set_from_register(info->column, value, info->dwarf);
    }
    return {space, registers, top};
  }

  const Arch& arch;
  FakeMemory memory;
  NoModules modules;
  GivenRows rows;
  std::array<const RowSource*, 1> row_list{&rows};
  AddressSpace space{arch, memory, modules, row_list, {}};
};

}  // namespace jitunwind::test
