// The file of a code segment: the ELF file of a library whose tables have room, and of which every address is also the
// offset in the file; or the file of pages that are laid over code which stays where it is, below the tables.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {

/// The places of the parts, as offsets in the file.
struct SegmentLayout {
  /// `functions`: how many the tables have room for. Precondition: can_be_written().
  SegmentLayout(const Arch& arch, std::size_t text_bytes, std::size_t functions,
                std::size_t page_bytes = k_largest_page_size) noexcept;
  /// The text is pages of a process, and the tables will lie behind it, by this many bytes from its begin. Readers take
  /// the lowest part of a file for the one with the file's first address. If that were the tables, other mappings might
  /// lie between these and the text, and elfutils then takes the text for a module of its own.
  void place_tables_behind(std::size_t distance) noexcept { is_laid_over = true, tables = distance, text_address = 0; }

  /// The tables are changed by stores that readers see whole, of 8 bytes in this machine's byte order.
  static bool can_be_written(const Arch& arch) noexcept { return arch.word_size == 8 && !arch.big_endian; }

  std::size_t functions;
  std::size_t section_names, notes, hash, symbols, strings, search_table, frames, text, dynamic, end;
  std::size_t text_bytes, strings_bytes, frames_bytes;
  std::size_t page_bytes;
  bool is_laid_over = false;
  // Addresses in the file, of its first byte and of the text.
  std::size_t tables = 0, text_address;

  std::size_t address(std::size_t offset) const noexcept {
    return offset < text || offset >= text + text_bytes ? tables + offset : text_address + (offset - text);
  }

  /// The address behind the text, where no code is. FDEs of no code begin there: readers that keep one entry for each
  /// address (gdb, libdw) would take one at a function's begin for the function's.
  std::size_t text_end() const noexcept { return text_address + text_bytes; }

  std::size_t symbols_bytes(std::size_t count) const noexcept { return (1 + count) * sizeof(Elf64_Sym); }
  /// A number that changes with the tables, in the file's first 4 KiB: readers keep what they have read of a file by
  /// them. No two segments have the same words before it.
  std::size_t generation() const noexcept;
  // The sizes in the headers of these sections, which grow. A word of 0, which is not counted, follows .eh_frame.
  std::size_t symbols_size() const noexcept;
  std::size_t frames_size() const noexcept;
  /// Debuggers look for code in the file that has a section there. They read it once, so it covers no code to come.
  std::size_t text_size() const noexcept;
  /// Word 1 of DT_HASH: the number of symbols.
  std::size_t symbol_count() const noexcept { return hash + sizeof(Elf32_Word); }
  std::size_t frame_count() const noexcept { return search_table + 8; }
  /// The entry of a function in the table for searches, which is aligned to its 8 bytes.
  std::size_t search_entry(std::size_t function) const noexcept { return search_table + 12 + 8 * function; }
  std::size_t symbol(std::size_t function) const noexcept { return symbols + symbols_bytes(function); }

  // The first entries of .eh_frame are those of no code; each function has their FDE until it has one of its own.

  std::size_t no_frame = 0;
  std::size_t first_frame = 0;  ///< where those of functions begin
};

inline constexpr std::uint16_t k_text_section = 6;
/// The first word of a symbol that is none: without name, section and type. Local symbols precede all others (gABI,
/// chapter 4 "Symbol Table"), so it is global; dladdr() would take its address for that of a function if it were not
/// hidden.
inline constexpr std::uint64_t k_no_symbol =
    std::uint64_t{ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE)} << 32 | std::uint64_t{STV_HIDDEN} << 40;
// The least room for a function in the tables. They have so much for each: call frame information of two entries, and a
// name.
inline constexpr std::size_t k_frames_of_function = 112, k_name_of_function = 48;
inline constexpr std::size_t k_frames_end = sizeof(std::uint32_t);
// Parts of an FDE with absolute or relative words (LSB 5.0 core, 10.6.1.2).
inline constexpr std::size_t k_fde_begin = 8, k_fde_range = 16, k_fde_instructions = 25;  // without augmentation

/// Writes the file without any function. `into` has layout.end zeroed bytes. Sets layout.no_frame and first_frame.
void write_segment_file(SegmentLayout& layout, const Arch& arch, std::span<std::byte> into) noexcept;

/// Changes the headers, which are the first layout.hash bytes. A build-id consists of the words of the note before it,
/// which name one content of one file.
void set_build_id(const SegmentLayout& layout, bool has_one, std::span<std::byte> headers) noexcept;

}  // namespace jitunwind
