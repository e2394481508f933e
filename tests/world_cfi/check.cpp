// Checks of a file's FDEs without other programs: against the table of .eh_frame_hdr, our encoder, and the evaluator.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "jitunwind/unwind_core/rows/dwarf_expression.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"
#include "tests/support/whole_procedure.h"
#include "tests/world_cfi/compare.h"
#include "tests/world_cfi/elf_cfi.h"

namespace jitunwind::world {
using test::emit_eh_frame, test::OffsetRow, test::ProcedureRows;

namespace {

/// Memory that reads as zeros everywhere.
class ZeroMemory final : public Memory {
 public:
  std::size_t read(Addr, std::span<std::byte> into, MemoryWindow&) const noexcept override {
    std::memset(into.data(), 0, into.size());
    return into.size();
  }
};

class Check {
 public:
  explicit Check(const std::string& path) : path_(path), elf_(path) {
    for (const RegisterInfo& r : elf_.arch ? elf_.arch->registers : std::span<const RegisterInfo>{})
      if (RegisterFile::has(r.column)) registers_.set(r.column, 0x10000);
  }

  Figures run() {
    if (!elf_.arch || elf_.eh_frame.empty()) return std::move(figures_);
    figures_.files = 1;
    const CfiContext context{*elf_.arch};
    SectionView view(elf_.eh_frame);
    EhFrameHdr hdr;
    if (!elf_.eh_frame_hdr.empty()) {
      const auto parsed = parse_eh_frame_hdr(elf_.eh_frame_hdr, *elf_.arch);
      if (!parsed)
        differs(0, parsed.error().what);
      else
        hdr = *parsed;
    }
    FdeScan scan(view, context, {elf_.eh_frame.address, elf_.eh_frame.address + elf_.eh_frame.bytes.size()});
    Fde fde;
    while (!scan.at_end()) {
      const auto more = scan.next(fde);
      if (!more) differs(more.error().at, more.error().what);
      if (!more) continue;
      if (!*more) break;
      ++figures_.fdes;
      find_again(hdr.table, view, context, fde);
      check_rows(context, fde);
      read_as_walks_do(fde);
    }
    return std::move(figures_);
  }

 private:
  /// Checks that the table leads to this FDE from its first and its last address.
  void find_again(const FdeTable& table, SectionView& view, const CfiContext& context, const Fde& fde) {
    if (table.count == 0 || fde.range.empty()) return;
    const auto bytes = elf_.eh_frame_hdr.bytes.subspan(table.address - elf_.eh_frame_hdr.address);
    for (const Addr pc : {fde.range.begin, fde.range.end - 1}) {
      FoundFde found;
      if (!search(table, pc, elf_.arch->big_endian, bytes, found)) return differs(fde.address, "not in the table");
      const Addr usual = search_eh_frame_hdr(elf_.eh_frame_hdr, pc, *elf_.arch);
      if (usual != 0 && usual != found.fde) return differs(fde.address, "walks find another FDE");
      if (found.fde == fde.address) continue;
      const auto other = read_fde(view, context, found.fde);
      if (!other || !other->range.contains(pc)) return differs(fde.address, "the table leads elsewhere");
      figures_.explain("address in two FDEs", path_);
      return;
    }
    ++figures_.found;
  }

  void check_rows(const CfiContext& context, const Fde& fde) {
    rows_.clear();
    FrameRow row;
    row.range.end = fde.range.begin;
    FdeRows walk(fde, context, row);
    for (;;) {
      const auto more = walk.next_behind(row.range.end);
      if (!more) return differs(more.error().at, more.error().what);
      if (!*more) break;
      ++figures_.rows;
      if (rows_.empty() || !(rows_.back().row == row)) rows_.push_back({row.range.begin - fde.range.begin, row});
      evaluate_all(context, fde, row);
    }
    for (const OffsetRow* r : rows_.empty() ? std::vector<OffsetRow*>{} : std::vector{&rows_.front(), &rows_.back()}) {
      FrameRow again;
      if (!row_at(fde, context, fde.range.begin + r->offset, again) || !(again == r->row))
        differs(fde.address, "row_at is not the row", &r->row);
    }
    if (!rows_.empty()) encode(context, fde);
  }

  /// Reads rows straight into compact ones, if that is possible.
  void read_as_walks_do(const Fde& fde) {
    constexpr std::size_t k_most = 30;
    for (std::size_t i = 0; i < std::min(rows_.size(), k_most); ++i) {
      const OffsetRow& expected = rows_[i];
      const Addr at = fde.range.begin + expected.offset;
      CompactRow in_short, row;
      const bool is_compact = compact(expected.row, layout_, in_short);
      CompactCode code;
      if (!read_known_fde(elf_.eh_frame, fde.address, known_, *elf_.arch, code)) return;
      if (!(code.range == fde.range) || code.instructions.data() != fde.instructions.bytes.data() ||
          code.instructions.size() != fde.instructions.bytes.size())
        return differs(fde.address, "of a known CIE it is another FDE");
      AddrRange range;
      if (!find_compact_row(code, layout_, at, row, range)) {
        figures_.not_quick += is_compact;
        continue;
      }
      if (!is_compact || row != in_short || range.begin != at)
        return differs(fde.address, "compact row", &expected.row);
    }
    ++figures_.quick;
  }

  void evaluate_all(const CfiContext& context, const Fde& fde, const FrameRow& row) {
    if (row.cfa.kind == CfaRule::Kind::expression) evaluate_one(context, fde, row.cfa.expression, std::nullopt);
    for (const FrameRow::Entry& e : row.entries())
      if (e.rule.has_expression()) evaluate_one(context, fde, e.rule.expression(), 0x20000);
  }

  void evaluate_one(const CfiContext& context, const Fde& fde, Expression expression,
                    std::optional<std::uint64_t> initial) {
    ++figures_.expressions;
    const auto value = evaluate(expression, {context.arch, registers_, memory_, window_, initial});
    if (!value) differs(fde.address, value.error().what);
  }

  void encode(const CfiContext& context, const Fde& fde) {
    const ProcedureRows procedure{
        .code = fde.range, .rows = rows_, .personality = fde.cie.personality.value, .lsda = fde.lsda.value};
    const auto bytes = emit_eh_frame(procedure, context.arch);
    if (!bytes) return differs(fde.address, bytes.error().what, &rows_[0].row);
    const SectionBytes section{*bytes, 0x1000};
    SectionView view(section);
    FdeScan scan(view, context, {section.address, section.address + bytes->size()});
    Fde read;
    const auto more = scan.next(read);
    if (!more || !*more) return differs(fde.address, "encoded FDE cannot be read");
    if (!(read.range == fde.range) || read.lsda.value != fde.lsda.value ||
        read.cie.personality.value != fde.cie.personality.value)
      differs(fde.address, "encoded FDE has another range, LSDA or personality");
    FrameRow row;
    row.range.end = read.range.begin;
    FdeRows rows(read, context, row);
    for (const OffsetRow& expected : rows_) {
      const auto next = rows.next_behind(row.range.end);
      if (!next || !*next || row.range.begin - fde.range.begin != expected.offset || !(row == expected.row))
        return differs(fde.address, "encoded row differs", &expected.row);
    }
    if (const auto next = rows.next_behind(row.range.end); !next || *next)
      return differs(fde.address, "too many encoded rows");
    ++figures_.encoded;
  }

  void differs(Addr at, const char* what, const FrameRow* row = nullptr) {
    ++figures_.unexplained;
    char place[32];
    std::snprintf(place, sizeof place, "0x%llx", static_cast<unsigned long long>(at));
    std::string text = path_ + " at " + place + ": " + what;
    if (row) text += "; ours " + jitunwind::to_text(*row, *elf_.arch);
    figures_.add_message(text);
  }

  std::string path_;
  ElfCfi elf_;
  Figures figures_;
  KnownCies known_;
  CompactLayout layout_{elf_.arch ? *elf_.arch : arch::x86_64};  // files of unknown CPUs have none
  std::vector<OffsetRow> rows_;
  RegisterFile registers_;
  ZeroMemory memory_;
  MemoryWindow window_;
};

}  // namespace

Figures check_file(const std::string& path) { return Check(path).run(); }

}  // namespace jitunwind::world
