#include "jitunwind/unwind_core/targets/core_file_internal.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <optional>

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/sort_by_internal.h"

namespace jitunwind {
namespace {

// Limits for false numbers: no process has more.
constexpr std::size_t k_most_threads = std::size_t{1} << 20;
constexpr std::size_t k_most_segments = std::size_t{1} << 20;
constexpr std::size_t k_most_note_segments = 64;

/// The text up to a NUL in bytes of fixed size.
std::string text_in(std::span<const std::byte> bytes) {
  const auto end = std::ranges::find(bytes, std::byte{0});
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(end - bytes.begin())};
}

std::span<const std::byte> part_of(std::span<const std::byte> bytes, std::size_t offset, std::size_t size) {
  if (offset >= bytes.size()) return {};
  return bytes.subspan(offset, std::min(size, bytes.size() - offset));
}

/// The parts of a range that none of the mappings covers.
template <class Use>
void for_each_gap(AddrRange range, const Mappings& mappings, Use use) {
  auto next = std::ranges::upper_bound(mappings.all(), range.begin, {}, [](const Mapping& m) { return m.range.end; });
  for (Addr at = range.begin; at < range.end; ++next) {
    const bool is_last = next == mappings.all().end() || next->range.begin >= range.end;
    const Addr end = is_last ? range.end : next->range.begin;
    if (end > at) use(AddrRange{at, end});
    if (is_last) return;
    at = next->range.end;
  }
}

}  // namespace

std::size_t CoreMemory::read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept {
  std::size_t done = 0;
  auto part = std::ranges::upper_bound(parts_, at, {}, [](const Part& p) { return p.range.begin; });
  if (part == parts_.begin()) return 0;
  for (--part; done < into.size() && part != parts_.end(); ++part) {
    const Addr next = at + done;
    if (!part->range.contains(next)) break;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(into.size() - done, part->range.end - next));
    const std::size_t got = file_.copy(part->offset + (next - part->range.begin), into.subspan(done, size));
    done += got;
    if (got < size) break;
  }
  return done;
}

Result<std::unique_ptr<CoreFile>> CoreFile::open(const char* path) {
  auto file = make_mapped<FileParts>(path);
  if (!file) return Error{ErrorCode::out_of_memory, 0, "core file"};
  if (!file->is_open()) return Error{ErrorCode::io, 0, "core file"};
  std::unique_ptr<CoreFile> core(new CoreFile(std::move(file)));
  const auto image = ElfImage::parse(*core->file_);
  if (!image) return image.error();
  if (image->type() != ET_CORE) return Error{ErrorCode::bad_structure, image->type(), "type of an ELF file"};
  core->image_ = *image;
  core->read_notes();
  if (core->threads_.empty()) return Error{ErrorCode::truncated, core->file_->size(), "registers in a core file"};
  core->take_segments();
  if (core->files_.empty()) core->files_ = mappings_by_link_map(core->memory_, *image, core->start_of_program());
  core->make_mappings();
  return core;
}

ProgramStart CoreFile::start_of_program() const {
  return {auxiliary(AT_PHDR), auxiliary(AT_PHNUM), auxiliary(AT_EXECFN), nullptr, {}};
}

bool CoreFile::add_program(const ElfImage& program, const std::string& path) {
  ProgramStart start = start_of_program();
  if (program.machine() != machine() || program.is_64() != is_64() || program.big_endian() != big_endian() ||
      program.segment_count() != start.header_count)
    return false;
  start.file = &program;
  start.file_path = path;
  files_ = mappings_by_link_map(memory_, *image_, start);
  make_mappings();
  return true;
}

Addr CoreFile::auxiliary(std::uint64_t tag) const noexcept {
  for (const auto& [known, value] : auxiliary_)
    if (known == tag) return value;
  return 0;
}

/// Reads segments of notes, as far as the file reaches. If there are none, as after tools that keep only sections,
/// sections of notes are read. No tool compresses these, and few bytes could make millions of threads.
void CoreFile::read_notes() {
  std::size_t count = 0;
  for (std::size_t i = 0; i < image_->segment_count() && count < k_most_note_segments; ++i) {
    const ElfSegment s = image_->segment(i);
    if (s.type != PT_NOTE || s.offset >= file_->size()) continue;
    ++count;
    take_notes(file_->part(s.offset, std::min(s.file_size, file_->size() - s.offset)), s.alignment);
  }
  for (std::size_t i = 0; i < image_->section_count() && threads_.empty() && count < k_most_note_segments; ++i) {
    const ElfSection s = image_->section(i);
    if (s.type != SHT_NOTE || (s.flags & SHF_COMPRESSED) != 0) continue;
    ++count;
    take_notes(image_->contents(s), s.alignment);
  }
}

void CoreFile::take_notes(std::span<const std::byte> bytes, std::uint64_t alignment) {
  ElfNotes notes(bytes, image_->big_endian(), alignment);
  for (ElfNote note; notes.next(note);)
    if (note.owner == "CORE")
      take(note);
    else if (note.owner == "LINUX" && note.type == NT_ARM_PAC_MASK && machine() == EM_AARCH64)
      take_signing_bits(note.description);
    else if (note.owner == "LINUX" && note.type == NT_ARM_VFP && machine() == EM_ARM)
      take_fp_registers(note.description);
    else if (note.owner == "LINUX" && machine() == EM_AARCH64 && !threads_.empty())
      threads_.back().vector_words.take(note.type, note.description, image_->big_endian());
}

/// struct user_pac_mask (asm/ptrace.h), which is the same for all threads: mask for addresses of data, mask for
/// addresses of code.
void CoreFile::take_signing_bits(std::span<const std::byte> masks) {
  ByteReader reader(masks, image_->big_endian());
  reader.skip(8);
  const std::uint64_t bits = reader.u64();
  if (reader.ok() && !signing_bits_) signing_bits_ = bits;
}

void CoreFile::take(const ElfNote& note) {
  switch (note.type) {
    case NT_PRSTATUS:
      return take_thread(note.description);
    case NT_PRFPREG:
      if (machine() != EM_ARM) take_fp_registers(note.description);
      return;
    case NT_SIGINFO:  // the kernel's is that of the first thread; GDB writes one for each
      if (!threads_.empty() && threads_.back().siginfo.empty()) {
        constexpr std::size_t k_size = 128;
        const auto bytes = part_of(note.description, 0, k_size);
        threads_.back().siginfo.assign(bytes.begin(), bytes.end());
      }
      return;
    case NT_PRPSINFO:
      return take_process(note.description);
    case NT_FILE:
      return take_files(note.description);
    case NT_AUXV: {
      ByteReader reader(note.description, image_->big_endian());
      while (reader.remaining() >= (image_->is_64() ? 16u : 8u)) {
        const std::uint64_t tag = word(reader);
        auxiliary_.emplace_back(tag, word(reader));
      }
      return;
    }
    default:
      return;
  }
}

std::optional<Addr> fault_address(std::span<const std::byte> siginfo, const Arch& arch) noexcept {
  constexpr std::int32_t k_from_the_kernel = 0x80;  // SI_KERNEL: without further data
  constexpr std::uint32_t k_illegal = 4, k_arithmetic = 8, k_segment = 11;
  ByteReader reader(siginfo, arch.big_endian);
  const std::uint32_t signal = reader.u32();
  reader.seek(arch.siginfo.code);
  const auto code = static_cast<std::int32_t>(reader.u32());
  reader.seek(arch.word_size == 8 ? 16 : 12);
  const Addr address = reader.unsigned_of(arch.word_size);
  const bool is_fault =
      signal == k_illegal || signal == k_arithmetic || signal == k_segment || signal == arch.siginfo.bus_error;
  if (!reader.ok() || !is_fault || code <= 0 || code == k_from_the_kernel) return std::nullopt;
  return address;
}

void CoreFile::take_fp_registers(std::span<const std::byte> block) {
  if (!threads_.empty()) threads_.back().fp_registers.assign(block.begin(), block.end());
}

/// struct elf_prstatus (linux/elfcore.h): si_signo, si_code, si_errno; pr_cursig; pr_sigpend, pr_sighold, words;
/// pr_pid, pr_ppid, pr_pgrp, pr_sid; four times two words; the registers; pr_fpvalid.
void CoreFile::take_thread(std::span<const std::byte> status) {
  constexpr std::size_t k_signal = 12;
  const std::size_t word_size = image_->is_64() ? 8 : 4;
  const std::size_t process = 16 + 2 * word_size, first = process + 16 + 8 * word_size, behind = word_size;
  if (threads_.size() == k_most_threads || status.size() <= first) return;
  CoreThread thread;
  ByteReader reader(status, image_->big_endian());
  reader.skip(k_signal);
  thread.signal = reader.u16();
  reader.seek(process);
  thread.id = static_cast<pid_t>(reader.u32());
  const auto registers = status.subspan(first, status.size() - first - std::min(behind, status.size() - first));
  thread.registers.assign(registers.begin(), registers.end());
  if (threads_.empty() && process_ == 0) process_ = thread.id;
  threads_.push_back(std::move(thread));
}

/// struct elf_prpsinfo: pr_state, pr_sname, pr_zomb, pr_nice; pr_flag, a word; pr_uid, pr_gid, of 2 bytes if words have
/// 4; pr_pid, pr_ppid, pr_pgrp, pr_sid; pr_fname; pr_psargs.
void CoreFile::take_process(std::span<const std::byte> info) {
  constexpr std::size_t k_name_size = 16, k_arguments_size = 80;
  const std::size_t ids = image_->is_64() ? 24 : 12;
  const std::size_t name = ids + 16;
  ByteReader reader(info, image_->big_endian());
  reader.skip(ids);
  if (const auto process = static_cast<pid_t>(reader.u32()); reader.ok() && process > 0) process_ = process;
  program_ = text_in(part_of(info, name, k_name_size));
  arguments_ = text_in(part_of(info, name + k_name_size, k_arguments_size));
}

/// fs/binfmt_elf.c, fill_files_note(): count, size of a page; begin, end and offset in pages of each; their paths.
void CoreFile::take_files(std::span<const std::byte> files) {
  ByteReader numbers(files, image_->big_endian());
  const std::uint64_t size = image_->is_64() ? 8 : 4;
  const std::uint64_t count = word(numbers);
  const std::uint64_t page = word(numbers);
  if (!numbers.ok() || count > numbers.remaining() / (3 * size)) return;
  ByteReader paths = numbers;
  paths.skip(3 * size * count);
  for (std::uint64_t i = 0; i < count && paths.ok(); ++i) {
    Mapping mapping;
    mapping.range.begin = word(numbers);
    mapping.range.end = word(numbers);
    mapping.offset = word(numbers) * page;
    mapping.set_shown_path(paths.c_string());
    mapping.readable = true;
    if (paths.ok()) files_.push_back(std::move(mapping));
  }
}

void CoreFile::take_segments() {
  for (std::size_t i = 0; i < image_->segment_count() && loaded_.size() < k_most_segments; ++i) {
    const ElfSegment s = image_->segment(i);
    if (s.type != PT_LOAD || s.range().empty()) continue;
    loaded_.push_back({s.range(), s.flags});
    const std::uint64_t size = std::min(s.file_size, s.memory_size);
    if (size != 0) memory_.parts_.push_back({{s.address, s.address + size}, s.offset});
  }
  sort_by(memory_.parts_, [](const CoreMemory::Part& part) { return part.range.begin; });
  Addr end = 0;
  std::erase_if(memory_.parts_, [&](const CoreMemory::Part& part) {
    if (part.range.begin < end) return true;
    end = part.range.end;
    return false;
  });
}

/// Takes the mappings of NT_FILE, or else of the dynamic linker, with the permissions of the segment that begins there
/// or before. Segments that these do not name become mappings, too.
void CoreFile::make_mappings() {
  const Addr kernels_object = auxiliary(AT_SYSINFO_EHDR);
  std::vector<Mapping> segments;
  for (const Loaded& segment : loaded_) {
    Mapping mapping;
    mapping.range = segment.range;
    mapping.readable = (segment.flags & PF_R) != 0;
    mapping.writable = (segment.flags & PF_W) != 0;
    mapping.executable = (segment.flags & PF_X) != 0;
    if (segment.range.begin == kernels_object && kernels_object != 0) mapping.path = k_kernels_object;
    segments.push_back(std::move(mapping));
  }
  const Mappings of_segments(std::move(segments));
  const Mappings of_files(std::move(files_));
  std::vector<Mapping> all;
  for (Mapping mapping : of_files.all()) {
    if (const Mapping* const segment = of_segments.find(mapping.range.begin)) {
      mapping.readable = segment->readable;
      mapping.writable = segment->writable;
      mapping.executable = segment->executable;
    }
    all.push_back(std::move(mapping));
  }
  for (const Mapping& segment : of_segments.all())
    for_each_gap(segment.range, of_files, [&](AddrRange gap) {
      all.push_back(segment);
      all.back().range = gap;
    });
  mappings_ = Mappings(std::move(all));
}

void CoreFile::name_mapping(Addr at, const std::string& path) {
  std::vector<Mapping> all = mappings_.all();
  const std::size_t index = mappings_.index_of(at);
  if (index == Mappings::k_none) return;
  all[index].path = path;
  all[index].offset = 0;
  mappings_ = Mappings(std::move(all));
}

namespace {

class LinkMaps {
 public:
  LinkMaps(const CoreMemory& memory, bool is_64, bool big_endian) noexcept
      : memory_(memory), word_size_(is_64 ? 8 : 4), big_endian_(big_endian) {}

  std::vector<Mapping> take(const ProgramStart& program);

 private:
  static constexpr std::size_t k_most_objects = 4096, k_most_entries = 512, k_most_headers = 512, k_most_parts = 64;
  static constexpr std::size_t k_longest_path = 4096;

  std::optional<std::uint64_t> word(Addr at) const noexcept {
    MemoryWindow window;
    const auto read = read_unsigned(memory_, window, at, word_size_, big_endian_, "link map");
    return read ? std::optional(*read) : std::nullopt;
  }
  std::string text(Addr at) const;
  Addr dynamic_section(const ProgramStart& program) const noexcept;
  Addr first_map(Addr dynamic) const noexcept;
  void add_program(const ProgramStart& program);
  void add_library(Addr bias, Addr dynamic, const std::string& path);
  bool add(Addr begin, const std::string& path, std::optional<Addr> bias = {});
  void add_segments(const ElfImage& image, Addr begin, const std::string& path);

  const CoreMemory& memory_;
  std::size_t word_size_;
  bool big_endian_;
  std::vector<Mapping> found_;
};

/// "": there is none, or it has no end.
std::string LinkMaps::text(Addr at) const {
  std::string text;
  MemoryWindow window;
  for (std::array<std::byte, 64> piece; at != 0 && text.size() < k_longest_path; at += piece.size()) {
    const auto got = std::span(piece).first(memory_.read(at, piece, window));
    const auto end = std::ranges::find(got, std::byte{0});
    text.append(reinterpret_cast<const char*>(got.data()), static_cast<std::size_t>(end - got.begin()));
    if (end != got.end()) return text;
    if (got.size() < piece.size()) break;
  }
  return {};
}

Addr dynamic_section_of(const ElfImage& file, Addr headers) noexcept {
  const std::optional<Addr> bias = file.bias_at(headers);
  for (std::size_t i = 0; bias && i < file.segment_count(); ++i)
    if (const ElfSegment s = file.segment(i); s.type == PT_DYNAMIC) return *bias + s.address;
  return 0;
}

/// gABI, chapter 5, "Program Header".
Addr LinkMaps::dynamic_section(const ProgramStart& program) const noexcept {
  if (program.file) return dynamic_section_of(*program.file, program.headers);
  std::optional<Addr> bias;
  Addr dynamic = 0;
  const bool is_64 = word_size_ == 8;
  for (std::size_t i = 0; i < std::min<std::uint64_t>(program.header_count, k_most_headers); ++i) {
    std::array<std::byte, sizeof(Elf64_Phdr)> room;
    const auto bytes = std::span(room).first(is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr));
    MemoryWindow window;
    if (memory_.read(program.headers + i * bytes.size(), bytes, window) != bytes.size()) break;
    ByteReader reader(bytes, big_endian_);
    const std::uint32_t type = reader.u32();
    reader.seek(is_64 ? offsetof(Elf64_Phdr, p_vaddr) : offsetof(Elf32_Phdr, p_vaddr));
    const Addr address = reader.unsigned_of(word_size_);
    if (type == PT_PHDR) bias = program.headers - address;
    if (type == PT_DYNAMIC) dynamic = address;
  }
  return bias && dynamic != 0 ? *bias + dynamic : 0;
}

/// struct r_debug: a version of 4 bytes, and the first link map, each at a place where a word may begin.
Addr LinkMaps::first_map(Addr dynamic) const noexcept {
  for (std::size_t i = 0; dynamic != 0 && i < k_most_entries; ++i, dynamic += 2 * word_size_) {
    const auto tag = word(dynamic), value = word(dynamic + word_size_);
    if (!tag || !value || *tag == DT_NULL) break;
    if (*tag == DT_DEBUG && *value != 0) return word(*value + word_size_).value_or(0);
  }
  return 0;
}

/// Adds the object whose file's addresses are `bias` lower than those in memory. It begins there if its file's
/// addresses begin at 0. A prelinked one begins in front of its dynamic section.
void LinkMaps::add_library(Addr bias, Addr dynamic, const std::string& path) {
  if (add(bias, path)) return;
  const auto parts = memory_.parts();
  auto at = std::ranges::upper_bound(parts, dynamic, {}, [](const auto& part) { return part.range.begin; });
  for (std::size_t i = 0; i < k_most_parts && at != parts.begin(); ++i)
    if (add((--at)->range.begin, path, bias)) return;
}

/// False: no object begins there, or one with another bias.
bool LinkMaps::add(Addr begin, const std::string& path, std::optional<Addr> bias) {
  std::array<std::byte, k_page_size> page;
  MemoryWindow window;
  const auto image = ElfImage::parse_loaded(page, memory_.read(page_of(begin), page, window));
  if (!image || (bias && image->bias_at(begin) != bias)) return false;
  add_segments(*image, page_of(begin), path);
  return true;
}

/// Adds the segments of the object whose first page is there. A page belongs to the segment that begins on it.
void LinkMaps::add_segments(const ElfImage& image, Addr begin, const std::string& path) {
  if (path.empty()) return;
  const std::optional<Addr> bias = image.bias_at(begin);
  for (std::size_t i = 0; bias && i < std::min(image.segment_count(), k_most_headers); ++i) {
    const ElfSegment s = image.segment(i);
    if (s.type != PT_LOAD || s.file_size == 0) continue;
    Mapping mapping;
    mapping.range.begin = page_of(*bias + s.address);
    mapping.range.end = page_of(*bias + s.address + s.file_size + k_page_size - 1);
    mapping.offset = page_of(s.offset);
    mapping.path = path;
    mapping.readable = true;
    if (!mapping.range.empty()) found_.push_back(std::move(mapping));
  }
}

/// Adds the program by its own first page, or else by that of its file, which the headers follow at once.
void LinkMaps::add_program(const ProgramStart& program) {
  const std::string path = text(program.path);
  add(program.headers, path);
  if (found_.empty() && program.file)
    add_segments(*program.file, page_of(program.headers), path.empty() ? program.file_path : path);
}

std::vector<Mapping> LinkMaps::take(const ProgramStart& program) {
  add_program(program);
  // Members: l_addr, l_name, l_ld, l_next. The first map is the program itself, without a name.
  Addr map = first_map(dynamic_section(program));
  for (std::size_t count = 0; map != 0 && count < k_most_objects && found_.size() < Mappings::k_most; ++count) {
    const auto bias = word(map), name = word(map + word_size_), dynamic = word(map + 2 * word_size_),
               next = word(map + 3 * word_size_);
    if (!bias || !name || !dynamic || !next) break;
    if (count != 0) add_library(*bias, *dynamic, text(*name));
    map = *next;
  }
  return std::move(found_);
}

}  // namespace

std::vector<Mapping> mappings_by_link_map(const CoreMemory& memory, const ElfImage& core, const ProgramStart& program) {
  return program.headers == 0 ? std::vector<Mapping>{}
                              : LinkMaps(memory, core.is_64(), core.big_endian()).take(program);
}

}  // namespace jitunwind
