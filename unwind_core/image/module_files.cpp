#include "jitunwind/unwind_core/image/module_files_internal.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "jitunwind/unwind_core/image/compressed/decompress_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// The section .gnu_debuglink (GDB manual, "Separate Debug Files") holds a name, a NUL, padding to 4 bytes, and the
/// CRC-32 of the whole debug file in the object's byte order.
struct DebugLink {
  std::string_view name{};
  std::uint32_t crc = 0;
};

std::optional<DebugLink> debug_link(const ElfImage& image) noexcept {
  const auto section = image.find_section(".gnu_debuglink");
  if (!section) return std::nullopt;
  ByteReader r(image.contents(*section), image.big_endian());
  DebugLink link;
  link.name = r.c_string();
  r.skip(-r.position() & 3);
  link.crc = r.u32();
  // A name with a folder in it would lead out of the folders that are searched.
  if (!r.ok() || link.name.empty() || link.name.find('/') != std::string_view::npos) return std::nullopt;
  return link;
}

/// The size is limited because the link may come from a hostile target, whose file may have holes: terabytes that take
/// no space on disk.
bool has_crc(FileParts& file, std::uint32_t crc) noexcept {
  constexpr std::uint64_t k_most_read = 2 * CopiedParts::k_most_bytes;
  if (file.size() > k_most_read) return false;
  std::uint32_t of_file = 0;
  const bool whole = file.read_all([&](std::span<const std::byte> piece) { of_file = crc_of(piece, of_file); });
  return whole && of_file == crc;
}

using SymbolTables = std::array<SymbolTable, SymbolIndex::k_most_tables>;

/// An ELF file of symbols, compressed with xz (GDB manual, "MiniDebugInfo").
class LittleDebugFile {
 public:
  explicit LittleDebugFile(const ElfImage& image) noexcept {
    const auto section = image.find_section(".gnu_debugdata");
    if (!section || !is_above(decompress_xz)) return;
    auto bytes = decompress_xz(image.contents(*section));
    lacked_memory_ = !bytes && bytes.error().code == ErrorCode::out_of_memory;
    if (!bytes) return;
    bytes_ = std::move(*bytes);
    if (const auto parsed = ElfImage::parse(bytes_.bytes())) image_ = *parsed;
  }
  bool lacked_memory() const noexcept { return lacked_memory_; }
  const ElfImage* image() const noexcept { return image_ ? &*image_ : nullptr; }

 private:
  Block bytes_;
  std::optional<ElfImage> image_;
  bool lacked_memory_ = false;
};

SymbolTables stripped_tables(const ElfImage& image, const ElfImage* little) noexcept {
  ElfSymbols dynamic = image.symbols(SHT_DYNSYM);
  if (image.section_count() == 0) dynamic = image.dynamic_symbols(0);
  return {SymbolTable{little, little ? little->symbols(SHT_SYMTAB) : ElfSymbols{}}, SymbolTable{&image, dynamic}};
}

/// Whether a later attempt may succeed.
bool lacked_memory(const Error& error) noexcept { return error.code == ErrorCode::out_of_memory; }

Mapped<SymbolIndex> index_of(const SymbolTables& tables) noexcept {
  auto made = SymbolIndex::make(tables);
  return made ? make_mapped<SymbolIndex>(std::move(*made)) : Mapped<SymbolIndex>{};
}

/// A section that cannot be read is empty, and stays so. Returns null when there is no memory for the copy.
Mapped<CopiedSection> copy_of(const ElfImage& image, std::string_view name) noexcept {
  auto made = make_mapped<CopiedSection>();
  const auto section = image.find_section(name);
  if (!made || !section) return made;
  if (!KeptBlock::has_room()) {
    made->unread = k_no_room;
    return made;
  }
  auto read = read_section(image, *section);
  if (!read) {
    if (lacked_memory(read.error())) return {};
    made->unread = read.error().what;
    return made;
  }
  made->address = section->address;
  if (read->bytes.empty()) return made;
  if (read->own.empty()) {
    read->own = Block(read->bytes.size());
    if (read->own.empty()) return {};
    std::ranges::copy(read->bytes, read->own.bytes().begin());
  }
  made->bytes = std::move(read->own);
  return made;
}

}  // namespace

Result<SymbolData> read_symbols(const ElfImage& image) noexcept {
  SymbolData data;
  const auto table = image.symbol_section(SHT_SYMTAB);
  if (!table) return data;
  auto entries = read_section(image, *table);
  if (!entries) return entries.error();
  auto strings = read_section(image, image.section(table->link));
  if (!strings) return strings.error();
  data.symbols = image.symbols_of(entries->bytes, strings->bytes);
  data.entries = std::move(entries->own);
  data.strings = std::move(strings->own);
  return data;
}

bool is_read_only(const ElfSegment& segment) noexcept {
  return segment.type == PT_LOAD && (segment.flags & (PF_R | PF_W)) == PF_R;
}

bool is_same_object(const ElfImage& file, const ElfImage& loaded) noexcept {
  const auto ours = file.build_id();
  const auto theirs = loaded.build_id();
  if (!ours.empty() && !theirs.empty()) return same_bytes(ours, theirs);
  if (!same_bytes(file.header_bytes(), loaded.header_bytes())) return false;
  for (std::size_t i = 0; i < file.segment_count(); ++i) {
    const ElfSegment s = file.segment(i);
    if (!is_read_only(s)) continue;
    const std::uint64_t size = std::min(s.file_size, k_page_size);
    const auto there = loaded.at_address(s.address, size);
    if (!there.empty() && !same_bytes(file.at_address(s.address, size), there)) return false;
  }
  return true;
}

/// Returns null when the joined path does not fit.
const char* PathBuffer::join(std::initializer_list<std::string_view> parts) noexcept {
  std::size_t length = 0;
  for (const std::string_view part : parts) {
    if (part.size() >= buffer().size() - std::min(length, buffer().size())) return nullptr;
    std::ranges::copy(part, buffer().data() + length);
    length += part.size();
  }
  buffer()[length] = '\0';
  return buffer().data();
}

Result<ModuleFiles::ElfFile> ModuleFiles::open_elf(const FilePath& path, std::span<char> real_path,
                                                   std::uint64_t begin) noexcept {
  auto parts = make_mapped<FileParts>(path, real_path, begin);
  if (!parts) return Error{ErrorCode::out_of_memory, 0, "copy of a file"};
  if (!parts->is_open()) return Error{ErrorCode::io, 0, "file"};
  const auto image = ElfImage::parse(*parts);
  if (!image) return image.error();
  return ElfFile{std::move(parts), *image};
}

ModuleFiles::ElfFile ModuleFiles::open_again(const FileName& name) noexcept {
  if (name.path.empty()) return {};
  auto file = open_elf({name.path.text(), name.root}, {}, name.begin);
  return file && file->parts->identity() == name.identity ? std::move(*file) : ElfFile{};
}
ModuleFiles::BothFiles ModuleFiles::open_again() const noexcept { return {open_again(file_), open_again(debug_)}; }

Result<Mapped<ModuleFiles>> ModuleFiles::open(const FilePath& name, const ElfImage* loaded, const FilePath& debug_root,
                                              std::uint64_t begin) noexcept {
  auto files = make_mapped<ModuleFiles>();
  if (files) files->file_.path = PathBuffer::make();
  if (!files || files->file_.path.empty()) return Error{ErrorCode::out_of_memory, 0, "files of a module"};
  files->file_.root = name.root;
  files->file_.begin = begin;
  auto file = open_elf(name, files->file_.path.buffer(), begin);
  if (!file) return file.error();
  if (loaded && !is_same_object(*file->image, *loaded))
    return Error{ErrorCode::bad_structure, 0, "the file is not the one that is loaded"};
  files->file_.identity = file->parts->identity();
  // The real path needs /proc, and in another root or mount namespace it may name another file. Either way the given
  // path is used.
  const auto named = identify_file({files->file_.path.text(), name.root});
  if (!named || *named != files->file_.identity) (void)files->file_.path.join({name.path});
  files->find_debug_file(*file->image, debug_root);
  return files;
}

/// Searches the places of the GDB manual, "Separate Debug Files". The first is the build ID's; then come those of the
/// link's name: beside the file, in .debug, and in the same folder below the root.
void ModuleFiles::find_debug_file(const ElfImage& image, const FilePath& debug_root) noexcept {
  if (image.has_symbols(SHT_SYMTAB) && (image.find_section(".debug_info") || image.find_section(".zdebug_info")))
    return;
  PathBuffer path = PathBuffer::make();
  if (path.empty()) return;
  const auto accept = [&](const char* root, std::initializer_list<std::string_view> parts, const std::uint32_t* crc) {
    const char* const joined = path.join(parts);
    if (!joined || !accept_debug_file(image, {joined, root}, crc)) return false;
    debug_.path = std::move(path);
    debug_.root = root;
    return true;
  };
  const BuildIdPath id(image.build_id());
  if (id.length != 0 && accept(debug_root.root, {debug_root.path, "/.build-id/", id.view(), ".debug"}, nullptr)) return;
  const auto link = debug_link(image);
  const std::string_view real_path = file_.path.text();
  const std::string_view folder = real_path.substr(0, real_path.rfind('/') + 1);
  if (!link || folder.empty()) return;
  (void)(accept(file_.root, {folder, link->name}, &link->crc) ||
         accept(file_.root, {folder, ".debug/", link->name}, &link->crc) ||
         accept(debug_root.root, {debug_root.path, folder, link->name}, &link->crc));
}

/// Compares the build IDs if both files have one, which saves reading the whole file. Otherwise it compares the link's
/// CRC.
bool ModuleFiles::accept_debug_file(const ElfImage& image, const FilePath& path, const std::uint32_t* crc) noexcept {
  const auto file = open_elf(path);
  if (!file || file->parts->identity() == file_.identity) return false;
  const auto ours = image.build_id();
  const auto theirs = file->image->build_id();
  const bool accepted =
      !ours.empty() && !theirs.empty() ? same_bytes(ours, theirs) : crc && has_crc(*file->parts, *crc);
  if (accepted) debug_.identity = file->parts->identity();
  return accepted;
}

const SymbolIndex* ModuleFiles::symbols() const noexcept {
  return symbols_.get([this] {
    const BothFiles files = open_again();
    if (!files.file.image) return Mapped<SymbolIndex>{};
    if (!KeptBlock::has_room()) return index_of({});
    for (const ElfFile* file : {&files.file, &files.debug})
      if (file->image && file->image->has_symbols(SHT_SYMTAB)) {
        const auto read = read_symbols(*file->image);
        if (!read && lacked_memory(read.error())) return Mapped<SymbolIndex>{};
        if (read && read->symbols.count() != 0)
          return index_of({SymbolTable{&*file->image, read->symbols}, SymbolTable{}});
      }
    const LittleDebugFile little(*files.file.image);
    if (little.lacked_memory()) return Mapped<SymbolIndex>{};
    return index_of(stripped_tables(*files.file.image, little.image()));
  });
}

const CopiedSection* ModuleFiles::debug_frame() const noexcept {
  return debug_frame_.get([this] {
    const BothFiles files = open_again();
    Mapped<CopiedSection> best;
    if (!files.file.image) return best;
    for (const ElfFile* file : {&files.file, &files.debug})
      for (const std::string_view name : {".debug_frame", ".zdebug_frame"}) {
        if (!file->image) continue;
        auto copy = copy_of(*file->image, name);
        if (!copy || !copy->bytes.empty()) return copy;
        if (!best || !best->unread) best = std::move(copy);
      }
    return best;
  });
}

const CopiedSection* ModuleFiles::eh_frame() const noexcept {
  return eh_frame_.get([this] {
    const ElfFile file = open_again(file_);
    return file.image ? copy_of(*file.image, ".eh_frame") : Mapped<CopiedSection>{};
  });
}

}  // namespace jitunwind
