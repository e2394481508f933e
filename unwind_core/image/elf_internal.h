// An ELF object as bytes: program headers, sections, symbols, notes (System V gABI, chapters 4 and 5; LSB 5.0, 10).
// 32 and 64 bit, both byte orders, from a file or from memory of any process. The bytes are untrusted: every offset is
// checked, what does not fit is absent. Maps and decompresses nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/error.h"

namespace jitunwind {

struct ElfSegment {
  std::uint32_t type = 0;   ///< PT_*
  std::uint32_t flags = 0;  ///< PF_*
  std::uint64_t offset = 0;
  Addr address = 0;
  std::uint64_t file_size = 0;
  std::uint64_t memory_size = 0;
  std::uint64_t alignment = 0;

  AddrRange range() const noexcept { return {address, address + memory_size}; }
};

struct ElfSection {
  std::uint32_t name = 0;   ///< offset in the section names
  std::uint32_t type = 0;   ///< SHT_*
  std::uint64_t flags = 0;  ///< SHF_*
  Addr address = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  std::uint64_t alignment = 0;
  std::uint64_t entry_size = 0;

  AddrRange range() const noexcept { return {address, address + size}; }
};

struct ElfSymbol {
  Addr value = 0;
  std::uint64_t size = 0;
  std::uint32_t name = 0;     ///< offset in the table's strings
  std::uint16_t section = 0;  ///< SHN_*, unless it is an index
  std::uint8_t type = 0;      ///< STT_*
  std::uint8_t binding = 0;   ///< STB_*
};

/// A symbol of 24 or 16 bytes.
ElfSymbol read_symbol(ByteReader& from, bool is_64) noexcept;
constexpr std::size_t symbol_size(bool is_64) noexcept { return is_64 ? 24 : 16; }

/// What a dynamic section says (gABI, chapter 5 "Dynamic Section"); 0 where it does not.
struct ElfDynamic {
  Addr symbols = 0;
  Addr strings = 0;
  std::uint64_t strings_size = 0;
  Addr hash = 0;
  Addr gnu_hash = 0;
  Addr relocations = 0;  ///< DT_RELA
  std::uint64_t relocations_size = 0;
  Addr call_relocations = 0;  ///< DT_JMPREL
  std::uint64_t call_relocations_size = 0;
  std::uint64_t call_relocations_kind = 0;  ///< DT_RELA or DT_REL
  std::uint64_t flags = 0;                  ///< DT_FLAGS_1

  /// One entry. False: it was the last.
  bool take(std::uint64_t tag, std::uint64_t value) noexcept;
};

class CopiedParts;
class ElfImage;

/// A symbol table and its strings. Refers to the image's bytes.
class ElfSymbols {
 public:
  ElfSymbols() noexcept = default;

  /// 0 where there is no table.
  std::size_t count() const noexcept { return count_; }
  /// Precondition: index < count().
  ElfSymbol operator[](std::size_t index) const noexcept;
  std::span<const std::byte> strings() const noexcept { return strings_; }
  /// Empty when the offset is outside of the strings or no NUL follows.
  std::string_view name(const ElfSymbol& symbol) const noexcept;
  /// The first bytes of the name's place, at most `size`; a NUL may be among them. O(1).
  std::string_view beginning(const ElfSymbol& symbol, std::size_t size) const noexcept;

 private:
  friend class ElfImage;
  ElfSymbols(std::span<const std::byte> entries, std::span<const std::byte> strings, std::size_t entry_size, bool is_64,
             bool big_endian) noexcept
      : entries_(entries),
        strings_(strings),
        entry_size_(entry_size),
        count_(entries.size() / entry_size),
        is_64_(is_64),
        big_endian_(big_endian) {}

  std::span<const std::byte> entries_{};
  std::span<const std::byte> strings_{};
  std::size_t entry_size_ = 1;
  std::size_t count_ = 0;
  bool is_64_ = false;
  bool big_endian_ = false;
};

/// Plain data that refers to the bytes it was made of. All functions are pure, signal-safe and allocate nothing; but of
/// an image of CopiedParts they copy what they look at, and what cannot be copied is absent.
class ElfImage {
 public:
  /// How the bytes lie.
  enum class Layout : std::uint8_t {
    file,    ///< by file offset
    memory,  ///< as loaded: by address, from the lowest segment's page on; sections are absent
  };

  /// Error bad_elf or truncated: no ELF header, or one of no known class, byte order or version.
  static Result<ElfImage> parse(std::span<const std::byte> file) noexcept;
  /// The parts must outlive the image and what it says.
  static Result<ElfImage> parse(CopiedParts& file) noexcept;
  /// Of the memory of a module from its first to its last byte.
  static Result<ElfImage> parse_loaded(CopiedParts& memory) noexcept;
  /// `memory` reaches from the first to the last byte of a loaded object and may have holes: what is outside of `head`,
  /// the readable bytes that it starts with, and of readable segments is never touched.
  static Result<ElfImage> parse_loaded(std::span<const std::byte> memory, std::size_t head) noexcept;

  bool is_64() const noexcept { return is_64_; }
  bool big_endian() const noexcept { return big_endian_; }
  unsigned machine() const noexcept { return machine_; }  ///< EM_*
  /// Whether it is of that CPU, with its byte order and words.
  bool is_of(const Arch& arch) const noexcept;
  unsigned type() const noexcept { return type_; }  ///< ET_*
  /// Those it was made of; empty of an image of CopiedParts.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Those of CopiedParts; null: it is of other bytes.
  CopiedParts* parts() const noexcept { return parts_; }

  std::size_t segment_count() const noexcept { return segment_count_; }
  /// Precondition: index < segment_count().
  ElfSegment segment(std::size_t index) const noexcept;
  /// Address at run time less that in the file, of an object whose first page is loaded at that of `headers`. Nothing:
  /// no segment holds that page.
  std::optional<Addr> bias_at(Addr headers) const noexcept;
  /// ELF header and program headers as they are in the bytes; empty where they do not follow each other.
  std::span<const std::byte> header_bytes() const noexcept;

  std::size_t section_count() const noexcept { return section_count_; }
  /// Precondition: index < section_count().
  ElfSection section(std::size_t index) const noexcept;
  /// Empty when it is outside of the section names or no NUL follows.
  std::string_view name(const ElfSection& section) const noexcept;
  /// The first of that name. O(sections).
  std::optional<ElfSection> find_section(std::string_view name) const noexcept;
  /// As stored, compressed or not. Empty for SHT_NOBITS and for what reaches behind the end of the bytes.
  std::span<const std::byte> contents(const ElfSection& section) const noexcept;
  /// The section that holds a symbol; none for undefined, absolute and other special symbols, and for SHN_XINDEX.
  std::optional<ElfSection> section_of(const ElfSymbol& symbol) const noexcept;

  /// Bytes of [address, address + size) in one segment that is loaded from the file; empty when it is in none.
  std::span<const std::byte> at_address(Addr address, std::uint64_t size) const noexcept;

  /// Whether they are in one, without a look at them.
  bool has_bytes_at(Addr address, std::uint64_t size) const noexcept { return size <= offsets_from(address).size(); }

  /// The same from `address` to the end of what the file has of its segment.
  std::span<const std::byte> from_address(Addr address) const noexcept;

  /// The first symbol table of this type, SHT_SYMTAB or SHT_DYNSYM, and none where there is none; the symbols of such
  /// bytes.
  std::optional<ElfSection> symbol_section(std::uint32_t type) const noexcept;
  ElfSymbols symbols_of(std::span<const std::byte> entries, std::span<const std::byte> strings) const noexcept;
  /// Both together, of sections that are not compressed; empty when there is none.
  ElfSymbols symbols(std::uint32_t section_type) const noexcept;
  /// Whether there is such a table with symbols in it, which is not looked at.
  bool has_symbols(std::uint32_t section_type) const noexcept;
  /// The dynamic symbols by PT_DYNAMIC, for images without sections. `bias` is subtracted from those pointers that a
  /// dynamic linker has relocated in memory.
  ElfSymbols dynamic_symbols(Addr bias) const noexcept;

  /// The linker's --build-id, a note "GNU" of type NT_GNU_BUILD_ID; empty when there is none.
  std::span<const std::byte> build_id() const noexcept;
  /// Description of the first note of that owner and type in the note sections or segments; empty when there is none.
  std::span<const std::byte> find_note(std::string_view owner, std::uint32_t type) const noexcept;

 private:
  ElfImage() noexcept = default;
  std::span<const std::byte> bytes_at(std::uint64_t offset, std::uint64_t size) const noexcept;
  std::uint64_t size() const noexcept;
  /// `count` entries; empty unless all are there and an entry holds what the class defines.
  std::span<const std::byte> table(std::uint64_t within, std::uint64_t offset, std::size_t count,
                                   std::size_t entry_size, std::size_t least) const noexcept;
  /// Where a segment's bytes are, from `address` on.
  AddrRange offsets_from(Addr address) const noexcept;
  ByteReader reader(std::span<const std::byte> bytes) const noexcept { return {bytes, big_endian_}; }
  std::uint64_t word(ByteReader& r) const noexcept { return r.unsigned_of(is_64_ ? 8 : 4); }
  Status read_header(std::uint64_t head_size) noexcept;
  void read_section_table(std::uint64_t offset, std::size_t count, std::size_t names) noexcept;
  void read_segment_table(std::uint64_t head_size, std::uint64_t offset, std::size_t count) noexcept;
  std::uint64_t hash_count(Addr hash) const noexcept;
  std::uint64_t gnu_hash_count(Addr hash) const noexcept;

  std::span<const std::byte> bytes_{};
  CopiedParts* parts_ = nullptr;  // in place of bytes_
  std::span<const std::byte> segments_{};
  std::span<const std::byte> sections_{};
  std::span<const std::byte> section_names_{};
  std::size_t segment_size_ = 0;
  std::size_t section_size_ = 0;
  std::size_t segment_count_ = 0;
  std::size_t section_count_ = 0;
  std::uint64_t segments_at_ = 0;
  Addr lowest_ = 0;  ///< Layout::memory: address of the first byte
  std::uint16_t machine_ = 0;
  std::uint16_t type_ = 0;
  Layout layout_ = Layout::file;
  bool is_64_ = false;
  bool big_endian_ = false;
};

/// A note of a note section or segment (gABI, chapter 5 "Note Section").
struct ElfNote {
  std::string_view owner{};  ///< without its NUL
  std::uint32_t type = 0;
  std::span<const std::byte> description{};
};

/// The notes of such bytes, one after the other.
class ElfNotes {
 public:
  ElfNotes(std::span<const std::byte> notes, bool big_endian, std::uint64_t alignment) noexcept
      // 8 is used by .note.gnu.property alone (Linux Extensions to gABI); everything else is in words of 4.
      : reader_(notes, big_endian), unit_(alignment == 8 ? 8 : 4) {}
  /// False: there are no more, or what follows is cut off.
  bool next(ElfNote& out) noexcept;

 private:
  std::uint64_t padded(std::uint64_t size) const noexcept { return (size + unit_ - 1) & ~(unit_ - 1); }
  void skip_at_most(std::uint64_t size) noexcept { reader_.skip(std::min<std::uint64_t>(size, reader_.remaining())); }

  ByteReader reader_;
  std::uint64_t unit_;
};

/// Description of the first note of that owner and type in a note section's bytes (gABI, chapter 5 "Note Section").
/// Empty when there is none.
std::span<const std::byte> find_note(std::span<const std::byte> notes, bool big_endian, std::uint64_t alignment,
                                     std::string_view owner, std::uint32_t type) noexcept;

}  // namespace jitunwind
