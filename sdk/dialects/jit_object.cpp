#include "jitunwind/sdk/dialects/jit_object.h"

#include <elf.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "jitunwind/sdk/dialects/object_linker_p.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/image/symbol_index_internal.h"
#include "jitunwind/unwind_core/sort_by_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
namespace {

/// Files with fewer symbols are searched as they are: an index takes mappings, of which a process may have 65,530.
constexpr std::size_t k_many_symbols = 4096;

/// Null: all begin behind `at`.
template <class T, class RangeOf>
const T* last_not_behind(const std::vector<T>& sorted, Addr at, RangeOf range_of) noexcept {
  const auto behind = std::upper_bound(sorted.begin(), sorted.end(), at,
                                       [&](Addr value, const T& element) { return value < range_of(element).begin; });
  return behind == sorted.begin() ? nullptr : &*std::prev(behind);
}

constexpr std::string_view k_frame_sections[] = {".eh_frame", ".debug_frame"};

constexpr std::size_t k_first_room = 512, k_most_room = k_first_room << 15;  // of an entry that is written anew

/// A CIE and an FDE, of which the offset is returned. Nothing: a row is broken, or cannot be written.
std::optional<std::size_t> write_entry(const Fde& fde, const CfiContext& context, std::int64_t data_alignment,
                                       EhFrameWriter& writer) noexcept {
  writer.begin_cie({.signal_frame = fde.cie.signal_frame,
                    .return_address = fde.cie.return_address,
                    .data_alignment = data_alignment});
  FrameRow row;
  FdeRows rows(fde, context, row);
  std::size_t fde_at = 0;
  for (Addr at = fde.range.begin; at < fde.range.end; at = row.range.end) {
    const Result<bool> next = rows.next_behind(at);
    if (!next || !*next || !row.range.contains(at)) return std::nullopt;
    if (at == fde.range.begin) {
      fde_at = writer.size();
      writer.begin_fde(fde.range, 0);
    }
    if (!writer.row(at - fde.range.begin, row)) return std::nullopt;
  }
  writer.end_fde();
  return fde_at;
}

}  // namespace

struct JitObject::Parts {
  struct FrameSection {
    SectionBytes section{};
    CfiContext::Format format = CfiContext::Format::eh_frame;
  };
  /// An FDE, and the code that it covers.
  struct Entry {
    AddrRange code{};
    Addr at = 0;
    std::uint8_t section = 0;  // index of FrameSection
  };

  explicit Parts(std::vector<std::byte> taken, const Arch& its_arch) : file(std::move(taken)), arch(its_arch) {}

  std::vector<std::byte> file;
  const Arch& arch;
  std::vector<AddrRange> code;
  std::vector<FrameSection> frames;
  std::vector<Entry> entries;  // ascending; of those at one address the first counts
  std::optional<SymbolIndex> index;

  std::optional<ElfImage> image() const noexcept {
    const auto parsed = ElfImage::parse(file);
    return parsed ? std::optional(*parsed) : std::nullopt;
  }
  bool is_of_code(const AddrRange& range) const noexcept {
    const AddrRange* const section = last_not_behind(code, range.begin, [](const AddrRange& r) { return r; });
    return section != nullptr && section->contains(range.begin) && range.end > range.begin && range.end <= section->end;
  }
  CfiContext context_of(const FrameSection& frame) const noexcept {
    // DW_EH_PE_textrel: some JITs have one section of code, and count from there.
    return {.arch = arch,
            .format = frame.format,
            .section = frame.section.address,
            .text_base = code.front().begin,
            .text_begins_code = true};
  }
  void take_code(const ElfImage& image);
  void take_frames(const ElfImage& image);
  void read_entries(std::uint8_t section);
  const Entry* entry_at(Addr at) const noexcept;
  /// False: it is not to be had, though it was before.
  bool read(const Entry& entry, const CfiContext& context, Fde& out) const noexcept {
    SectionView bytes(frames[entry.section].section);
    const Result<Fde> fde = read_fde(bytes, context, entry.at);
    if (fde) out = *fde;
    return bool(fde);
  }
  std::optional<FoundSymbol> symbol_at(Addr at) const noexcept;
  std::optional<std::size_t> write_frames(const Entry& entry, std::vector<std::byte>& into) const;
};

void JitObject::Parts::take_code(const ElfImage& image) {
  for (std::size_t i = 0; i < image.section_count(); ++i) {
    const ElfSection section = image.section(i);
    constexpr std::uint64_t k_flags = SHF_ALLOC | SHF_EXECINSTR;
    if ((section.flags & k_flags) == k_flags && section.address != 0 && section.range().end > section.address)
      code.push_back(section.range());
  }
  sort_by(code, &AddrRange::begin);
}

void JitObject::Parts::take_frames(const ElfImage& image) {
  for (const std::string_view name : k_frame_sections) {
    const auto section = image.find_section(name);
    if (!section || (section->flags & SHF_COMPRESSED) != 0) continue;
    const auto bytes = image.contents(*section);
    if (bytes.empty()) continue;
    frames.push_back({{bytes, section->address},
                      name == k_frame_sections[0] ? CfiContext::Format::eh_frame : CfiContext::Format::debug_frame});
    read_entries(static_cast<std::uint8_t>(frames.size() - 1));
  }
  sort_by(entries, [](const Entry& entry) { return entry.code.begin; });
  const auto same = [](const Entry& a, const Entry& b) { return a.code.begin == b.code.begin; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
}

void JitObject::Parts::read_entries(std::uint8_t number) {
  const FrameSection& frame = frames[number];
  const Addr begin = frame.section.address;
  SectionView bytes(frame.section);
  const CfiContext context = context_of(frame);
  FdeScan scan(bytes, context, {begin, begin + frame.section.bytes.size()});
  for (Fde fde; !scan.at_end();) {
    const Result<bool> next = scan.next(fde);
    if (next && !*next) break;
    if (next && !fde.range.empty() && is_of_code(fde.range)) entries.push_back({fde.range, fde.address, number});
  }
}

const JitObject::Parts::Entry* JitObject::Parts::entry_at(Addr at) const noexcept {
  const Entry* const entry = last_not_behind(entries, at, [](const Entry& e) { return e.code; });
  return entry != nullptr && entry->code.contains(at) ? entry : nullptr;
}

std::optional<FoundSymbol> JitObject::Parts::symbol_at(Addr at) const noexcept {
  if (index) return index->find(at);
  const auto parsed = image();
  if (!parsed) return std::nullopt;
  const SymbolTable table{&*parsed, parsed->symbols(SHT_SYMTAB)};
  return find_symbol({&table, 1}, at);
}

Result<JitObject> JitObject::read(std::vector<std::byte> file, const Arch& arch) {
  if (file.size() > k_largest) return Error{ErrorCode::too_deep, file.size(), "file in GDB's list"};
  const auto head = ElfImage::parse(file);
  if (!head) return head.error();
  if (head->machine() != arch.elf_machine || head->big_endian() != arch.big_endian ||
      head->is_64() != (arch.word_size == 8))
    return Error{ErrorCode::bad_structure, head->machine(), "file in GDB's list is of another CPU"};
  if (head->type() == ET_REL) link_object(*head, file, k_frame_sections, arch);
  auto parts = std::make_unique<Parts>(std::move(file), arch);
  const auto image = parts->image();
  if (image) parts->take_code(*image);
  if (parts->code.empty()) return Error{ErrorCode::bad_structure, 0, "file in GDB's list says of no code where it is"};
  parts->take_frames(*image);
  const SymbolTable table{&*image, image->symbols(SHT_SYMTAB)};
  if (table.symbols.count() > k_many_symbols)
    if (auto made = SymbolIndex::make({&table, 1})) parts->index.emplace(std::move(*made));
  return JitObject(std::move(parts));
}

JitObject::JitObject(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}
JitObject::JitObject(JitObject&&) noexcept = default;
JitObject& JitObject::operator=(JitObject&&) noexcept = default;
JitObject::~JitObject() = default;

std::span<const AddrRange> JitObject::code() const noexcept { return parts_->code; }
std::span<const std::byte> JitObject::bytes() const noexcept { return parts_->file; }

Found JitObject::find_row(Addr at, FrameRow& out) const noexcept {
  const Parts::Entry* const entry = parts_->entry_at(at);
  if (!entry) return false;
  const Parts::FrameSection& frame = parts_->frames[entry->section];
  const CfiContext context = parts_->context_of(frame);
  Fde fde;
  if (!parts_->read(*entry, context, fde)) return false;
  if (const Status row = row_at(fde, context, at, out); !row) return row.error();
  out.origin = frame.format == CfiContext::Format::eh_frame ? RowOrigin::eh_frame : RowOrigin::debug_frame;
  out.keeps_by = KeepsBy::code;
  return true;
}

Found JitObject::find_procedure(Addr at, ProcedureInfo& out) const noexcept {
  const Parts::Entry* const entry = parts_->entry_at(at);
  if (!entry) return false;
  out = {};
  out.range = entry->code;
  const bool is_eh_frame = parts_->frames[entry->section].format == CfiContext::Format::eh_frame;
  out.origin = is_eh_frame ? RowOrigin::eh_frame : RowOrigin::debug_frame;
  return true;
}

Found JitObject::find_name(Addr at, std::span<char> into, ProcedureName& out) const noexcept {
  const auto symbol = parts_->symbol_at(at);
  if (!symbol) return false;
  write_name(symbol->name, into, out);
  out.start = symbol->start;
  return true;
}

/// Where its FDE begins. Nothing: a row is broken, or cannot be written.
std::optional<std::size_t> JitObject::Parts::write_frames(const Entry& entry, std::vector<std::byte>& into) const {
  const CfiContext context = context_of(frames[entry.section]);
  Fde fde;
  if (!read(entry, context, fde)) return std::nullopt;
  const std::size_t begin = into.size();
  for (const std::int64_t alignment : {-std::int64_t{arch.word_size}, std::int64_t{-1}}) {
    for (std::size_t room = k_first_room; room <= k_most_room; room *= 8) {
      into.resize(begin + room);
      EhFrameWriter writer(arch, std::span(into).subspan(begin));
      const auto fde_at = write_entry(fde, context, alignment, writer);
      if (!fde_at) break;
      if (!writer.fits()) continue;
      into.resize(begin + writer.size());
      return begin + *fde_at;
    }
  }
  into.resize(begin);
  return std::nullopt;
}

JitObject::Procedures JitObject::procedures() const {
  Procedures out;
  const auto image = parts_->image();
  const SymbolTable table{&*image, image->symbols(SHT_SYMTAB)};
  const auto index = SymbolIndex::make({&table, 1});
  const auto name_of = [&](Addr at) {
    const auto symbol = index ? index->find(at) : std::nullopt;
    return std::string(symbol && symbol->start == at ? symbol->name : std::string_view());
  };
  for (const Parts::Entry& entry : parts_->entries)
    if (const auto fde = parts_->write_frames(entry, out.frames))
      out.all.push_back({entry.code, name_of(entry.code.begin), *fde});
  std::vector<Procedure> named;
  for (std::size_t i = 0; i < table.symbols.count(); ++i) {
    const ElfSymbol symbol = table.symbols[i];
    const AddrRange range{symbol.value, symbol.value + symbol.size};
    if (symbol.size == 0 || !parts_->is_of_code(range) || parts_->entry_at(range.begin) != nullptr) continue;
    if (auto name = name_of(range.begin); !name.empty()) named.push_back({range, std::move(name), std::nullopt});
  }
  sort_by(named, [](const Procedure& one) { return one.code.begin; });
  std::move(named.begin(), named.end(), std::back_inserter(out.all));
  return out;
}

}  // namespace jitunwind
