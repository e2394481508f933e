// Input: a byte of options, then a section. Options: bit 0 .debug_frame, bit 1 AArch64, bit 2 the section begins with
// an .eh_frame_hdr, bit 3 other byte order, bit 4 words of four bytes.
#include <array>
#include <vector>

#include "jitunwind/unwind_core/rows/dwarf_expression.h"
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/whole_procedure.h"

using namespace jitunwind;
using jitunwind::test::emit_eh_frame, jitunwind::test::OffsetRow;

namespace {

constexpr Addr k_section = 0x10000;
constexpr std::size_t k_max_rows = 64;
constexpr int k_max_fdes = 64;

/// One input.
class Input {
 public:
  Input(std::span<const std::byte> bytes, unsigned options)
      : section_{bytes, k_section},
        memory_(bytes, k_section),
        arch_((options & 2) != 0 ? arch::aarch64 : arch::x86_64) {
    arch_.big_endian = (options & 8) != 0;
    arch_.word_size = (options & 16) != 0 ? 4 : 8;
    if ((options & 1) != 0) context_.format = CfiContext::Format::debug_frame;
    context_.section = k_section;
    context_.text_base = context_.data_base = 0x20000;
    for (const RegisterInfo& r : arch_.registers)
      if (r.column >= 0) registers_.set(r.column, k_section);
  }

  void read_header() {
    const auto hdr = parse_eh_frame_hdr(section_, arch_);
    if (!hdr || hdr->table.count == 0) return;
    const auto bytes = section_.bytes.subspan(static_cast<std::size_t>(hdr->table.address - k_section));
    for (const Addr pc : {Addr{0}, k_section, ~Addr{0}}) {
      FoundFde found, again;
      const bool in_bytes = search(hdr->table, pc, arch_.big_endian, bytes, found);
      const auto in_memory = search(hdr->table, pc, arch_.big_endian, memory_, window_, again);
      fuzz::check(in_memory && *in_memory == in_bytes, "the table is the same in memory");
      if (in_bytes) fuzz::check(found.fde == again.fde && found.start <= pc, "the table is searched");
      if (in_bytes) read_one(found.fde);
      if (!in_bytes || !step_back(hdr->table, arch_.big_endian, bytes, found)) continue;
      const auto back = step_back(hdr->table, arch_.big_endian, memory_, window_, again);
      fuzz::check(back && *back && found.fde == again.fde && found.index == again.index, "a step back is the same");
    }
  }

  void read_all() {
    SectionView view(section_);
    FdeScan scan(view, context_, {k_section, k_section + section_.bytes.size()});
    Addr last = 0;
    for (int i = 0; i < k_max_fdes && !scan.at_end(); ++i) {
      Fde fde;
      const auto more = scan.next(fde);
      if (!more) continue;
      if (!*more) break;
      fuzz::check(fde.address > last && fde.address + fde.size <= k_section + section_.bytes.size(), "FDEs in order");
      last = fde.address;
      read_rows(fde);
      read_one(fde.address);
      read_as_walks_do(fde);
      ProcedureInfo info;
      (void)read_procedure(fde, arch_, memory_, window_, info);
    }
  }

 private:
  /// Reads an FDE by its address, from the section and from memory.
  void read_one(Addr at) {
    SectionView view(section_);
    const auto fde = read_fde(view, context_, at);
    std::array<std::byte, 8192> buffer;
    MemoryView copying(memory_, window_, buffer);
    const auto copy = read_fde(copying, context_, at);
    if (copy) fuzz::check(fde && fde->range == copy->range && fde->size == copy->size, "a copy is the same FDE");
  }

  /// Reads the FDE straight into a compact row, if that is possible; the row must be the same.
  void read_as_walks_do(const Fde& fde) {
    const CompactLayout layout(arch_);
    for (const Addr at : {fde.range.begin, fde.range.begin + fde.range.size() / 2, fde.range.end - 1}) {
      CompactCode code;
      if (!read_known_fde(section_, fde.address, known_, arch_, code)) continue;
      fuzz::check(code.range == fde.range && code.instructions.data() == fde.instructions.bytes.data() &&
                      code.instructions.size() == fde.instructions.bytes.size(),
                  "the same FDE");
      Fde known;
      read_known_procedure(section_, fde.address, code, known);
      fuzz::check(known.size == fde.size && known.lsda.value == fde.lsda.value &&
                      known.cie.personality.value == fde.cie.personality.value &&
                      known.cie.personality.indirect == fde.cie.personality.indirect,
                  "the same procedure");
      CompactRow quick, expected;
      AddrRange range;
      FrameRow row;
      if (!find_compact_row(code, layout, at, quick, range)) continue;
      const Status found = row_at(fde, context_, at, row);
      fuzz::check(found && compact(row, layout, expected) && quick == expected && row.range == range, "the same row");
    }
  }

  void read_rows(const Fde& fde) {
    rows_.clear();
    FrameRow row;
    row.range.end = fde.range.begin;
    FdeRows walk(fde, context_, row);
    Addr begin = fde.range.begin;
    while (rows_.size() < k_max_rows) {
      const auto more = walk.next_behind(row.range.end);
      if (!more) return;
      if (!*more) break;
      fuzz::check(row.range.begin == begin && row.range.end > begin && row.range.end <= fde.range.end, "rows in order");
      begin = row.range.end;
      rows_.push_back({row.range.begin - fde.range.begin, row});
      evaluate_all(row);
    }
    if (rows_.empty()) return;
    const OffsetRow& last = rows_.back();
    FrameRow again;
    const Status found = row_at(fde, context_, last.row.range.begin, again);
    fuzz::check(found && again == last.row && again.range == last.row.range, "row_at finds the row");
    encode(fde.range);
  }

  void evaluate_all(const FrameRow& row) {
    const auto run = [&](Expression e) { (void)evaluate(e, {arch_, registers_, memory_, window_, k_section}); };
    if (row.cfa.kind == CfaRule::Kind::expression) run(row.cfa.expression);
    for (const FrameRow::Entry& e : row.entries())
      if (e.rule.has_expression()) run(e.rule.expression());
  }

  /// Rows that can be written read back as they were.
  void encode(AddrRange code) {
    const auto bytes = emit_eh_frame({.code = code, .rows = rows_}, arch_);
    if (!bytes) return;
    SectionView view({*bytes, k_section});
    const CfiContext context{arch_};
    FdeScan scan(view, context, {k_section, k_section + bytes->size()});
    Fde fde;
    const auto more = scan.next(fde);
    fuzz::check(more && *more && fde.range == code, "an encoded FDE can be read");
    FrameRow row;
    row.range.end = fde.range.begin;
    FdeRows walk(fde, context, row);
    const FrameRow* last = nullptr;
    for (const OffsetRow& expected : rows_) {
      if (last && *last == expected.row) continue;
      last = &expected.row;
      const auto next = walk.next_behind(row.range.end);
      fuzz::check(next && *next && row == expected.row && row.range.begin - code.begin == expected.offset,
                  "an encoded row comes back");
    }
  }

  SectionBytes section_;
  fuzz::InputMemory memory_;
  MemoryWindow window_;
  Arch arch_;
  CfiContext context_{arch_};
  KnownCies known_;
  RegisterFile registers_;
  std::vector<OffsetRow> rows_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Input input(std::as_bytes(std::span(data, size)).subspan(1), data[0]);
  if ((data[0] & 4) != 0) input.read_header();
  input.read_all();
  return 0;
}
