#include "tests/world_cfi/compare.h"

#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "tests/world_cfi/elf_cfi.h"

namespace jitunwind::world {
namespace {

using Kind = Cell::Kind;

constexpr std::size_t k_max_messages = 20;

Cell cell_of(const CfaRule& cfa) {
  switch (cfa.kind) {
    case CfaRule::Kind::none:
      return {};
    case CfaRule::Kind::offset:
      return {Kind::reg, cfa.reg, cfa.offset};
    case CfaRule::Kind::deref:
    case CfaRule::Kind::expression:
      break;
  }
  return {Kind::is_expression, 0, 0};
}

/// at_reg, is_reg and constant are only ever made from expressions.
Cell cell_of(const RegRule& rule) {
  switch (rule.kind) {
    case RegRule::Kind::unspecified:
      return {};
    case RegRule::Kind::undefined:
      return {Kind::lost, 0, 0};
    case RegRule::Kind::same:
      return {Kind::same, 0, 0};
    case RegRule::Kind::at_cfa:
      return {Kind::at_cfa, 0, rule.offset};
    case RegRule::Kind::is_cfa:
      return {Kind::is_cfa, 0, rule.offset};
    case RegRule::Kind::in_reg:
      return {Kind::reg, rule.reg, 0};
    case RegRule::Kind::at_reg:
    case RegRule::Kind::at_expression:
      return {Kind::at_expression, 0, 0};
    case RegRule::Kind::is_reg:
    case RegRule::Kind::is_expression:
    case RegRule::Kind::constant:
      break;
  }
  return {Kind::is_expression, 0, 0};
}

/// Compares one file with one tool.
class Comparison {
 public:
  Comparison(const std::string& path, Tool tool, const ElfCfi& elf)
      : path_(path), tool_(tool), elf_(elf), reference_(tool, path, *elf.arch) {}

  Figures run() {
    figures_.files = 1;
    more_ = reference_.next(theirs_);
    while (more_) {  // sections in the order in which the tool shows them
      has_theirs_ = true;
      if (theirs_.section == ".eh_frame")
        section(elf_.eh_frame, CfiContext::Format::eh_frame);
      else
        section(elf_.debug_frame, CfiContext::Format::debug_frame);
    }
    return std::move(figures_);
  }

 private:
  void section(const SectionBytes& bytes, CfiContext::Format format) {
    section_ = theirs_.section;
    CfiContext context{*elf_.arch};
    context.format = format;
    context.section = bytes.address;
    SectionView view(bytes);
    const Addr end = bytes.address + bytes.bytes.size();
    FdeScan scan(view, context, {bytes.address, end});
    bool behind_terminator = false;
    for (const Entry& entry : entries(bytes, format)) {
      if (entry.is_terminator) {
        behind_terminator = format == CfiContext::Format::eh_frame;
        continue;
      }
      const std::uint64_t offset = entry.address - bytes.address;
      Fde fde;
      if (behind_terminator) {
        explain("FDE behind a terminator");
      } else if (const auto more = scan.next(fde); !more || !*more || fde.address != entry.address) {
        differs(offset, "FdeScan does not come to this FDE");
      }
      for (; has_theirs_ && theirs_.offset < offset; next_of_section())
        differs(theirs_.offset, "only they have this FDE");
      if (!has_theirs_ || theirs_.offset != offset) {
        differs(offset, "they do not have this FDE");
        continue;
      }
      const auto read = read_fde(view, context, entry.address);
      if (read)
        compare_fde(*read, context);
      else
        differs(offset, std::string("FDE: ") + read.error().what);
      next_of_section();
    }
    for (; has_theirs_; next_of_section()) differs(theirs_.offset, "only they have this FDE");
  }

  void next_of_section() {
    more_ = reference_.next(theirs_);
    has_theirs_ = more_ && theirs_.section == section_;
  }

  struct Entry {
    Addr address;
    bool is_terminator;
  };

  /// Finds FDEs and terminators by its own walk over length and id fields; CIEs are left out.
  std::vector<Entry> entries(const SectionBytes& bytes, CfiContext::Format format) {
    std::vector<Entry> found;
    ByteReader reader(bytes.bytes, elf_.arch->big_endian, bytes.address);
    while (reader.remaining() >= 4) {
      const Addr at = reader.address();
      std::uint64_t length = reader.u32();
      const bool wide = length == 0xffffffffu;
      if (wide) length = reader.u64();
      if (length == 0) {
        found.push_back({at, true});
        continue;
      }
      const std::size_t body = reader.position();
      const bool eh = format == CfiContext::Format::eh_frame;
      const std::uint64_t id = reader.unsigned_of(wide && !eh ? 8 : 4);
      const bool is_cie = eh ? id == 0 : id == (wide ? ~std::uint64_t{0} : 0xffffffffu);
      if (!is_cie) found.push_back({at, false});
      reader.seek(body + static_cast<std::size_t>(length));
      if (!reader.ok()) break;
    }
    return found;
  }

  void compare_fde(const Fde& fde, const CfiContext& context) {
    ++figures_.fdes;
    if (fde.range.begin != theirs_.range.begin || fde.range.end != theirs_.range.end)
      differs(theirs_.offset, "pc range");
    if (tool_ == Tool::dwarfdump && fde.cie.personality.value != theirs_.personality)
      differs(theirs_.offset, "personality");
    if (tool_ == Tool::dwarfdump && fde.lsda.value != theirs_.lsda) differs(theirs_.offset, "LSDA");
    FrameRow row;
    row.range.end = fde.range.begin;
    FdeRows rows(fde, context, row);
    std::size_t next = 0;
    was_expression_ = false;
    for (;;) {
      const auto more = rows.next_behind(row.range.end);
      if (!more) differs(theirs_.offset, std::string("rows: ") + more.error().what);
      if (!more || !*more) break;
      ++figures_.rows;
      if (theirs_.rows.empty() && tool_ == Tool::readelf) continue;  // nothing but nops: it prints no rows
      // Advances by 0 make several rows at one address; the last one counts.
      while (next + 1 < theirs_.rows.size() && theirs_.rows[next + 1].at == row.range.begin) ++next;
      if (next >= theirs_.rows.size() || theirs_.rows[next].at != row.range.begin) {
        differs(theirs_.offset, "they have no row at this address", &row);
        continue;
      }
      compare_row(fde, row, theirs_.rows[next++]);
    }
    for (; next < theirs_.rows.size(); ++next) {
      if (theirs_.rows[next].at >= fde.range.end)
        explain("row behind the end of its FDE");
      else
        differs(theirs_.offset, "we have no row at this address");
    }
  }

  bool equal(const Cell& ours, const Cell& theirs) const {
    if (ours == theirs) return true;
    return tool_ == Tool::readelf && ours.kind == Kind::lost && theirs.kind == Kind::none;
  }

  void compare_cfa(const FrameRow& row, const ReferenceRow& theirs) {
    const Cell ours = cell_of(row.cfa);
    if (equal(ours, theirs.cfa)) return;
    // gcc and readelf restore both; DWARF 5, 6.4.2.4 mentions rules.
    if (theirs_.restores_state) return explain("CFA: llvm-dwarfdump 14 restores only rules at DW_CFA_restore_state");
    if (tool_ == Tool::dwarfdump && was_expression_ && theirs.cfa == Cell{Kind::reg, ours.reg, 0})
      return explain("CFA: llvm-dwarfdump takes offset 0 at DW_CFA_def_cfa_register behind an expression");
    differs(theirs_.offset, "CFA: " + to_text(theirs.cfa), &row);
  }

  void compare_row(const Fde& fde, const FrameRow& row, const ReferenceRow& theirs) {
    compare_cfa(row, theirs);
    was_expression_ = row.cfa.kind == CfaRule::Kind::expression || row.cfa.kind == CfaRule::Kind::deref;
    std::size_t said = 0;
    bool has_signature = false;
    for (const ReferenceRow::Rule& rule : theirs.rules) {
      const RegNum reg = rule.reg == k_ra_column ? fde.cie.return_address : rule.reg;
      const RegRule ours = row.rule(reg);
      has_signature |= reg == elf_.arch->sign_state;
      if (ours.kind != RegRule::Kind::unspecified) ++said;
      if (!equal(cell_of(ours), rule.cell))
        differs(theirs_.offset, "register " + std::to_string(reg) + ": " + to_text(rule.cell), &row);
    }
    // readelf has a row where a signature begins and ends, but no column for it. Instructions check that:
    // followed_a64_test.
    if (tool_ == Tool::readelf && !has_signature && row.rule(elf_.arch->sign_state) == RegRule::constant(1)) {
      explain("readelf has no column for signed return addresses");
      ++said;
    }
    if (said != row.entries().size()) differs(theirs_.offset, "we have rules that they have not", &row);
  }

  std::string place(std::uint64_t offset) const {
    char number[32];
    std::snprintf(number, sizeof number, "+0x%llx", static_cast<unsigned long long>(offset));
    return path_ + " " + section_ + number;
  }

  void explain(const char* kind) { figures_.explain(kind, place(theirs_.offset)); }

  void differs(std::uint64_t offset, const std::string& what, const FrameRow* row = nullptr) {
    ++figures_.unexplained;
    std::string text = place(offset) + ": " + tool_name(tool_) + ": " + what;
    if (row) text += "; ours " + jitunwind::to_text(row->range.begin, *row, *elf_.arch);
    figures_.add_message(text);
  }

  std::string path_;
  Tool tool_;
  const ElfCfi& elf_;
  Reference reference_;
  ReferenceFde theirs_;
  Figures figures_;
  std::string section_;
  bool was_expression_ = false;  // the CFA of the row before
  bool more_ = false;            // theirs_ is valid
  bool has_theirs_ = false;      // and of section_
};

}  // namespace

void Figures::add(const Figures& other) {
  files += other.files;
  fdes += other.fdes;
  rows += other.rows;
  expressions += other.expressions;
  found += other.found;
  encoded += other.encoded;
  quick += other.quick;
  not_quick += other.not_quick;
  unexplained += other.unexplained;
  for (const auto& [kind, e] : other.explained) explain(kind, e.witness, e.count);
  for (const std::string& m : other.messages) add_message(m);
}

void Figures::explain(const std::string& kind, const std::string& witness, std::uint64_t count) {
  Explained& e = explained[kind];
  if (e.count == 0) e.witness = witness;
  e.count += count;
}

void Figures::add_message(const std::string& message) {
  if (messages.size() < k_max_messages) messages.push_back(message);
}

Figures compare_file(const std::string& path, Tool tool) {
  const ElfCfi elf(path);
  return elf.arch ? Comparison(path, tool, elf).run() : Figures{};
}

}  // namespace jitunwind::world
