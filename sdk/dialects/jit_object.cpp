#include "jitunwind/sdk/dialects/jit_object.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "jitunwind/sdk/dialects/frames/dumped_frames.h"
#include "jitunwind/sdk/dialects/jit_files/debug_lines.h"
#include "jitunwind/sdk/dialects/jit_files/erlang_entry.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/arch/arch_internal.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/emit/byte_writer.h"
#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/image/symbol_index_internal.h"
#include "jitunwind/unwind_core/sort_by_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
namespace {

// Links a file that was not linked (ET_REL) as a debugger does: the addresses of its sections say where they are.

constexpr std::size_t k_most_relocations = std::size_t{1} << 20;

struct Relocation {
  std::uint64_t offset = 0;
  std::uint32_t type = 0;
  std::uint32_t symbol = 0;
  std::uint64_t addend = 0;
};

/// Reads Elf32_Rel, Elf32_Rela, Elf64_Rel and Elf64_Rela.
class RelocationReader {
 public:
  RelocationReader(std::span<const std::byte> entries, bool big_endian, bool is_64, bool has_addends) noexcept
      : reader_(entries, big_endian), word_(is_64 ? 8 : 4), has_addends_(has_addends) {}

  bool has_next() const noexcept { return reader_.remaining() >= word_ * (has_addends_ ? 3 : 2); }
  Relocation next() noexcept {
    Relocation r;
    r.offset = reader_.unsigned_of(word_);
    const std::uint64_t info = reader_.unsigned_of(word_);
    r.type = static_cast<std::uint32_t>(word_ == 8 ? ELF64_R_TYPE(info) : ELF32_R_TYPE(info));
    r.symbol = static_cast<std::uint32_t>(word_ == 8 ? ELF64_R_SYM(info) : ELF32_R_SYM(info));
    if (has_addends_) r.addend = reader_.unsigned_of(word_);
    return r;
  }

 private:
  ByteReader reader_;
  std::size_t word_;
  bool has_addends_;
};

class ObjectLinker {
 public:
  ObjectLinker(const ElfImage& image, std::span<std::byte> file, const Arch& arch) noexcept
      : image_(image), file_(file), arch_(arch), symbols_(image.symbols(SHT_SYMTAB)) {}

  /// Places the symbols of the first symbol table, which has names and which relocations refer to.
  void place_symbols() noexcept {
    const auto table = first_symbols();
    const bool is_64 = image_.is_64();
    if (!table || table->entry_size != symbol_size(is_64)) return;
    const std::size_t value_at = is_64 ? offsetof(Elf64_Sym, st_value) : offsetof(Elf32_Sym, st_value);
    for (std::size_t i = 0; i < symbols_.count(); ++i) {
      const ElfSymbol symbol = symbols_[i];
      const auto section = image_.section_of(symbol);
      if (section && section->address != 0)
        write(bytes_at(table->offset + i * table->entry_size + value_at, is_64 ? 8 : 4),
              section->address + symbol.value);
    }
  }

  void relocate_section(std::size_t number) noexcept {
    const ElfSection section = image_.section(number);
    for (std::size_t i = 0; i < image_.section_count(); ++i) {
      const ElfSection relocations = image_.section(i);
      const bool has_addends = relocations.type == SHT_RELA;
      if ((!has_addends && relocations.type != SHT_REL) || relocations.info != number) continue;
      RelocationReader reader(image_.contents(relocations), arch_.big_endian, image_.is_64(), has_addends);
      for (; reader.has_next() && left_ != 0; --left_) relocate(section, reader.next(), has_addends);
    }
  }

 private:
  std::optional<ElfSection> first_symbols() const noexcept {
    for (std::size_t i = 0; i < image_.section_count(); ++i)
      if (const ElfSection section = image_.section(i); section.type == SHT_SYMTAB) return section;
    return std::nullopt;
  }

  /// A relocation without an addend has its addend in the word at the place.
  void relocate(const ElfSection& section, const Relocation& r, bool has_addend) noexcept {
    const DataRelocations& known = *arch_.relocations;
    const bool is_wide = r.type == known.absolute_64 || r.type == known.relative_64;
    const bool is_relative = r.type == known.relative_64 || r.type == known.relative_32;
    if (!is_wide && r.type != known.absolute_32 && r.type != known.relative_32) return;
    const std::size_t size = is_wide ? 8 : 4;
    if (r.symbol >= symbols_.count() || r.offset > section.size || size > section.size - r.offset) return;
    const ElfSymbol symbol = symbols_[r.symbol];
    if (!image_.section_of(symbol)) return;
    const std::span<std::byte> place = bytes_at(section.offset + r.offset, size);
    const std::uint64_t addend = has_addend ? r.addend : ByteReader(place, arch_.big_endian).unsigned_of(size);
    write(place, symbol.value + addend - (is_relative ? section.address + r.offset : 0));
  }

  /// Returns an empty span if the file does not have these bytes.
  std::span<std::byte> bytes_at(std::uint64_t offset, std::size_t size) const noexcept {
    if (offset > file_.size() || size > file_.size() - offset) return {};
    return file_.subspan(static_cast<std::size_t>(offset), size);
  }
  void write(std::span<std::byte> place, std::uint64_t value) noexcept {
    if (!place.empty()) ByteWriter(place, arch_.big_endian).unsigned_of(value, place.size());
  }

  const ElfImage& image_;
  std::span<std::byte> file_;
  const Arch& arch_;
  ElfSymbols symbols_;
  std::size_t left_ = k_most_relocations;
};

/// Links `file`, which `image` was read from: values of symbols become addresses, and relocations are applied in the
/// named sections (gABI, chapter 4 "Symbol Table", "Relocation"). A word stays unchanged if this file does not define
/// its symbol, or if Arch::relocations lacks its relocation. No more than 2^20 relocations are applied.
void link_object(const ElfImage& image, std::span<std::byte> file, std::span<const std::string_view> sections,
                 const Arch& arch) noexcept {
  ObjectLinker linker(image, file, arch);
  linker.place_symbols();
  if (!arch.relocations) return;
  for (const std::string_view name : sections) {
    for (std::size_t i = 0; i < image.section_count(); ++i) {
      if (image.name(image.section(i)) != name) continue;
      linker.relocate_section(i);
      break;
    }
  }
}

/// Adds the contents of these sections, if they are compressed, at the end of the file, and has their headers lead
/// there (gABI, chapter 4 "Section Compression"). The first section that cannot be decompressed, or would make the
/// file larger than `most`, stays as it is, and so do those behind it. Returns why, or null. Throws std::bad_alloc.
const char* decompress_sections(std::vector<std::byte>& file, std::span<const std::string_view> sections,
                                std::size_t most) {
  const auto image = ElfImage::parse(file);
  if (!image) return nullptr;
  const std::size_t word = image->is_64() ? 8 : 4;
  std::vector<std::byte> added;
  const char* why = nullptr;
  for (std::size_t i = 0; i < image->section_count(); ++i) {
    const ElfSection section = image->section(i);
    if ((section.flags & SHF_COMPRESSED) == 0 || std::ranges::count(sections, image->name(section)) == 0) continue;
    const auto data = read_section(*image, section);
    if (!data)
      why = data.error().what;
    else if (data->bytes.size() > most - file.size() - added.size())
      why = "compressed section that makes a file too large";
    if (why) break;
    // Elf32_Shdr and Elf64_Shdr: two numbers of 4 bytes, then words: flags, address, offset, size.
    const auto change = [&](std::size_t words_before, std::uint64_t value) {
      const std::size_t at = image->header_offset(i) + 8 + words_before * word;
      ByteWriter(std::span(file).subspan(at, word), image->big_endian()).unsigned_of(value, word);
    };
    change(0, section.flags & ~std::uint64_t{SHF_COMPRESSED});
    change(2, file.size() + added.size());
    change(3, data->bytes.size());
    added.insert(added.end(), data->bytes.begin(), data->bytes.end());
  }
  file.insert(file.end(), added.begin(), added.end());
  return why;
}

/// Files with fewer symbols are searched without an index: an index takes mappings, and Linux limits a process to
/// 65,530.
constexpr std::size_t k_many_symbols = 4096;

/// Returns the last element that begins at or before `at`; null if there is none.
template <class T, class RangeOf>
const T* last_not_behind(const std::vector<T>& sorted, Addr at, RangeOf range_of) noexcept {
  const auto behind = std::upper_bound(sorted.begin(), sorted.end(), at,
                                       [&](Addr value, const T& element) { return value < range_of(element).begin; });
  return behind == sorted.begin() ? nullptr : &*std::prev(behind);
}

constexpr std::string_view k_frame_sections[] = {".eh_frame", ".debug_frame"};
constexpr std::string_view k_linked_sections[] = {".eh_frame", ".debug_frame", ".debug_line"};
constexpr std::string_view k_decompressed_sections[] = {".debug_frame", ".debug_line", ".debug_line_str",
                                                        ".debug_str",   ".symtab",     ".strtab"};

}  // namespace

struct JitObject::Parts {
  struct FrameSection {
    SectionBytes section{};
    CfiContext::Format format = CfiContext::Format::eh_frame;
  };
  /// An FDE and the code that it covers.
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
  const char* unread = nullptr;  // why there are frames that cannot be read; static
  std::vector<Entry> entries;    // ascending; of those at one address the first counts
  std::optional<SymbolIndex> index;
  std::optional<DebugLines> lines;         // read when a line is first asked for
  std::vector<ErlangEntry::Range> ranges;  // of a file that is none: what it has in place of symbols

  std::optional<ElfImage> image() const noexcept {
    const auto parsed = ElfImage::parse(file);
    return parsed ? std::optional(*parsed) : std::nullopt;
  }
  bool is_of_code(const AddrRange& range) const noexcept {
    const AddrRange* const section = last_not_behind(code, range.begin, [](const AddrRange& r) { return r; });
    return section != nullptr && section->contains(range.begin) && range.end > range.begin && range.end <= section->end;
  }
  CfiContext context_of(const FrameSection& frame) const noexcept {
    // Base of DW_EH_PE_textrel pointers: some JITs have one section of code and count from its beginning.
    return {.arch = arch,
            .format = frame.format,
            .section = frame.section.address,
            .text_base = code.front().begin,
            .text_begins_code = true};
  }
  void take_code(const ElfImage& image);
  void take_frames(const ElfImage& image, const char* why_compressed);
  void read_entries(std::uint8_t section);
  const Entry* entry_at(Addr at) const noexcept;
  /// Returns false if the entry cannot be read any more.
  bool read(const Entry& entry, const CfiContext& context, Fde& out) const noexcept {
    SectionView bytes(frames[entry.section].section);
    const Result<Fde> fde = read_fde(bytes, context, entry.at);
    if (fde) out = *fde;
    return bool(fde);
  }
  void take_entry(ErlangEntry&& entry);
  const ErlangEntry::Range* range_at(Addr at) const noexcept;
  const DebugLines& debug_lines();
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

void JitObject::Parts::take_frames(const ElfImage& image, const char* why_compressed) {
  for (const std::string_view name : k_frame_sections) {
    const auto section = image.find_section(name);
    if (!section) continue;
    if ((section->flags & SHF_COMPRESSED) != 0) {
      unread = why_compressed ? why_compressed : "compressed section that is loaded";
      continue;
    }
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

void JitObject::Parts::take_entry(ErlangEntry&& entry) {
  if (!entry.code.empty()) code.push_back(entry.code);
  ranges = std::move(entry.ranges);
}

const ErlangEntry::Range* JitObject::Parts::range_at(Addr at) const noexcept {
  const auto* const range = last_not_behind(ranges, at, [](const ErlangEntry::Range& r) { return r.code; });
  return range != nullptr && range->code.contains(at) ? range : nullptr;
}

std::optional<FoundSymbol> JitObject::Parts::symbol_at(Addr at) const noexcept {
  if (const auto* const range = range_at(at)) return FoundSymbol{range->name, range->code.begin};
  if (index) return index->find(at);
  const auto parsed = image();
  if (!parsed) return std::nullopt;
  const SymbolTable table{&*parsed, parsed->symbols(SHT_SYMTAB)};
  return find_symbol({&table, 1}, at);
}

Result<JitObject> JitObject::read(std::vector<std::byte> file, const Arch& arch) {
  if (file.size() > k_largest) return Error{ErrorCode::too_deep, file.size(), "file in GDB's list"};
  if (is_erlang_entry(file, arch)) {
    Result<ErlangEntry> entry = read_erlang_entry(file, arch);
    if (!entry) return entry.error();
    auto parts = std::make_unique<Parts>(std::move(file), arch);
    parts->take_entry(std::move(*entry));
    return JitObject(std::move(parts));
  }
  const auto head = ElfImage::parse(file);
  if (!head) return head.error();
  if (!head->is_of(arch))
    return Error{ErrorCode::bad_structure, head->machine(), "file in GDB's list is of another CPU"};
  const auto type = head->type();
  const char* const why_compressed = decompress_sections(file, k_decompressed_sections, k_largest);
  if (const auto linked = ElfImage::parse(file); linked && type == ET_REL)
    link_object(*linked, file, k_linked_sections, arch);
  auto parts = std::make_unique<Parts>(std::move(file), arch);
  const auto image = parts->image();
  if (image) parts->take_code(*image);
  if (parts->code.empty()) return Error{ErrorCode::bad_structure, 0, "file in GDB's list says of no code where it is"};
  parts->take_frames(*image, why_compressed);
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
  if (!entry && parts_->unread && parts_->is_of_code({at, at + 1}))
    return Error{ErrorCode::bad_encoding, at, parts_->unread};
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

/// Returns the offset of the entry's FDE. Nothing: a row is broken or cannot be written.
std::optional<std::size_t> JitObject::Parts::write_frames(const Entry& entry, std::vector<std::byte>& into) const {
  const CfiContext context = context_of(frames[entry.section]);
  Fde fde;
  return read(entry, context, fde) ? copy_frames(fde, context, into) : std::nullopt;
}

const DebugLines& JitObject::Parts::debug_lines() {
  if (lines) return *lines;
  DebugLineSections sections{.big_endian = arch.big_endian};
  if (const auto elf = image()) {
    const auto contents = [&](std::string_view name) {
      const auto section = elf->find_section(name);
      const bool is_plain = section && (section->flags & SHF_COMPRESSED) == 0;
      return is_plain ? elf->contents(*section) : std::span<const std::byte>();
    };
    sections.lines = contents(".debug_line");
    sections.line_strings = contents(".debug_line_str");
    sections.strings = contents(".debug_str");
  }
  return lines.emplace(sections);
}

std::optional<SourceLine> JitObject::find_line(Addr at) const {
  if (const auto* const range = parts_->range_at(at)) return range->lines.find(at - range->code.begin);
  return parts_->debug_lines().find(at);
}

JitObject::Procedures JitObject::procedures() const {
  Procedures out;
  for (const ErlangEntry::Range& range : parts_->ranges)
    if (!range.name.empty()) out.all.push_back({range.code, range.name, std::nullopt, range.lines});
  const auto image = parts_->image();
  if (!image) return out;
  const SymbolTable table{&*image, image->symbols(SHT_SYMTAB)};
  const auto index = SymbolIndex::make({&table, 1});
  const auto name_of = [&](Addr at) {
    const auto symbol = index ? index->find(at) : std::nullopt;
    return std::string(symbol && symbol->start == at ? symbol->name : std::string_view());
  };
  const DebugLines& lines = parts_->debug_lines();
  for (const Parts::Entry& entry : parts_->entries)
    if (const auto fde = parts_->write_frames(entry, out.frames))
      out.all.push_back({entry.code, name_of(entry.code.begin), *fde, lines.within(entry.code)});
  std::vector<Procedure> named;
  for (std::size_t i = 0; i < table.symbols.count(); ++i) {
    const ElfSymbol symbol = table.symbols[i];
    const AddrRange range{symbol.value, symbol.value + symbol.size};
    if (symbol.size == 0 || !parts_->is_of_code(range) || parts_->entry_at(range.begin) != nullptr) continue;
    if (auto name = name_of(range.begin); !name.empty())
      named.push_back({range, std::move(name), std::nullopt, lines.within(range)});
  }
  sort_by(named, [](const Procedure& one) { return one.code.begin; });
  std::move(named.begin(), named.end(), std::back_inserter(out.all));
  return out;
}

}  // namespace jitunwind
