// An ELF object as bytes: program headers, sections, symbols, notes (System V gABI, chapters 4 and 5; LSB 5.0, 10).
// Both classes (32 and 64 bit) and both byte orders are read, from a file or from the memory of any process. The bytes
// are untrusted: every offset is checked, and items that do not fit are absent. Nothing is mapped or decompressed here.
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

#pragma GCC visibility push(default)
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
  std::uint16_t section = 0;  ///< SHN_* if it is no index
  std::uint8_t type = 0;      ///< STT_*
  std::uint8_t binding = 0;   ///< STB_*
};

/// Reads a symbol of 24 bytes (64 bit) or 16 bytes (32 bit).
ElfSymbol read_symbol(ByteReader& from, bool is_64) noexcept;
constexpr std::size_t symbol_size(bool is_64) noexcept { return is_64 ? 24 : 16; }

/// The entries of a dynamic section (gABI, chapter 5 "Dynamic Section"); a member is 0 when the section lacks it.
struct ElfDynamic {
  Addr symbols = 0;
  Addr strings = 0;
  std::uint64_t strings_size = 0;
  Addr hash = 0;
  Addr gnu_hash = 0;
  Addr relocations = 0;  ///< DT_RELA
  std::uint64_t relocations_size = 0;
  std::uint64_t relative_relocations = 0;  ///< how many of them, the first ones, are of no symbol
  Addr call_relocations = 0;               ///< DT_JMPREL
  std::uint64_t call_relocations_size = 0;
  std::uint64_t call_relocations_kind = 0;  ///< DT_RELA or DT_REL
  std::uint64_t flags = 0;                  ///< DT_FLAGS_1

  /// Takes one entry. Returns false when it was the last one.
  bool take(std::uint64_t tag, std::uint64_t value) noexcept;
};

class CopiedParts;
class ElfImage;

/// A symbol table and its strings. Refers to the image's bytes.
class ElfSymbols {
 public:
  ElfSymbols() noexcept = default;

  /// The count is 0 when there is no table.
  std::size_t count() const noexcept { return count_; }
  /// Precondition: index < count().
  ElfSymbol operator[](std::size_t index) const noexcept;
  std::span<const std::byte> strings() const noexcept { return strings_; }
  /// The name is empty when its offset is outside of the strings or no NUL follows.
  std::string_view name(const ElfSymbol& symbol) const noexcept;
  /// Returns at most `size` bytes from the beginning of the name; a NUL may be among them. O(1).
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

/// Plain data that refers to the bytes it was made of. All functions are pure and signal-safe and allocate nothing. The
/// exception is an image of CopiedParts: its functions copy the bytes that they need, and bytes that cannot be copied
/// are absent.
class ElfImage {
 public:
  /// The order of the bytes.
  enum class Layout : std::uint8_t {
    file,    ///< as in the file, by file offset
    memory,  ///< as loaded: by address, from the page of the lowest segment on; sections are absent
  };

  /// Fails with bad_elf or truncated when there is no ELF header, or when its class, byte order or version is unknown.
  static Result<ElfImage> parse(std::span<const std::byte> file) noexcept;
  /// The parts must outlive the image and everything that it returns.
  static Result<ElfImage> parse(CopiedParts& file) noexcept;
  /// Parses the memory of a module, from its first to its last byte.
  static Result<ElfImage> parse_loaded(CopiedParts& memory) noexcept;
  /// `memory` reaches from the first to the last byte of a loaded object and may have holes. `head` is the number of
  /// readable bytes at its beginning. Bytes that are neither in the head nor in a readable segment are never touched.
  static Result<ElfImage> parse_loaded(std::span<const std::byte> memory, std::size_t head) noexcept;

  bool is_64() const noexcept { return is_64_; }
  bool big_endian() const noexcept { return big_endian_; }
  unsigned machine() const noexcept { return machine_; }  ///< EM_*
  /// Whether the image is for that CPU, with the CPU's byte order and word size.
  bool is_of(const Arch& arch) const noexcept;
  unsigned type() const noexcept { return type_; }  ///< ET_*
  /// The bytes that the image was made of; empty for an image of CopiedParts.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// The CopiedParts that the image was made of; null for an image of other bytes.
  CopiedParts* parts() const noexcept { return parts_; }

  std::size_t segment_count() const noexcept { return segment_count_; }
  /// Precondition: index < segment_count().
  ElfSegment segment(std::size_t index) const noexcept;
  /// The load bias of an object whose first page is loaded at the page of `headers`: run-time address minus address in
  /// the file. There is none when no segment holds that page.
  std::optional<Addr> bias_at(Addr headers) const noexcept;
  /// The ELF header and the program headers as stored; empty when they are not adjacent.
  std::span<const std::byte> header_bytes() const noexcept;

  std::size_t section_count() const noexcept { return section_count_; }
  /// Precondition: index < section_count().
  ElfSection section(std::size_t index) const noexcept;
  /// The offset of that section's header in the bytes. Precondition: the image is of bytes in place.
  std::size_t header_offset(std::size_t index) const noexcept {
    return static_cast<std::size_t>(sections_.data() - bytes_.data()) + index * section_size_;
  }
  /// The name is empty when its offset is outside of the section names or no NUL follows.
  std::string_view name(const ElfSection& section) const noexcept;
  /// Finds the first section of that name. O(sections).
  std::optional<ElfSection> find_section(std::string_view name) const noexcept;
  /// The bytes as stored, compressed or not. They are empty for SHT_NOBITS and when the section reaches behind the end
  /// of the image.
  std::span<const std::byte> contents(const ElfSection& section) const noexcept;
  /// The section that holds a symbol. Undefined, absolute and other special symbols have none, nor does SHN_XINDEX.
  std::optional<ElfSection> section_of(const ElfSymbol& symbol) const noexcept;

  /// The bytes of [address, address + size) in one segment that is loaded from the file; empty when no segment holds
  /// them all.
  std::span<const std::byte> at_address(Addr address, std::uint64_t size) const noexcept;

  /// Whether one segment holds these bytes. The bytes are not read.
  bool has_bytes_at(Addr address, std::uint64_t size) const noexcept { return size <= offsets_from(address).size(); }

  /// The bytes from `address` to the end of the segment's part in the file; empty when no segment holds `address`.
  std::span<const std::byte> from_address(Addr address) const noexcept;

  /// The first symbol table of this type, SHT_SYMTAB or SHT_DYNSYM, if there is one. symbols_of() reads the symbols of
  /// such bytes.
  std::optional<ElfSection> symbol_section(std::uint32_t type) const noexcept;
  ElfSymbols symbols_of(std::span<const std::byte> entries, std::span<const std::byte> strings) const noexcept;
  /// Combines both, for sections that are not compressed. The table is empty when there is none.
  ElfSymbols symbols(std::uint32_t section_type) const noexcept;
  /// Whether there is such a table with symbols. The symbols are not read.
  bool has_symbols(std::uint32_t section_type) const noexcept;
  /// The dynamic symbols by PT_DYNAMIC, for images without sections. `bias` is subtracted from those pointers that a
  /// dynamic linker has relocated in memory.
  ElfSymbols dynamic_symbols(Addr bias) const noexcept;

  /// The build ID (--build-id of the linker): a note of owner "GNU" and type NT_GNU_BUILD_ID. It is empty when there is
  /// none.
  std::span<const std::byte> build_id() const noexcept;
  /// The description of the first note of that owner and type in the note sections or segments; empty when there is
  /// none.
  std::span<const std::byte> find_note(std::string_view owner, std::uint32_t type) const noexcept;

 private:
  ElfImage() noexcept = default;
  std::span<const std::byte> bytes_at(std::uint64_t offset, std::uint64_t size) const noexcept;
  std::uint64_t size() const noexcept;
  /// Returns `count` entries. The result is empty when not all are there, or when an entry is shorter than its class
  /// defines.
  std::span<const std::byte> table(std::uint64_t within, std::uint64_t offset, std::size_t count,
                                   std::size_t entry_size, std::size_t least) const noexcept;
  /// The offsets of a segment's bytes, from `address` on.
  AddrRange offsets_from(Addr address) const noexcept;
  ByteReader reader(std::span<const std::byte> bytes) const noexcept { return {bytes, big_endian_}; }
  std::uint64_t word(ByteReader& r) const noexcept { return r.unsigned_of(is_64_ ? 8 : 4); }
  Status read_header(std::uint64_t head_size) noexcept;
  void read_section_table(std::uint64_t offset, std::size_t count, std::size_t names) noexcept;
  void read_segment_table(std::uint64_t head_size, std::uint64_t offset, std::size_t count) noexcept;
  std::uint64_t hash_count(Addr hash) const noexcept;
  std::uint64_t gnu_hash_count(Addr hash) const noexcept;

  std::span<const std::byte> bytes_{};
  CopiedParts* parts_ = nullptr;  // replaces bytes_ when it is set
  std::span<const std::byte> segments_{};
  std::span<const std::byte> sections_{};
  std::span<const std::byte> section_names_{};
  std::size_t segment_size_ = 0;
  std::size_t section_size_ = 0;
  std::size_t segment_count_ = 0;
  std::size_t section_count_ = 0;
  std::uint64_t segments_at_ = 0;
  Addr lowest_ = 0;  ///< address of the first byte, for Layout::memory
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

/// Iterates over the notes in such bytes.
class ElfNotes {
 public:
  ElfNotes(std::span<const std::byte> notes, bool big_endian, std::uint64_t alignment) noexcept
      // Only .note.gnu.property uses 8 (Linux Extensions to gABI); all other notes are in words of 4 bytes.
      : reader_(notes, big_endian), unit_(alignment == 8 ? 8 : 4) {}
  /// Returns false when there are no more notes, or when the next one is truncated.
  bool next(ElfNote& out) noexcept;

 private:
  std::uint64_t padded(std::uint64_t size) const noexcept { return (size + unit_ - 1) & ~(unit_ - 1); }
  void skip_at_most(std::uint64_t size) noexcept { reader_.skip(std::min<std::uint64_t>(size, reader_.remaining())); }

  ByteReader reader_;
  std::uint64_t unit_;
};

/// The description of the first note of that owner and type in a note section's bytes (gABI, chapter 5 "Note Section");
/// empty when there is none.
std::span<const std::byte> find_note(std::span<const std::byte> notes, bool big_endian, std::uint64_t alignment,
                                     std::string_view owner, std::uint32_t type) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
