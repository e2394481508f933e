// The files that tell more of a loaded module than its memory does: its own file, its separate debug file, and the
// little debug file inside the former (.gnu_debugdata).
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
#include "jitunwind/unwind_core/image/symbol_index_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The usual folder of separate debug files (GDB manual, "Separate Debug Files"), of Debian and others.
inline constexpr const char* k_debug_root = "/usr/lib/debug";

/// A path in a mapping of its own. Two such buffers on the stack would take 8 KiB in a signal handler.
class PathBuffer {
 public:
  PathBuffer() noexcept = default;
  /// The buffer is empty when mmap refuses.
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
  /// Returns null when the joined path does not fit.
  const char* join(std::initializer_list<std::string_view> parts) noexcept;

 private:
  Block memory_;
};

/// The path of a build ID's debug file below the folder of debug files: "xx/yyyy".
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

inline constexpr const char* k_no_room = "section of a file, where those of others take all the room";

/// A copied section, decompressed if necessary.
struct CopiedSection {
  KeptBlock bytes;
  Addr address = 0;              ///< as in the file
  const char* unread = nullptr;  ///< why a section that has bytes is empty here; static
};

/// Immutable once made, except for sections and symbols, which are read when they are first asked for. The files are
/// then opened again, and read only if they are unchanged. No file is mapped or stays open. Parts that were read stay
/// valid whatever happens to the files; the other parts of a changed file are absent. All functions are thread-safe and
/// signal-safe and call no malloc.
class ModuleFiles {
 public:
  /// `file` names the module's file, in which the module begins at `begin`. `loaded` is the module in memory; when it
  /// is null the file is trusted. Debug files are searched below `debug_root`. The roots of both must outlive the
  /// result. Errors: io, bad_elf, out_of_memory, and bad_structure when the file is not the loaded one, as after an
  /// upgrade while the program runs.
  static Result<Mapped<ModuleFiles>> open(const FilePath& file, const ElfImage* loaded,
                                          const FilePath& debug_root = k_debug_root, std::uint64_t begin = 0) noexcept;

  ModuleFiles() noexcept = default;

  struct ElfFile {
    Mapped<FileParts> parts;
    std::optional<ElfImage> image;  ///< empty when there is no such file, or it has changed
  };
  struct BothFiles {
    ElfFile file;
    ElfFile debug;
  };
  /// Opens the files for as long as the result lives. Each thread needs its own result.
  BothFiles open_again() const noexcept;

  const FileIdentity& identity() const noexcept { return file_.identity; }
  bool has_debug_file() const noexcept { return !debug_.path.empty(); }

  /// The symbols by the rule of symbol_index_internal.h. They come from the .symtab of the file, or else of its debug
  /// file, or else from the .symtab in .gnu_debugdata together with .dynsym. Returns null when they cannot be read, the
  /// file is gone, or there is no memory.
  const SymbolIndex* symbols() const noexcept;
  /// Finds the name of an address by symbols(). `at` is an address as in the file.
  std::optional<FoundSymbol> find_symbol(Addr at, NameReach reach = NameReach::own) const noexcept {
    const SymbolIndex* const index = symbols();
    return index ? index->find(at, reach) : std::nullopt;
  }
  /// The .debug_frame of the file, or else of its debug file. It has no bytes when neither file has one. Returns null
  /// when it cannot be read.
  const CopiedSection* debug_frame() const noexcept;
  /// The .eh_frame of the file. It has no bytes when the file has none. Returns null when it cannot be read.
  const CopiedSection* eh_frame() const noexcept;

 private:
  struct FileName {
    PathBuffer path;  // empty when there is no file
    const char* root = "";
    FileIdentity identity{};
    std::uint64_t begin = 0;
  };

  static Result<ElfFile> open_elf(const FilePath& path, std::span<char> real_path = {},
                                  std::uint64_t begin = 0) noexcept;
  static ElfFile open_again(const FileName& name) noexcept;
  void find_debug_file(const ElfImage& image, const FilePath& debug_root) noexcept;
  bool accept_debug_file(const ElfImage& image, const FilePath& path, const std::uint32_t* crc) noexcept;

  FileName file_;
  FileName debug_;
  Lazy<SymbolIndex> symbols_;
  Lazy<CopiedSection> debug_frame_;
  Lazy<CopiedSection> eh_frame_;
};

/// A symbol table with its decompressed bytes.
struct SymbolData {
  ElfSymbols symbols{};
  Block entries;
  Block strings;
};

/// Reads the image's .symtab. The result has no symbols when there is none. Errors: those of read_section().
/// Signal-safe.
Result<SymbolData> read_symbols(const ElfImage& image) noexcept;

/// Whether `file` is the object that is `loaded`. Their build IDs decide. If one has none, the program headers and the
/// first page of every read-only segment decide. Pages that cannot be read in memory are not compared, because a core
/// file leaves out pages that the files have. Pure.
bool is_same_object(const ElfImage& file, const ElfImage& loaded) noexcept;

/// Whether the segment's first page is the same in the file and in memory.
bool is_read_only(const ElfSegment& segment) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
