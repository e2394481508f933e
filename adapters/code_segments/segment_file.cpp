#include "jitunwind/adapters/code_segments/segment_file_p.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string_view>

#include "jitunwind/unwind_core/emit/eh_frame.h"
#include "jitunwind/unwind_core/emit/elf_writer_internal.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"

namespace jitunwind {
namespace {

// A name that begins another one is before that.
constexpr char k_section_name_bytes[] =
    "\0.hash\0.dynsym\0.dynstr\0.eh_frame\0.eh_frame_hdr\0.text\0.dynamic\0.note.jitunwind"
    "\0.note.gnu.build-id\0.shstrtab";
constexpr std::string_view k_section_names{k_section_name_bytes, sizeof k_section_name_bytes};
constexpr std::uint32_t name_at(std::string_view name) {
  return static_cast<std::uint32_t>(name.empty() ? 0 : k_section_names.find(name, 1));
}

/// Sections of write_section_headers() that others refer to, by their places there.
enum Section : std::uint32_t { symbols = 2, strings, frames = 5, text, build_id = 9, k_sections = 11 };
static_assert(Section::text == k_text_section);
constexpr std::size_t k_segments = 7, k_note_segment = 6;
constexpr std::size_t k_dynamic_entries = 6;

constexpr std::size_t k_least_bytes = 8192;  // beside that: a longest name and large frames fit into any segment

constexpr std::size_t up_to(std::size_t offset, std::size_t unit) noexcept { return (offset + unit - 1) / unit * unit; }

constexpr std::size_t k_headers = sizeof(Elf64_Ehdr) + k_segments * sizeof(Elf64_Phdr);

// Two notes (gABI, chapter 5 "Note Section"): this library's, of two words, and the build-id, which is behind the end
// of the notes until there is one.
constexpr std::string_view k_own_name("jitunwind\0\0", 12), k_gnu_name("GNU", 4);  // filled to words
constexpr std::size_t k_words = 2 * sizeof(std::uint64_t);                         // of both notes
constexpr std::size_t k_own_note = sizeof(Elf64_Nhdr) + k_own_name.size() + k_words;
constexpr std::size_t k_id_note = sizeof(Elf64_Nhdr) + k_gnu_name.size() + k_words;

}  // namespace

SegmentLayout::SegmentLayout(const Arch& arch, std::size_t its_text_bytes, std::size_t its_functions,
                             std::size_t its_page_bytes) noexcept
    : functions(its_functions), text_bytes(up_to(its_text_bytes, its_page_bytes)), page_bytes(its_page_bytes) {
  const std::size_t word = arch.word_size;
  section_names = k_headers + k_sections * sizeof(Elf64_Shdr);
  notes = up_to(section_names + k_section_names.size(), word);
  hash = up_to(notes + k_own_note + k_id_note, word);
  // DT_HASH: numbers of buckets and of symbols, the bucket, and a link for each symbol.
  symbols = up_to(hash + (3 + 1 + functions) * sizeof(Elf32_Word), word);
  strings = symbols + symbols_bytes(functions);
  strings_bytes = up_to(k_least_bytes + functions * k_name_of_function, word);
  // The search table's head has 12 bytes, and its entries are aligned.
  search_table = strings + strings_bytes + 4;
  frames = search_entry(functions);
  frames_bytes = k_least_bytes + functions * k_frames_of_function;
  text = text_address = up_to(frames + frames_bytes, page_bytes);
  dynamic = text + text_bytes;
  end = dynamic + k_page_size;
}

namespace {
constexpr std::size_t header_of(Section section) noexcept { return k_headers + section * sizeof(Elf64_Shdr); }
constexpr std::size_t size_in_header(Section section) noexcept {
  return header_of(section) + offsetof(Elf64_Shdr, sh_size);
}

void write_program_headers(const SegmentLayout& layout, ElfWriter& elf) noexcept {
  const auto segment = [&](std::uint32_t type, std::uint32_t flags, std::size_t at, std::size_t end, std::size_t unit) {
    elf.segment({type, flags, at, layout.address(at), end - at, end - at, unit});
  };
  const auto text = [&] { segment(PT_LOAD, PF_R | PF_X, layout.text, layout.dynamic, layout.page_bytes); };
  if (layout.is_laid_over) {
    // Only the first one's address matters. Nothing is in it. elfutils takes its bits above the alignment for the
    // address of the lowest mapping: none. perf takes it for the address of the file's first byte in a mapping that had
    // the whole file up to the text.
    elf.segment({PT_LOAD, PF_R, 0, std::uint64_t{0} - layout.text, 0, 0, 0});
    text();  // by address
  }
  segment(PT_LOAD, PF_R, 0, layout.frames + layout.frames_bytes, layout.page_bytes);
  if (layout.is_laid_over) {
    elf.segment({});  // no dynamic linker reads the file
  } else {
    const std::size_t dynamic_end = layout.dynamic + k_dynamic_entries * sizeof(Elf64_Dyn);
    text();
    // The dynamic linker of glibc before 2.35 writes addresses into the section.
    segment(PT_LOAD, PF_R | PF_W, layout.dynamic, dynamic_end, layout.page_bytes);
    segment(PT_DYNAMIC, PF_R | PF_W, layout.dynamic, dynamic_end, 8);
  }
  segment(PT_GNU_EH_FRAME, PF_R, layout.search_table, layout.frames, 4);
  segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16);  // the dynamic linker makes stacks executable without it
  segment(PT_NOTE, PF_R, layout.notes, layout.notes + k_own_note, 4);
}

void write_section_headers(const SegmentLayout& layout, ElfWriter& elf) noexcept {
  const auto section = [&](std::string_view name, std::uint32_t type, std::uint64_t flags, std::size_t at,
                           std::size_t size, std::uint32_t link, std::uint32_t info, std::size_t unit,
                           std::size_t entry) {
    elf.section({name_at(name), type, flags, flags == 0 ? 0 : layout.address(at), at, size, link, info, unit, entry});
  };
  const std::uint64_t read = SHF_ALLOC;
  elf.section({});
  section(".hash", SHT_HASH, read, layout.hash, layout.symbols - layout.hash, Section::symbols, 0, 8, 4);
  section(".dynsym", SHT_DYNSYM, read, layout.symbols, layout.symbols_bytes(0), Section::strings, 1, 8,
          sizeof(Elf64_Sym));
  section(".dynstr", SHT_STRTAB, read, layout.strings, layout.strings_bytes, 0, 0, 1, 0);
  section(".eh_frame_hdr", SHT_PROGBITS, read, layout.search_table, layout.frames - layout.search_table, 0, 0, 4, 0);
  section(".eh_frame", SHT_PROGBITS, read, layout.frames, layout.first_frame - layout.frames, 0, 0, 8, 0);
  section(".text", SHT_PROGBITS, read | SHF_EXECINSTR, layout.text, 0, 0, 0, 16, 0);
  section(".dynamic", SHT_DYNAMIC, read | SHF_WRITE, layout.dynamic, k_dynamic_entries * sizeof(Elf64_Dyn),
          Section::strings, 0, 8, sizeof(Elf64_Dyn));
  section(".note.jitunwind", SHT_NOTE, read, layout.notes, k_own_note, 0, 0, 4, 0);
  // The section has no name until the file is sealed: perf goes by the name, and takes an id of zeros for one.
  section("", SHT_NULL, read, layout.notes + k_own_note, k_id_note, 0, 0, 4, 0);
  section(".shstrtab", SHT_STRTAB, 0, layout.section_names, k_section_names.size(), 0, 0, 1, 0);
}

/// A number that no other segment of this machine has.
std::uint64_t unlike_any_other() noexcept {
  static std::atomic<std::uint64_t> count{0};
  const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const auto process = static_cast<std::uint64_t>(::getpid());
  return hash_with(hash_with(hash_with(0, now), process), count.fetch_add(1));
}

void write_notes(const SegmentLayout& layout, const Arch& arch, std::span<std::byte> into) noexcept {
  ElfWriter elf(arch, into.subspan(layout.notes));
  const auto head = [&](std::string_view name, std::size_t unfilled, std::uint32_t type) {
    elf.out().u32(unfilled);
    elf.out().u32(k_words);
    elf.out().u32(type);
    elf.text(name);
  };
  head(k_own_name, 10, 1);
  elf.out().u64(unlike_any_other());
  elf.out().u64(0);
  head(k_gnu_name, k_gnu_name.size(), NT_GNU_BUILD_ID);
}

/// DT_HASH has one empty bucket: dlsym() finds nothing, and dladdr() goes by the number of symbols (gABI, chapter 5
/// "Hash Table").
void write_empty_tables(const SegmentLayout& layout, const Arch& arch, std::span<std::byte> into) noexcept {
  ByteWriter hash(into.subspan(layout.hash), arch.big_endian);
  hash.u32(1);
  hash.u32(1);
  ByteWriter table(into.subspan(layout.search_table), arch.big_endian);  // LSB 5.0 core, 10.6.2
  table.u8(1);
  table.u8(dwarf::pe_pcrel | dwarf::pe_sdata4);
  table.u8(dwarf::pe_udata4);
  table.u8(dwarf::pe_datarel | dwarf::pe_sdata4);
  table.u32(layout.frames - (layout.search_table + table.size()));
  ElfWriter dynamic(arch, into.subspan(layout.dynamic));
  dynamic.dynamic(DT_HASH, layout.address(layout.hash));
  dynamic.dynamic(DT_STRTAB, layout.address(layout.strings));
  dynamic.dynamic(DT_SYMTAB, layout.address(layout.symbols));
  dynamic.dynamic(DT_STRSZ, layout.strings_bytes);
  dynamic.dynamic(DT_SYMENT, sizeof(Elf64_Sym));
  dynamic.dynamic(DT_NULL, 0);
}

}  // namespace

std::size_t SegmentLayout::symbols_size() const noexcept { return size_in_header(Section::symbols); }
std::size_t SegmentLayout::text_size() const noexcept { return size_in_header(Section::text); }
std::size_t SegmentLayout::generation() const noexcept { return notes + k_own_note - sizeof(std::uint64_t); }
std::size_t SegmentLayout::frames_size() const noexcept { return size_in_header(Section::frames); }

void write_segment_file(SegmentLayout& layout, const Arch& arch, std::span<std::byte> into) noexcept {
  EhFrameWriter frames(arch, into.subspan(layout.frames), layout.address(layout.frames));
  frames.begin_cie({});
  layout.no_frame = layout.frames + frames.size();
  frames.begin_fde({layout.text_end(), layout.text_end()}, 0);
  frames.end_fde();
  // bpftrace 0.27 cannot search a file that has rows at fewer than four addresses. It goes by rows alone, so these are
  // that of code behind the text, too: nobody's, which has no caller.
  constexpr std::byte k_next_unit{dwarf::cfa_advance_loc | 1};
  const std::array rows{std::byte{dwarf::cfa_undefined}, static_cast<std::byte>(arch.ra), k_next_unit, k_next_unit,
                        k_next_unit};
  std::memcpy(into.data() + layout.no_frame + k_fde_instructions, rows.data(), rows.size());
  layout.first_frame = layout.frames + frames.size();
  ElfWriter elf(arch, into);
  elf.head({ET_DYN, sizeof(Elf64_Ehdr), k_segments, k_headers, k_sections});
  write_program_headers(layout, elf);
  write_section_headers(layout, elf);
  elf.text(k_section_names);
  write_notes(layout, arch, into);
  write_empty_tables(layout, arch, into);
}

void set_build_id(const SegmentLayout& layout, bool has_one, std::span<std::byte> headers) noexcept {
  const auto put = [&](std::size_t at, auto value) { std::memcpy(headers.data() + at, &value, sizeof value); };
  const std::uint64_t bytes = k_own_note + (has_one ? k_id_note : 0);
  constexpr std::size_t k_segment = sizeof(Elf64_Ehdr) + k_note_segment * sizeof(Elf64_Phdr);
  put(k_segment + offsetof(Elf64_Phdr, p_filesz), bytes);
  put(k_segment + offsetof(Elf64_Phdr, p_memsz), bytes);
  put(header_of(Section::build_id) + offsetof(Elf64_Shdr, sh_name),
      has_one ? Elf64_Word{name_at(".note.gnu.build-id")} : Elf64_Word{0});
  put(header_of(Section::build_id) + offsetof(Elf64_Shdr, sh_type),
      has_one ? Elf64_Word{SHT_NOTE} : Elf64_Word{SHT_NULL});
  std::byte* const end = headers.data() + layout.notes + k_own_note;
  if (has_one) std::memcpy(end + k_id_note - k_words, end - k_words, k_words);
}

}  // namespace jitunwind
