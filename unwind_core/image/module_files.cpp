#include "unwind_core/image/module_files_p.h"

#include <elf.h>
#include <limits.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "unwind_core/page_p.h"

namespace jitunwind {
namespace {

/// A path put together in memory of its own: two of them on the stack would be 8 KiB in a signal handler.
class PathBuffer {
 public:
  PathBuffer() noexcept : memory_(PATH_MAX) {}

  std::span<char> buffer() noexcept {
    return {reinterpret_cast<char*>(memory_.bytes().data()), memory_.bytes().size()};
  }
  std::string_view text() const noexcept {
    return memory_.empty() ? std::string_view{} : reinterpret_cast<const char*>(memory_.bytes().data());
  }

  /// Null when it does not fit.
  const char* join(std::initializer_list<std::string_view> parts) noexcept {
    std::size_t length = 0;
    for (const std::string_view part : parts) {
      if (part.size() >= buffer().size() - std::min(length, buffer().size())) return nullptr;
      std::ranges::copy(part, buffer().data() + length);
      length += part.size();
    }
    buffer()[length] = '\0';
    return buffer().data();
  }

 private:
  Block memory_;
};

/// "xx/yyyy" of a build id, as debug files are filed.
struct BuildIdPath {
  std::array<char, 2 * 64 + 1> text;
  std::size_t length = 0;

  explicit BuildIdPath(std::span<const std::byte> id) noexcept {
    constexpr std::string_view k_digits = "0123456789abcdef";
    if (id.size() < 2 || id.size() > 64) return;
    for (std::size_t i = 0; i < id.size(); ++i) {
      const auto byte = std::to_integer<unsigned>(id[i]);
      text[length++] = k_digits[byte >> 4];
      text[length++] = k_digits[byte & 0xf];
      if (i == 0) text[length++] = '/';
    }
  }
  std::string_view view() const noexcept { return {text.data(), length}; }
};

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// .gnu_debuglink (GDB manual, "Separate Debug Files"): name, NUL, padding to 4 bytes, CRC-32 of the whole debug file
/// in the object's byte order.
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
  // A name with a folder in it would lead out of the folders searched.
  if (!r.ok() || link.name.empty() || link.name.find('/') != std::string_view::npos) return std::nullopt;
  return link;
}

std::uint32_t crc_of(std::span<const std::byte> bytes) noexcept {
  const auto* const data = reinterpret_cast<const Bytef*>(bytes.data());
  return static_cast<std::uint32_t>(::crc32_z(0, data, bytes.size()));
}

ElfSymbols symbols_of(const ElfImage* image, std::uint32_t type) noexcept {
  return image ? image->symbols(type) : ElfSymbols{};
}

}  // namespace

bool is_same_object(const ElfImage& file, const ElfImage& loaded) noexcept {
  const auto ours = file.build_id();
  const auto theirs = loaded.build_id();
  if (!ours.empty() && !theirs.empty()) return same_bytes(ours, theirs);
  if (file.header_bytes().empty() || !same_bytes(file.header_bytes(), loaded.header_bytes())) return false;
  for (std::size_t i = 0; i < file.segment_count(); ++i) {
    const ElfSegment s = file.segment(i);
    if (s.type != PT_LOAD || (s.flags & (PF_R | PF_W)) != PF_R) continue;
    const std::uint64_t size = std::min(s.file_size, k_page_size);
    if (!same_bytes(file.at_address(s.address, size), loaded.at_address(s.address, size))) return false;
  }
  return true;
}

Result<ModuleFiles::ElfFile> ModuleFiles::open_elf(const char* path, std::span<char> real_path) noexcept {
  auto map = MappedFile::open(path, real_path);
  if (!map) return map.error();
  const auto image = ElfImage::parse(map->bytes());
  if (!image) return image.error();
  return ElfFile{std::move(*map), *image};
}

Result<Mapped<ModuleFiles>> ModuleFiles::open(const char* path, const ElfImage* loaded,
                                              const char* debug_root) noexcept {
  auto files = make_mapped<ModuleFiles>();
  PathBuffer real_path;
  if (!files || real_path.buffer().empty()) return Error{ErrorCode::out_of_memory, 0, "files of a module"};
  auto file = open_elf(path, real_path.buffer());
  if (!file) return file.error();
  if (loaded && !is_same_object(*file->image, *loaded))
    return Error{ErrorCode::bad_structure, 0, "the file is not the one that is loaded"};
  files->file_ = std::move(*file);
  files->find_debug_file(real_path.text(), debug_root);
  return files;
}

/// The places of the GDB manual, "Separate Debug Files": by build id; then by the link's name beside the file, in
/// .debug, and in the same folder below the root.
void ModuleFiles::find_debug_file(std::string_view real_path, std::string_view debug_root) noexcept {
  const ElfImage& image = *file_.image;
  if (image.symbols(SHT_SYMTAB).count() != 0 &&
      (image.find_section(".debug_info") || image.find_section(".zdebug_info")))
    return;
  PathBuffer path;
  if (path.buffer().empty()) return;
  const BuildIdPath id(image.build_id());
  if (id.length != 0 && accept_debug_file(path.join({debug_root, "/.build-id/", id.view(), ".debug"}), nullptr)) return;
  const auto link = debug_link(image);
  if (!link || real_path.empty()) return;
  const std::string_view folder = real_path.substr(0, real_path.rfind('/') + 1);
  for (const auto& [before, between] : {std::pair{std::string_view{}, std::string_view{}},
                                        {std::string_view{}, std::string_view{".debug/"}},
                                        {debug_root, std::string_view{}}})
    if (accept_debug_file(path.join({before, folder, between, link->name}), &link->crc)) return;
}

/// By build id where both have one, which spares reading the whole file; else by the link's CRC.
bool ModuleFiles::accept_debug_file(const char* path, const std::uint32_t* crc) noexcept {
  if (!path) return false;
  auto file = open_elf(path);
  if (!file || file->map.identity() == file_.map.identity()) return false;
  const auto ours = image().build_id();
  const auto theirs = file->image->build_id();
  const bool accepted =
      !ours.empty() && !theirs.empty() ? same_bytes(ours, theirs) : crc && *crc == crc_of(file->map.bytes());
  if (accepted) debug_ = std::move(*file);
  return accepted;
}

/// GDB manual, "MiniDebugInfo": an ELF file of symbols, compressed with xz.
const ElfImage* ModuleFiles::little_debug_image() const noexcept {
  const LittleDebugFile* const little = little_.get([this] {
    auto made = make_mapped<LittleDebugFile>();
    const auto section = image().find_section(".gnu_debugdata");
    if (!made || !section) return made;
    auto bytes = decompress_xz(image().contents(*section));
    // What is broken stays so; for memory one may try again.
    if (!bytes) return bytes.error().code == ErrorCode::out_of_memory ? Mapped<LittleDebugFile>{} : std::move(made);
    made->bytes = std::move(*bytes);
    if (const auto parsed = ElfImage::parse(made->bytes.bytes())) made->image = *parsed;
    return made;
  });
  return little && little->image ? &*little->image : nullptr;
}

ModuleFiles::SymbolTables ModuleFiles::symbol_tables() const noexcept {
  for (const ElfImage* image : {&image(), debug_image()})
    if (const ElfSymbols symbols = symbols_of(image, SHT_SYMTAB); symbols.count() != 0)
      return {SymbolTable{image, symbols}, SymbolTable{}};
  const ElfImage* const little = little_debug_image();
  ElfSymbols dynamic = image().symbols(SHT_DYNSYM);
  if (image().section_count() == 0) dynamic = image().dynamic_symbols(0);
  return {SymbolTable{little, symbols_of(little, SHT_SYMTAB)}, SymbolTable{&image(), dynamic}};
}

std::optional<FoundSymbol> ModuleFiles::find_symbol(Addr at, NameReach reach) const noexcept {
  const SymbolIndex* const index = symbols_.get([this] {
    auto made = SymbolIndex::make(symbol_tables());
    return made ? make_mapped<SymbolIndex>(std::move(*made)) : Mapped<SymbolIndex>{};
  });
  return index ? index->find(at, reach) : jitunwind::find_symbol(symbol_tables(), at, reach);
}

std::span<const std::byte> ModuleFiles::debug_frame() const noexcept {
  const SectionData* const data = debug_frame_.get([this] {
    for (const ElfImage* image : {&image(), debug_image()})
      for (const std::string_view name : {".debug_frame", ".zdebug_frame"}) {
        const auto section = image ? image->find_section(name) : std::nullopt;
        if (!section) continue;
        auto read = read_section(*image, *section);
        if (read && !read->bytes.empty()) return make_mapped<SectionData>(std::move(*read));
        if (!read && read.error().code == ErrorCode::out_of_memory) return Mapped<SectionData>{};
      }
    return make_mapped<SectionData>();
  });
  return data ? data->bytes : std::span<const std::byte>{};
}

}  // namespace jitunwind
