// The files that tell more of a loaded module than its memory does: its own, its separate debug file, and the little
// debug file within it (.gnu_debugdata).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "unwind_core/image/decompress_p.h"
#include "unwind_core/image/elf_p.h"
#include "unwind_core/image/mapped_p.h"
#include "unwind_core/image/symbol_index_p.h"

namespace jitunwind {

/// Where Debian and everybody else keeps separate debug files (GDB manual, "Separate Debug Files").
inline constexpr const char* k_debug_root = "/usr/lib/debug";

/// Immutable once made, but for what is decompressed and sorted when it is first asked for. All functions are
/// thread-safe, signal-safe and call no malloc.
class ModuleFiles {
 public:
  /// `path` is the module's file, `loaded` what is in memory, null when unknown: then the file is believed. Debug files
  /// are looked for below `debug_root`. Errors: io, bad_elf, out_of_memory, and bad_structure when the file is not what
  /// is loaded, as after an upgrade while the program runs.
  static Result<Mapped<ModuleFiles>> open(const char* path, const ElfImage* loaded,
                                          const char* debug_root = k_debug_root) noexcept;

  ModuleFiles() noexcept = default;

  const ElfImage& image() const noexcept { return *file_.image; }
  const FileIdentity& identity() const noexcept { return file_.map.identity(); }
  /// Null when there is no separate debug file.
  const ElfImage* debug_image() const noexcept { return debug_.image ? &*debug_.image : nullptr; }

  /// The name of an address as in the file, by the rule of symbol_index_p.h over .symtab, of the file or else of its
  /// debug file; where there is none, over the .symtab in .gnu_debugdata together with .dynsym.
  std::optional<FoundSymbol> find_symbol(Addr at, NameReach reach = NameReach::own) const noexcept;
  /// .debug_frame of the file or else of its debug file, decompressed; empty when there is none.
  std::span<const std::byte> debug_frame() const noexcept;

 private:
  struct ElfFile {
    MappedFile map;
    std::optional<ElfImage> image;
  };
  struct LittleDebugFile {
    Block bytes;
    std::optional<ElfImage> image;
  };
  using SymbolTables = std::array<SymbolTable, SymbolIndex::k_most_tables>;

  static Result<ElfFile> open_elf(const char* path, std::span<char> real_path = {}) noexcept;
  void find_debug_file(std::string_view real_path, std::string_view debug_root) noexcept;
  bool accept_debug_file(const char* path, const std::uint32_t* crc) noexcept;
  const ElfImage* little_debug_image() const noexcept;
  SymbolTables symbol_tables() const noexcept;

  ElfFile file_;
  ElfFile debug_;
  Lazy<LittleDebugFile> little_;
  Lazy<SymbolIndex> symbols_;
  Lazy<SectionData> debug_frame_;
};

/// Whether `file` is what is `loaded`: by their build ids; where one has none, by program headers and the first page of
/// every read-only segment. Pure.
bool is_same_object(const ElfImage& file, const ElfImage& loaded) noexcept;

}  // namespace jitunwind
