#include "jitunwind/unwind_core/image/elf_internal.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

std::span<const std::byte> sub_bytes(std::span<const std::byte> bytes, std::uint64_t offset,
                                     std::uint64_t size) noexcept {
  if (offset > bytes.size() || size > bytes.size() - offset) return {};
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

}  // namespace

Result<ElfImage> ElfImage::parse(std::span<const std::byte> file) noexcept {
  ElfImage image;
  image.bytes_ = file;
  if (const Status read = image.read_header(file.size()); !read) return read.error();
  return image;
}

Result<ElfImage> ElfImage::parse(CopiedParts& file) noexcept {
  ElfImage image;
  image.parts_ = &file;
  if (const Status read = image.read_header(file.size()); !read) return read.error();
  return image;
}

Result<ElfImage> ElfImage::parse_loaded(CopiedParts& memory) noexcept {
  ElfImage image;
  image.parts_ = &memory;
  image.layout_ = Layout::memory;
  if (const Status read = image.read_header(memory.size()); !read) return read.error();
  // Tools that rewrite programs, such as BOLT, move the program headers behind everything else. Their distance from the
  // beginning is then the same in memory as in the file only if a segment says so.
  const std::uint64_t end = image.segments_at_ + image.segments_.size();
  bool is_there = end <= k_page_size;
  for (std::size_t i = 0; i < image.segment_count() && !is_there; ++i) {
    const ElfSegment s = image.segment(i);
    is_there = s.type == PT_LOAD && s.offset == s.address - image.lowest_ && s.offset <= image.segments_at_ &&
               end <= s.offset + s.file_size;
  }
  if (!is_there) image.read_segment_table(0, 0, 0);
  return image;
}

Result<ElfImage> ElfImage::parse_loaded(std::span<const std::byte> memory, std::size_t head) noexcept {
  ElfImage image;
  image.bytes_ = memory;
  image.layout_ = Layout::memory;
  if (const Status read = image.read_header(std::min(head, memory.size())); !read) return read.error();
  return image;
}

std::uint64_t ElfImage::size() const noexcept { return parts_ ? parts_->size() : bytes_.size(); }

std::span<const std::byte> ElfImage::bytes_at(std::uint64_t offset, std::uint64_t size) const noexcept {
  return parts_ ? parts_->part(offset, size) : sub_bytes(bytes_, offset, size);
}

std::span<const std::byte> ElfImage::table(std::uint64_t within, std::uint64_t offset, std::size_t count,
                                           std::size_t entry_size, std::size_t least) const noexcept {
  if (entry_size < least || count > within / entry_size) return {};
  const std::uint64_t size = std::uint64_t{count} * entry_size;
  return offset > within || size > within - offset ? std::span<const std::byte>{} : bytes_at(offset, size);
}

/// gABI, chapter 4, "ELF Header". Section 0 holds the numbers that do not fit their fields: shnum in sh_size, shstrndx
/// in sh_link, phnum in sh_info.
Status ElfImage::read_header(std::uint64_t head_size) noexcept {
  // The header of the 32-bit class is shorter than this, so fewer bytes are no error yet.
  const auto head = bytes_at(0, std::min<std::uint64_t>(head_size, sizeof(Elf64_Ehdr)));
  if (head.size() < EI_NIDENT) return Error{ErrorCode::truncated, 0, "ELF header"};
  const auto ident = [head](std::size_t i) { return std::to_integer<unsigned>(head[i]); };
  if (std::memcmp(head.data(), ELFMAG, SELFMAG) != 0) return Error{ErrorCode::bad_elf, 0, "ELF magic"};
  if (ident(EI_CLASS) != ELFCLASS32 && ident(EI_CLASS) != ELFCLASS64)
    return Error{ErrorCode::bad_elf, EI_CLASS, "ELF class"};
  if (ident(EI_DATA) != ELFDATA2LSB && ident(EI_DATA) != ELFDATA2MSB)
    return Error{ErrorCode::bad_elf, EI_DATA, "ELF byte order"};
  if (ident(EI_VERSION) != EV_CURRENT) return Error{ErrorCode::bad_elf, EI_VERSION, "ELF version"};
  is_64_ = ident(EI_CLASS) == ELFCLASS64;
  big_endian_ = ident(EI_DATA) == ELFDATA2MSB;

  ByteReader r = reader(head);
  r.skip(EI_NIDENT);
  type_ = r.u16();
  machine_ = r.u16();
  r.skip(4);  // e_version
  word(r);    // e_entry
  const std::uint64_t segments = word(r);
  const std::uint64_t sections = word(r);
  r.skip(4 + 2);  // e_flags, e_ehsize
  segment_size_ = r.u16();
  std::size_t segment_count = r.u16();
  section_size_ = r.u16();
  std::size_t section_count = r.u16();
  std::size_t names = r.u16();
  if (!r.ok()) return r.error("ELF header");

  if (layout_ == Layout::file && sections != 0) {
    read_section_table(sections, 1, SHN_UNDEF);
    if (section_count_ == 1) {
      const ElfSection first = section(0);
      if (section_count == 0) section_count = static_cast<std::size_t>(first.size);
      if (names == SHN_XINDEX) names = first.link;
      if (segment_count == PN_XNUM) segment_count = first.info;
      read_section_table(sections, section_count, names);
    }
  }
  read_segment_table(head_size, segments, segment_count);
  return Done{};
}

void ElfImage::read_section_table(std::uint64_t offset, std::size_t count, std::size_t names) noexcept {
  const std::size_t least = is_64_ ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
  sections_ = table(size(), offset, count, section_size_, least);
  section_count_ = sections_.empty() ? 0 : count;
  section_names_ = {};
  if (names != SHN_UNDEF && names < section_count_) section_names_ = contents(section(names));
}

void ElfImage::read_segment_table(std::uint64_t head_size, std::uint64_t offset, std::size_t count) noexcept {
  const std::size_t least = is_64_ ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
  segments_ = table(head_size, offset, count, segment_size_, least);
  segment_count_ = segments_.empty() ? 0 : count;
  segments_at_ = offset;
  lowest_ = ~Addr{0};
  for (std::size_t i = 0; i < segment_count_; ++i)
    if (segment(i).type == PT_LOAD) lowest_ = std::min(lowest_, page_of(segment(i).address));
}

bool ElfImage::is_of(const Arch& arch) const noexcept {
  return machine_ == arch.elf_machine && big_endian_ == arch.big_endian && is_64_ == (arch.word_size == 8);
}

std::optional<Addr> ElfImage::bias_at(Addr headers) const noexcept {
  for (std::size_t i = 0; i < segment_count_; ++i)
    if (const ElfSegment s = segment(i); s.type == PT_LOAD && page_of(s.offset) == 0)
      return page_of(headers) - page_of(s.address);
  return std::nullopt;
}

ElfSegment ElfImage::segment(std::size_t index) const noexcept {
  if (is_64_ && big_endian_ == (std::endian::native == std::endian::big)) {
    Elf64_Phdr s;
    std::memcpy(&s, &segments_[index * segment_size_], sizeof s);
    return {s.p_type, s.p_flags, s.p_offset, s.p_vaddr, s.p_filesz, s.p_memsz, s.p_align};
  }
  ByteReader r = reader(segments_.subspan(index * segment_size_, segment_size_));
  ElfSegment s;
  s.type = r.u32();
  if (is_64_) s.flags = r.u32();
  s.offset = word(r);
  s.address = word(r);
  word(r);  // p_paddr
  s.file_size = word(r);
  s.memory_size = word(r);
  if (!is_64_) s.flags = r.u32();
  s.alignment = word(r);
  return s;
}

std::span<const std::byte> ElfImage::header_bytes() const noexcept {
  const std::size_t size = is_64_ ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
  if (segments_.empty() || segments_at_ != size) return {};
  return bytes_at(0, size + segments_.size());
}

ElfSection ElfImage::section(std::size_t index) const noexcept {
  ByteReader r = reader(sections_.subspan(index * section_size_, section_size_));
  ElfSection s;
  s.name = r.u32();
  s.type = r.u32();
  s.flags = word(r);
  s.address = word(r);
  s.offset = word(r);
  s.size = word(r);
  s.link = r.u32();
  s.info = r.u32();
  s.alignment = word(r);
  s.entry_size = word(r);
  return s;
}

std::string_view ElfImage::name(const ElfSection& section) const noexcept {
  if (section.name >= section_names_.size()) return {};
  return reader(section_names_.subspan(section.name)).c_string();
}

std::optional<ElfSection> ElfImage::find_section(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < section_count_; ++i) {
    const ElfSection s = section(i);
    // The names are compared in place. A search for the NUL of every name would take quadratic time in hostile data
    // without NULs.
    const auto own = sub_bytes(section_names_, s.name, name.size() + 1);
    if (!own.empty() && own.back() == std::byte{0} && std::memcmp(own.data(), name.data(), name.size()) == 0) return s;
  }
  return std::nullopt;
}

std::span<const std::byte> ElfImage::contents(const ElfSection& section) const noexcept {
  return section.type == SHT_NOBITS ? std::span<const std::byte>{} : bytes_at(section.offset, section.size);
}

std::optional<ElfSection> ElfImage::section_of(const ElfSymbol& symbol) const noexcept {
  if (symbol.section == SHN_UNDEF || symbol.section >= SHN_LORESERVE || symbol.section >= section_count_)
    return std::nullopt;
  return section(symbol.section);
}

AddrRange ElfImage::offsets_from(Addr address) const noexcept {
  for (std::size_t i = 0; i < segment_count_; ++i) {
    const ElfSegment s = segment(i);
    if (s.type != PT_LOAD || address < s.address || address - s.address >= s.file_size) continue;
    if (layout_ == Layout::memory && !(s.flags & PF_R)) continue;
    const std::uint64_t distance = address - s.address;
    const std::uint64_t at = layout_ == Layout::file ? s.offset + distance : address - lowest_;
    const std::uint64_t rest = s.file_size - distance;
    return at > size() || rest > size() - at ? AddrRange{} : AddrRange{at, at + rest};
  }
  return {};
}

std::span<const std::byte> ElfImage::from_address(Addr address) const noexcept {
  const AddrRange offsets = offsets_from(address);
  return bytes_at(offsets.begin, offsets.size());
}

std::span<const std::byte> ElfImage::at_address(Addr address, std::uint64_t size) const noexcept {
  const AddrRange offsets = offsets_from(address);
  return size > offsets.size() ? std::span<const std::byte>{} : bytes_at(offsets.begin, size);
}

[[gnu::hot, gnu::flatten]] bool ElfNotes::next(ElfNote& out) noexcept {
  if (!reader_.ok() || reader_.at_end()) return false;
  const std::uint32_t owner_size = reader_.u32();
  const std::uint32_t description_size = reader_.u32();
  out.type = reader_.u32();
  const auto owner = reader_.bytes(owner_size);
  // The name starts behind the header of 12 bytes, and padding counts from the start of the note.
  skip_at_most(padded(12 + std::uint64_t{owner_size}) - 12 - owner_size);
  out.description = reader_.bytes(description_size);
  if (!reader_.ok()) return false;
  skip_at_most(padded(description_size) - description_size);
  const std::size_t length = owner.empty() ? 0 : owner.size() - 1;
  out.owner = {reinterpret_cast<const char*>(owner.data()), length};
  return true;
}

[[gnu::hot]] std::span<const std::byte> find_note(std::span<const std::byte> notes, bool big_endian,
                                                  std::uint64_t alignment, std::string_view owner,
                                                  std::uint32_t type) noexcept {
  ElfNotes all(notes, big_endian, alignment);
  for (ElfNote note; all.next(note);)
    if (note.owner == owner && note.type == type) return note.description;
  return {};
}

std::span<const std::byte> ElfImage::find_note(std::string_view owner, std::uint32_t type) const noexcept {
  // Real objects have a handful of note sections. The limit stops a hostile object with thousands of headers that share
  // the same bytes.
  constexpr std::size_t k_most = 64;
  std::size_t searched = 0;
  std::span<const std::byte> found;
  const auto search = [&](std::span<const std::byte> bytes, std::uint64_t alignment) {
    found = jitunwind::find_note(bytes, big_endian_, alignment, owner, type);
    return !found.empty() || ++searched == k_most;
  };
  for (std::size_t i = 0; i < section_count_; ++i) {
    const ElfSection s = section(i);
    if (s.type == SHT_NOTE && search(contents(s), s.alignment)) return found;
  }
  for (std::size_t i = 0; i < segment_count_; ++i) {
    const ElfSegment s = segment(i);
    if (s.type != PT_NOTE) continue;
    const auto bytes = layout_ == Layout::file ? bytes_at(s.offset, s.file_size) : at_address(s.address, s.file_size);
    if (search(bytes, s.alignment)) return found;
  }
  return {};
}

std::span<const std::byte> ElfImage::build_id() const noexcept { return find_note(ELF_NOTE_GNU, NT_GNU_BUILD_ID); }

}  // namespace jitunwind
