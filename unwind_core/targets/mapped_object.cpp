#include "jitunwind/unwind_core/targets/mapped_object_internal.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <new>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"
#include "jitunwind/unwind_core/memory/own/spare_blocks_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"

namespace jitunwind {
namespace {

constinit SpareBlocks spare_entries;

}  // namespace

/// Memory that is left to the next user is zero, like new memory.
CopiedEntries::~CopiedEntries() {
  for (std::size_t page = 0; page < is_written_.size() && !bytes_.empty(); ++page) {
    if (!is_written_[page]) continue;
    std::ranges::fill(bytes_.bytes().subspan(page * k_page_size, k_page_size), std::byte{0});
    KeptBlock::discount(k_page_size);
  }
  spare_entries.give(std::move(bytes_));
}

bool CopiedEntries::make(const Memory& memory, AddrRange section) noexcept try {
  begin_ = page_of(section.begin);
  const std::uint64_t pages = (section.end - begin_ + k_page_size - 1) / k_page_size;
  const auto size = static_cast<std::size_t>(pages * k_page_size);
  bytes_ = spare_entries.take(size);
  if (bytes_.empty()) bytes_ = Block(size);
  if (bytes_.empty()) return false;
  is_there_.assign(static_cast<std::size_t>(pages), false);
  is_written_ = is_there_;
  memory_ = &memory;
  section_ = section;
  return true;
} catch (const std::bad_alloc&) {
  bytes_ = Block();
  return false;
}

SectionBytes CopiedEntries::section() const noexcept {
  if (!memory_) return {};
  return {bytes_.bytes().subspan(static_cast<std::size_t>(section_.begin - begin_),
                                 static_cast<std::size_t>(section_.size())),
          section_.begin};
}

/// The number of bytes from the first on that could be read. The others stay as they were: an entry may claim to be
/// longer than all that is there.
std::size_t CopiedEntries::read(AddrRange part) noexcept {
  MemoryWindow window;
  const auto into =
      bytes_.bytes().subspan(static_cast<std::size_t>(part.begin - begin_), static_cast<std::size_t>(part.size()));
  const std::size_t got = memory_->read(part.begin, into, window);
  const auto first = static_cast<std::size_t>((part.begin - begin_) / k_page_size);
  for (std::size_t page = first; begin_ + page * k_page_size < part.begin + got; ++page) {
    if (!is_written_[page]) KeptBlock::count(k_page_size);
    is_written_[page] = true;
  }
  return got;
}

/// Copies a page together with the missing pages after it. If a page cannot be read as a whole, the needed part may be
/// readable.
bool CopiedEntries::copy_page(std::size_t number, std::size_t most, AddrRange needed) noexcept {
  if (!KeptBlock::has_room()) return false;
  std::size_t end = number + 1;
  while (end < is_there_.size() && end < number + most && !is_there_[end]) ++end;
  const Addr begin = begin_ + number * k_page_size;
  const std::size_t whole = read({begin, begin_ + end * k_page_size}) / k_page_size;
  for (std::size_t i = 0; i < whole; ++i) is_there_[number + i] = true;
  if (whole != 0) return true;
  const AddrRange wanted{std::max(needed.begin, begin), std::min(needed.end, begin + k_page_size)};
  return read(wanted) == wanted.size();
}

/// Precondition: the part is in the section, and not empty.
bool CopiedEntries::copy(AddrRange part, std::size_t most) noexcept {
  const auto first = static_cast<std::size_t>((part.begin - begin_) / k_page_size);
  const auto last = static_cast<std::size_t>((part.end - 1 - begin_) / k_page_size);
  for (std::size_t i = first; i <= last; ++i)
    if (!is_there_[i] && !copy_page(i, std::max(most, last + 1 - i), part)) return false;
  return true;
}

/// LSB 5.0 core, 10.6.1.1: length, and the CIE's id or the distance to it. An entry whose length is all ones is longer
/// than 4 bytes can express: any later bytes may belong to it.
bool CopiedEntries::copy_entry(Addr at, std::size_t pages, bool big_endian, std::uint32_t& second_word) noexcept {
  constexpr std::uint64_t k_head = 8, k_compared = 32;  // of a CIE with known ones, of any length
  const std::uint64_t room = section_.end - at;
  if (room < k_head) return copy({at, section_.end}, pages);
  if (!copy({at, at + k_head}, pages)) return false;
  const SectionBytes all = section();
  ByteReader reader(all.bytes.subspan(static_cast<std::size_t>(at - all.address), k_head), big_endian, at);
  const std::uint32_t length = reader.u32();
  second_word = reader.u32();
  const std::uint64_t claimed = length >= 0xffff'fff0 ? room : std::min(4 + std::uint64_t{length}, room);
  const std::uint64_t size = std::min(claimed, k_max_cfi_entry);  // readers refuse longer ones
  if (!copy({at, at + size}, pages)) return false;
  if (size < k_compared) (void)copy({at, at + std::min(k_compared, room)}, 1);
  return true;
}

std::optional<Addr> CopiedEntries::copy_fde(Addr fde, bool big_endian) noexcept {
  std::uint32_t distance = 0;
  if (!section_.contains(fde)) return 0;
  if (!copy_entry(fde, k_at_once, big_endian, distance)) return std::nullopt;
  const Addr cie = cie_before(fde + 4, distance);
  return copy_cie(cie, big_endian) ? std::optional(cie) : std::nullopt;
}

bool CopiedEntries::copy_cie(Addr cie, bool big_endian) noexcept {
  std::uint32_t id = 0;
  return !section_.contains(cie) || copy_entry(cie, 1, big_endian, id);
}

namespace {

/// The limit for all frames of one object: the largest programs have some 30 MiB of .eh_frame.
constexpr std::uint64_t k_most_frames = std::uint64_t{256} << 20;
constexpr std::size_t k_most_loaded = 64;
constexpr std::uint64_t k_longest_object = std::uint64_t{4} << 30;  // limit for finding headers in all of it

/// The range from the first page to the last byte in memory, as in the file.
AddrRange extent_of(const ElfImage& image) noexcept {
  AddrRange extent{~Addr{0}, 0};
  for (std::size_t i = 0; i < image.segment_count(); ++i)
    if (const ElfSegment s = image.segment(i); s.type == PT_LOAD && s.range().end > s.address)
      extent = {std::min(extent.begin, page_of(s.address)), std::max(extent.end, s.range().end)};
  return extent;
}

}  // namespace

std::unique_ptr<MappedObject> MappedObject::make(const Memory& memory, const Arch& arch, const Mapping& first,
                                                 std::uint64_t version) {
  std::unique_ptr<MappedObject> object(new MappedObject(memory, arch, first, version));
  return object->read_headers() ? std::move(object) : nullptr;
}

bool MappedObject::read_headers() {
  const Addr begin = first_.range.begin;
  std::array<std::byte, k_page_size> page;
  MemoryWindow window;
  const std::size_t got = memory_.read(begin, page, window);
  auto head = ElfImage::parse_loaded(page, got);
  const bool is_elsewhere = head && head->segment_count() == 0;
  if (is_elsewhere) {
    parts_ = std::make_unique<MemoryParts>(memory_, AddrRange{begin, begin + k_longest_object});
    head = ElfImage::parse_loaded(*parts_);
  }
  if (!head || !head->is_of(arch_)) return false;
  const auto bias = head->bias_at(begin);
  const AddrRange extent = extent_of(*head);
  // The header is at the start of the lowest segment, or the image is none for parse_loaded().
  if (!bias || extent.empty() || *bias + extent.begin != begin) return false;
  bias_ = *bias;
  range_ = {begin, begin + extent.size()};
  if (range_.empty()) return false;
  for (std::size_t i = 0; i < head->segment_count() && segments_.size() < k_most_loaded; ++i) {
    const ElfSegment s = head->segment(i);
    if (s.type == PT_GNU_EH_FRAME) eh_frame_hdr_at_ = {bias_ + s.address, bias_ + s.range().end};
    if (s.type == PT_ARM_EXIDX && arch_.elf_machine == EM_ARM) exidx_at_ = {bias_ + s.address, bias_ + s.range().end};
    if (s.type == PT_LOAD && s.memory_size != 0)
      segments_.push_back(
          {{bias_ + s.address, bias_ + s.range().end}, s.offset, (s.flags & PF_X) != 0, s.file_size != 0});
  }
  if (is_elsewhere) return image() != nullptr;
  const std::size_t size = head->header_bytes().size();
  head_bytes_.assign(page.begin(), page.begin() + static_cast<std::ptrdiff_t>(size != 0 ? size : got));
  head_ = *ElfImage::parse_loaded(head_bytes_, head_bytes_.size());
  return true;
}

const ElfImage* MappedObject::image() noexcept {
  if (image_) return &*image_;
  parts_.reset(new (std::nothrow) MemoryParts(memory_, range_));
  const auto image = parts_ ? ElfImage::parse_loaded(*parts_) : Error{ErrorCode::out_of_memory, range_.begin, "module"};
  if (!image) return nullptr;
  image_ = *image;
  return &*image_;
}

/// Notes that programs read are short; longer ones, such as those of probes, are in no segment.
MappedObject::Note MappedObject::find_note(std::string_view owner, std::uint32_t type,
                                           std::span<std::byte> room) const noexcept {
  const ElfImage& head = headers();
  for (std::size_t i = 0; i < head.segment_count(); ++i) {
    const ElfSegment s = head.segment(i);
    if (s.type != PT_NOTE) continue;
    const auto wanted = room.first(static_cast<std::size_t>(std::min<std::uint64_t>(s.file_size, room.size())));
    MemoryWindow window;
    const auto notes = wanted.first(memory_.read(bias_ + s.address, wanted, window));
    const auto found = jitunwind::find_note(notes, head.big_endian(), s.alignment, owner, type);
    if (!found.empty()) return {found, bias_ + s.address + static_cast<Addr>(found.data() - notes.data())};
  }
  return {};
}

AddrRange MappedObject::pages_of(const Segment& s) noexcept {
  return {page_of(s.range.begin), page_of(s.range.end + k_page_size - 1)};
}

bool MappedObject::has_code(Addr at) const noexcept {
  return std::ranges::any_of(segments_, [&](const Segment& s) { return s.executable && pages_of(s).contains(at); });
}

bool MappedObject::covers(Addr at, AddrRange& around) const noexcept {
  bool is_covered = false;
  for (const Segment& s : segments_) {
    const AddrRange pages = pages_of(s);
    if (pages.empty()) continue;
    const bool is_there = pages.contains(at);
    is_covered = is_covered || is_there;
    if (is_there || pages.end <= at) around.begin = std::max(around.begin, is_there ? pages.begin : pages.end);
    if (is_there || pages.begin > at) around.end = std::min(around.end, is_there ? pages.end : pages.begin);
  }
  return is_covered;
}

bool MappedObject::is_mapped_by(const Mapping& mapping, Addr at) const noexcept {
  if (mapping.path.empty()) return true;
  return std::ranges::any_of(segments_, [&](const Segment& s) {
    return pages_of(s).contains(at) && has_offset(mapping, at, s.offset + (at - s.range.begin));
  });
}

MappedObject::Fit MappedObject::fit_at(Addr bias, const Mappings& mappings) const noexcept {
  Fit fit;
  for (const Segment& s : segments_) {
    const Addr at = s.range.begin - bias_ + bias;
    const Mapping* const mapping = mappings.find(at);
    if (!s.is_of_file || !mapping || !has_offset(*mapping, at, s.offset)) continue;
    ++fit.mapped;
    fit.as_executable += mapping->executable == s.executable;
  }
  return fit;
}

/// A segment whose bytes are not far after the headers is mapped together with these. Each such segment gives another
/// bias, and all mappings together tell which is right.
bool MappedObject::begins_at_first(const Mappings& mappings) const noexcept {
  const Fit own = fit_at(bias_, mappings);
  return std::ranges::none_of(segments_, [&](const Segment& s) {
    const Addr headers = s.range.begin - s.offset;  // as this segment places them
    return s.offset < k_largest_page_size && headers != first_.range.begin &&
           fit_at(bias_ - (headers - first_.range.begin), mappings) > own;
  });
}

void MappedObject::read_module(Addr at, Module& out) noexcept {
  copy_table();
  copy_exidx();
  out = {};
  out.range = range_;
  out.load_bias = bias_;
  out.version = version_;
  out.path = first_.path.c_str();
  for (const Segment& s : segments_)
    if (s.executable && s.range.contains(at)) out.text = s.range;
  out.eh_frame_hdr = eh_frame_hdr_bytes_;
  out.eh_segment = eh_frame_bytes_;
  if (table_.count != 0) copy_entries_of(at, out);
  out.exidx = {exidx_.bytes(), exidx_at_.begin};
}

/// Copies the bytes that can be read from its start on.
CopiedBytes MappedObject::copy(AddrRange range) const noexcept {
  CopiedBytes copied = CopiedBytes::room_for(static_cast<std::size_t>(std::min(range.size(), k_most_frames)));
  if (copied.bytes().empty()) return {};
  MemoryWindow window;
  const std::size_t got = memory_.read(range.begin, copied.bytes(), window);
  if (got == copied.bytes().size() || (got != 0 && copied.keep_first(got))) return copied;
  return {};
}

/// The header has the length of its table, so that no section table is needed, which is in the file alone. The segment
/// also has a length, which is used if it is small. .eh_frame may be all of its segment. If there is no table, all of
/// it is searched.
void MappedObject::copy_table() noexcept {
  constexpr std::uint64_t k_much = std::uint64_t{1} << 20;
  const Addr at = eh_frame_hdr_at_.begin;
  if (has_table_ || at == 0) return;
  has_table_ = true;
  AddrRange segment{};
  for (const Segment& s : segments_)
    if (s.range.contains(at)) segment = s.range;
  if (segment.empty()) return;
  const std::uint64_t size = segment.end - at, told = eh_frame_hdr_at_.size();
  const std::uint64_t first = told < k_max_eh_frame_hdr || told > k_much ? k_max_eh_frame_hdr : told;
  eh_frame_hdr_ = copy({at, at + std::min(size, first)});
  const auto head = eh_frame_hdr_.bytes().first(std::min(eh_frame_hdr_.bytes().size(), k_max_eh_frame_hdr));
  if (head.empty()) return;
  const auto parsed = parse_eh_frame_hdr({head, at}, size, arch_);
  const FdeTable table = parsed ? parsed->table : FdeTable{};
  const Addr table_end = table.count == 0 ? at + head.size() : table.address + table.count * 2 * table.width;
  if (table_end - at > eh_frame_hdr_.bytes().size()) eh_frame_hdr_ = copy({at, table_end});
  const auto copied = static_cast<std::size_t>(std::min<std::uint64_t>(table_end - at, eh_frame_hdr_.bytes().size()));
  eh_frame_hdr_bytes_ = {eh_frame_hdr_.bytes().first(copied), at};
  // Lookups of rows report broken data.
  if (!parsed || parsed->eh_frame == 0) return;
  AddrRange frames{parsed->eh_frame, parsed->eh_frame};
  for (const Segment& s : segments_)
    if (s.range.contains(frames.begin)) frames.end = std::min(s.range.end, frames.begin + k_most_frames);
  if (table.count != 0 && !frames.empty() && entries_.make(memory_, frames)) {
    table_ = table;
  } else {
    eh_frame_ = copy(frames);
    eh_frame_bytes_ = {eh_frame_.bytes(), frames.begin};
  }
}

/// Copies all of it, once: 8 bytes for each procedure. Lookups of rows report broken data.
void MappedObject::copy_exidx() noexcept {
  if (has_exidx_) return;
  has_exidx_ = true;
  for (const Segment& s : segments_)
    if (s.range.contains(exidx_at_.begin)) exidx_ = copy({exidx_at_.begin, std::min(exidx_at_.end, s.range.end)});
}

/// Tools that merge objects leave each object's .eh_frame in its place, and make one table. Null: no segment is there,
/// or there is no memory.
CopiedEntries* MappedObject::entries_around(Addr entry) noexcept try {
  if (entries_.contains(entry)) return &entries_;
  for (const Segment& s : segments_) {
    if (!s.range.contains(entry)) continue;
    const auto [entries, is_new] = other_entries_.try_emplace(s.range.begin);
    const AddrRange frames{s.range.begin, std::min(s.range.end, s.range.begin + k_most_frames)};
    if (is_new && !entries->second.make(memory_, frames)) return nullptr;
    return &entries->second;
  }
  return nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

/// Copies the section around the FDE of an address, and the one around its CIE if that is elsewhere. They stay empty if
/// they cannot be read.
void MappedObject::copy_entries_of(Addr at, Module& out) noexcept {
  out.eh_segment = entries_.section();
  const auto offset = static_cast<std::size_t>(table_.address - eh_frame_hdr_bytes_.address);
  if (offset > eh_frame_hdr_bytes_.bytes.size()) return;
  const auto pairs = eh_frame_hdr_bytes_.bytes.subspan(offset);
  bool is_first = true;
  const auto copy_it = [&](Addr at_fde) -> Found {
    CopiedEntries* const entries = entries_around(at_fde);
    const std::optional<Addr> cie = entries ? entries->copy_fde(at_fde, arch_.big_endian) : std::nullopt;
    if (cie || is_first) out.eh_segment = cie ? entries->section() : SectionBytes{};
    is_first = false;
    if (!cie) return true;
    CopiedEntries* const others = entries->contains(*cie) ? nullptr : entries_around(*cie);
    out.eh_frame = others && others->copy_cie(*cie, arch_.big_endian) ? others->section() : SectionBytes{};
    SectionView bytes(out.eh_segment, out.eh_frame);
    Fde fde;
    return read_fde_for(at, bytes, CfiContext{arch_}, at_fde, fde);
  };
  (void)find_covering(table_, at, copy_it, arch_.big_endian, pairs);
}

const ModuleFiles* MappedObject::files(const TargetFiles& from) noexcept try {
  if (!has_looked_for_files_) {
    const ElfImage* const loaded = image();
    auto opened = loaded ? from.open(first_, loaded) : Error{ErrorCode::out_of_memory, first_.range.begin, "module"};
    has_looked_for_files_ = opened || opened.error().code != ErrorCode::out_of_memory;
    if (opened) files_ = std::move(*opened);
  }
  return files_.get();
} catch (const std::bad_alloc&) {
  return nullptr;
}

/// Libraries have names of their own, also those that can be run: libc, whose many symbols take long to search. A
/// program that is loaded anywhere and needs no interpreter needs no libraries either.
bool MappedObject::is_program() const noexcept {
  bool is = headers().type() == ET_EXEC;
  Addr dynamic = 0;
  for (std::size_t i = 0; i < headers().segment_count(); ++i) {
    const ElfSegment segment = headers().segment(i);
    is = is || segment.type == PT_INTERP;
    if (segment.type == PT_DYNAMIC) dynamic = bias_ + segment.address;
  }
  if (dynamic == 0) return is;
  const Names names = names_in(dynamic);
  return !names.has_own && (is || !names.has_needed);
}

/// Reads the names by gABI, chapter 5 "Dynamic Section".
MappedObject::Names MappedObject::names_in(Addr dynamic) const noexcept {
  constexpr std::size_t k_most_entries = 256;
  MemoryWindow window;
  Names names;
  for (std::size_t i = 0; i < k_most_entries && !names.has_own; ++i) {
    const auto tag = read_word(memory_, window, dynamic + 2 * i * arch_.word_size, arch_, "dynamic section");
    if (!tag || *tag == DT_NULL) break;
    names.has_own = *tag == DT_SONAME;
    names.has_needed = names.has_needed || *tag == DT_NEEDED;
  }
  return names;
}

Addr MappedObject::find_exported(std::string_view variable) const noexcept {
  for (std::size_t i = 0; i < headers().segment_count(); ++i) {
    const ElfSegment segment = headers().segment(i);
    if (segment.type == PT_DYNAMIC)
      return DynamicObject(memory_, arch_, bias_, bias_ + segment.address).find_variable(variable).value_or(0);
  }
  return 0;
}

Addr MappedObject::find_in_files(std::string_view variable, const TargetFiles& from) noexcept {
  const ModuleFiles* const opened = files(from);
  if (!opened) return 0;
  const ModuleFiles::BothFiles both = opened->open_again();
  for (const ModuleFiles::ElfFile* file : {&both.file, &both.debug}) {
    if (!file->image) continue;
    const auto read = read_symbols(*file->image);
    const ElfSymbols symbols = read ? read->symbols : ElfSymbols();
    for (std::size_t i = 0; i < symbols.count(); ++i) {
      const ElfSymbol symbol = symbols[i];
      if (symbol.type != STT_OBJECT || symbol.section == SHN_UNDEF) continue;
      const std::string_view name = symbols.beginning(symbol, variable.size() + 1);
      if (name.size() > variable.size() && name.starts_with(variable) && name.back() == '\0')
        return symbol.value + bias_;
    }
  }
  return 0;
}

}  // namespace jitunwind
