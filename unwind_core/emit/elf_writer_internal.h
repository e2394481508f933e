// Parts of an ELF file -> bytes (System V gABI, chapters 4 and 5), in the class and byte order of a CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/emit/byte_writer.h"
#include "jitunwind/unwind_core/image/elf_internal.h"

namespace jitunwind {

/// The sizes of the parts in bytes.
struct ElfSizes {
  std::size_t header, program_header, section_header, symbol, dynamic;
  explicit ElfSizes(const Arch& arch) noexcept;
};

/// The file header's fields that differ between files. Counts are 0 where there is no table.
struct ElfHead {
  std::uint16_t type = 0;  ///< ET_*
  std::uint64_t segments_at = 0;
  std::size_t segments = 0;
  std::uint64_t sections_at = 0;
  std::size_t sections = 0;  ///< the last one has the sections' names
};

class ElfWriter {
 public:
  ElfWriter(const Arch& arch, std::span<std::byte> into) noexcept
      : arch_(arch), sizes_(arch), out_(into, arch.big_endian) {}

  void head(const ElfHead& head) noexcept;
  void segment(const ElfSegment& segment) noexcept;
  void section(const ElfSection& section) noexcept;
  void symbol(const ElfSymbol& symbol) noexcept;
  void dynamic(std::uint64_t tag, std::uint64_t value) noexcept { word(tag), word(value); }
  void text(std::string_view text) noexcept { out_.bytes(std::as_bytes(std::span(text))); }
  /// Everything else: numbers, bytes, padding.
  ByteWriter& out() noexcept { return out_; }

 private:
  bool has_wide_words() const noexcept { return arch_.word_size == 8; }
  void word(std::uint64_t value) noexcept { out_.unsigned_of(value, arch_.word_size); }

  const Arch& arch_;
  const ElfSizes sizes_;
  ByteWriter out_;
};

}  // namespace jitunwind
