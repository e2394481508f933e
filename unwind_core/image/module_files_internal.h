// The files that tell more of a loaded module than its memory does: its own, its separate debug file, and the little
// debug file within it (.gnu_debugdata).
#pragma once

#include <limits.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/image/mapped_internal.h"
#include "jitunwind/unwind_core/image/symbol_index_internal.h"

namespace jitunwind {

/// Where Debian and everybody else keeps separate debug files (GDB manual, "Separate Debug Files").
inline constexpr const char* k_debug_root = "/usr/lib/debug";

/// A path put together in memory of its own: two of them on the stack would be 8 KiB in a signal handler.
class PathBuffer {
 public:
  PathBuffer() noexcept = default;
  /// Empty when mmap refuses.
  static PathBuffer make() noexcept {
    PathBuffer path;
    path.memory_ = Block(PATH_MAX);
    return path;
  }

  bool empty() const noexcept { return memory_.empty(); }
  std::span<char> buffer() const noexcept {
    return {reinterpret_cast<char*>(memory_.bytes().data()), memory_.bytes().size()};
  }
  /// NUL-terminated. Precondition: !empty().
  const char* text() const noexcept { return buffer().data(); }
  /// Null when it does not fit.
  const char* join(std::initializer_list<std::string_view> parts) noexcept;

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

/// A section that was copied, decompressed where it has to be.
struct CopiedSection {
  Block bytes;
  Addr address = 0;              ///< as in the file
  const char* unread = nullptr;  ///< why it is without bytes, though there are some; static
};

/// Immutable once made, but for what is read when it is first asked for: from the files again, if they are still the
/// same. Nothing of a file is mapped, and none stays open: whatever happens to the files, what was read stays, and what
/// was not is absent. All functions are thread-safe, signal-safe and call no malloc.
class ModuleFiles {
 public:
  /// `path` is the module's file, in which it begins at `begin`, `loaded` what is in memory, null when unknown: then
  /// the file is believed. Debug files are looked for below `debug_root`. Errors: io, bad_elf, out_of_memory, and
  /// bad_structure when the file is not what is loaded, as after an upgrade while the program runs.
  static Result<Mapped<ModuleFiles>> open(const char* path, const ElfImage* loaded,
                                          const char* debug_root = k_debug_root, std::uint64_t begin = 0) noexcept;

  ModuleFiles() noexcept = default;

  struct ElfFile {
    Mapped<FileParts> parts;
    std::optional<ElfImage> image;  ///< none: there is no such file, or not the same any more
  };
  struct BothFiles {
    ElfFile file;
    ElfFile debug;
  };
  /// Open as long as these live, of which each thread needs its own.
  BothFiles open_again() const noexcept;

  const FileIdentity& identity() const noexcept { return file_.identity; }
  bool has_debug_file() const noexcept { return !debug_.path.empty(); }

  /// By the rule of symbol_index_internal.h over .symtab, of the file or else of its debug file; where there is none,
  /// over the .symtab in .gnu_debugdata together with .dynsym. Null: they cannot be read, the file is gone or there is
  /// no memory.
  const SymbolIndex* symbols() const noexcept;
  /// The name of an address as in the file, by symbols().
  std::optional<FoundSymbol> find_symbol(Addr at, NameReach reach = NameReach::own) const noexcept {
    const SymbolIndex* const index = symbols();
    return index ? index->find(at, reach) : std::nullopt;
  }
  /// .debug_frame of the file or else of its debug file, without bytes when there is none. Null: it cannot be read.
  const CopiedSection* debug_frame() const noexcept;
  /// .eh_frame of the file, likewise.
  const CopiedSection* eh_frame() const noexcept;

 private:
  struct FileName {
    PathBuffer path;  // empty: there is none
    FileIdentity identity{};
    std::uint64_t begin = 0;
  };

  static Result<ElfFile> open_elf(const char* path, std::span<char> real_path = {}, std::uint64_t begin = 0) noexcept;
  static ElfFile open_again(const FileName& name) noexcept;
  void find_debug_file(const ElfImage& image, std::string_view debug_root) noexcept;
  bool accept_debug_file(const ElfImage& image, const char* path, const std::uint32_t* crc) noexcept;

  FileName file_;
  FileName debug_;
  Lazy<SymbolIndex> symbols_;
  Lazy<CopiedSection> debug_frame_;
  Lazy<CopiedSection> eh_frame_;
};

/// A table of symbols, and what of it was decompressed.
struct SymbolData {
  ElfSymbols symbols{};
  Block entries;
  Block strings;
};

/// The image's .symtab, without symbols where there is none. Errors: those of read_section(). Signal-safe.
Result<SymbolData> read_symbols(const ElfImage& image) noexcept;

/// Whether `file` is what is `loaded`: by their build ids; where one has none, by program headers and the first page of
/// every read-only segment, as far as that can be read in memory: a core file leaves out what files have. Pure.
bool is_same_object(const ElfImage& file, const ElfImage& loaded) noexcept;

/// A segment whose first page is the same in the file and in memory.
bool is_read_only(const ElfSegment& segment) noexcept;

}  // namespace jitunwind
