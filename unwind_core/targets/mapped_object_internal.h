// One loaded ELF object of a target, read from its memory: its data are copied once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/heap_internal.h"
#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/module.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"

namespace jitunwind {

/// Copied bytes of a target that stay. A small number is on the heap, whose pages the next target reuses; a large
/// number has a mapping of its own, which is released.
class CopiedBytes {
 public:
  CopiedBytes() noexcept = default;
  /// Makes bytes that are not initialised. Empty: there is no memory.
  static CopiedBytes room_for(std::size_t size) noexcept {
    constexpr std::size_t k_few = std::size_t{64} << 10;
    CopiedBytes room;
    if (size > k_few) {
      room.many_ = KeptBlock::whole(size);
    } else if (size != 0) {
      room.few_.reset(static_cast<std::byte*>(allocate(size)));
      room.count_ = room.few_ ? size : 0;
    }
    return room;
  }

  std::span<std::byte> bytes() const noexcept { return few_ ? std::span(few_.get(), count_) : many_.bytes(); }
  /// Precondition: there are as many. False, and nothing changes: the rest cannot be released.
  bool keep_first(std::size_t count) noexcept {
    if (!few_) return count != 0 && many_.resize(count);
    count_ = count;
    return true;
  }

 private:
  HeapArray<std::byte> few_;
  std::size_t count_ = 0;  // number of bytes on the heap
  KeptBlock many_;
};

/// Has room for all of a section, and copies requested parts, in pieces of several pages: a walk needs some entries of
/// the thousands that an object has. Used by one thread at a time.
class CopiedEntries {
 public:
  CopiedEntries() noexcept = default;
  ~CopiedEntries();
  CopiedEntries(const CopiedEntries&) = delete;
  CopiedEntries& operator=(const CopiedEntries&) = delete;

  /// `memory` must outlive this object. False: there is no room for the section, and there are no bytes.
  bool make(const Memory& memory, AddrRange section) noexcept;

  /// Copies the FDE at `fde` and its CIE as far as they lie in the section, and returns the CIE's address. 0: the FDE
  /// lies elsewhere. None: they cannot be read.
  std::optional<Addr> copy_fde(Addr fde, bool big_endian) noexcept;
  /// Copies a CIE as far as it lies in the section. False: it cannot be read.
  bool copy_cie(Addr cie, bool big_endian) noexcept;
  /// The section. Parts that were not copied hold no valid entry.
  SectionBytes section() const noexcept;
  bool contains(Addr at) const noexcept { return section_.contains(at); }

 private:
  static constexpr std::size_t k_at_once = 4;  // pages; other entries are near, but a CIE is alone

  bool copy(AddrRange part, std::size_t most) noexcept;
  bool copy_page(std::size_t number, std::size_t most, AddrRange needed) noexcept;
  bool copy_entry(Addr at, std::size_t pages, bool big_endian, std::uint32_t& second_word) noexcept;
  std::size_t read(AddrRange part) noexcept;

  const Memory* memory_ = nullptr;
  AddrRange section_{};
  Addr begin_ = 0;  // start of the page in which the section begins
  Block bytes_;
  std::vector<bool> is_there_;    // by page
  std::vector<bool> is_written_;  // by page: may have bytes other than zeros
};

class MappedObject {
 public:
  /// Makes the object whose headers `first` begins with, if it begins there. Null: there is no ELF object of this CPU.
  /// `memory` must outlive it. `version`: its identity among others, not 0.
  static std::unique_ptr<MappedObject> make(const Memory& memory, const Arch& arch, const Mapping& first,
                                            std::uint64_t version);

  /// Whether one of its segments is loaded at `at`. Precondition: `around` contains `at`. `around` is cut to addresses
  /// with the same answer.
  bool covers(Addr at, AddrRange& around) const noexcept;
  /// Whether `mapping` has at `at` the bytes of a segment: that part of the same file, or memory that is in no file.
  bool is_mapped_by(const Mapping& mapping, Addr at) const noexcept;
  /// False: the mappings show that `first` is a later segment of the object, since that, too, has the file's first
  /// page.
  bool begins_at_first(const Mappings& mappings) const noexcept;
  /// Whether a segment that is loaded at `at` may be executed.
  bool has_code(Addr at) const noexcept;
  /// Precondition: it covers `at`. The results refer to this object.
  void read_module(Addr at, Module& out) noexcept;

  Addr load_bias() const noexcept { return bias_; }
  const Mapping& first() const noexcept { return first_; }
  /// Its identity among all objects that its finder has found: ModuleVersion::version.
  std::uint64_t version() const noexcept { return version_; }
  /// ELF header and program headers; the image has no other valid part.
  const ElfImage& headers() const noexcept { return head_ ? *head_ : *image_; }
  /// The whole image. Parts that are read are copied, and stay. Null: there is no memory for them.
  const ElfImage* image() noexcept;
  struct Note {
    std::span<const std::byte> description{};  ///< empty: there is no such note
    Addr at = 0;
  };
  /// Searches the first bytes of a segment of notes, as many as `room` has; they are copied to it.
  Note find_note(std::string_view owner, std::uint32_t type, std::span<std::byte> room) const noexcept;
  /// Null: there are none, or they are not of this object. They are opened at the first request.
  const ModuleFiles* files(const TargetFiles& from) noexcept;

  /// The object is the program with which the process was started, not a library.
  bool is_program() const noexcept;
  /// The address of a variable that the object defines and exports; 0: it has none of that name.
  Addr find_exported(std::string_view variable) const noexcept;
  /// The address of a variable by the symbols of its files, which include those that are not exported. Reads all of
  /// them.
  Addr find_in_files(std::string_view variable, const TargetFiles& from) noexcept;

 private:
  struct Segment {
    AddrRange range{};
    std::uint64_t offset = 0;  // distance from the headers in the file
    bool executable = false;
    bool is_of_file = false;
  };
  static AddrRange pages_of(const Segment& s) noexcept;
  struct Fit {
    std::size_t mapped = 0;         // number of segments that are in their places
    std::size_t as_executable = 0;  // of these, those with the right permission to execute
    friend auto operator<=>(const Fit&, const Fit&) = default;
  };
  Fit fit_at(Addr bias, const Mappings& mappings) const noexcept;
  bool has_offset(const Mapping& mapping, Addr at, std::uint64_t offset) const noexcept {
    return mapping.same_file(first_) && mapping.offset + (at - mapping.range.begin) == first_.offset + offset;
  }

  MappedObject(const Memory& memory, const Arch& arch, const Mapping& first, std::uint64_t version)
      : memory_(memory), arch_(arch), first_(first), version_(version) {}
  bool read_headers();
  struct Names {
    bool has_own = false, has_needed = false;
  };
  Names names_in(Addr dynamic) const noexcept;
  void copy_table() noexcept;
  void copy_entries_of(Addr at, Module& out) noexcept;
  CopiedEntries* entries_around(Addr entry) noexcept;
  void copy_exidx() noexcept;
  CopiedBytes copy(AddrRange range) const noexcept;

  const Memory& memory_;
  const Arch& arch_;
  Mapping first_;
  std::uint64_t version_;
  std::vector<std::byte> head_bytes_;
  std::optional<ElfImage> head_;  // headers of these; empty: they are not on the first page, and image_ has them
  std::unique_ptr<MemoryParts> parts_;
  std::optional<ElfImage> image_;
  AddrRange range_{};
  Addr bias_ = 0;
  std::vector<Segment> segments_;
  AddrRange eh_frame_hdr_at_{};  // by its segment; begin 0: there is none
  bool has_table_ = false;       // copy_table() was called
  CopiedBytes eh_frame_hdr_;
  SectionBytes eh_frame_hdr_bytes_{};
  FdeTable table_{};                             // count 0: there is none, and all of .eh_frame is in eh_frame_
  CopiedEntries entries_;                        // from .eh_frame on to the end of its segment
  std::map<Addr, CopiedEntries> other_entries_;  // those of entries elsewhere, by the start of their segments
  CopiedBytes eh_frame_;
  SectionBytes eh_frame_bytes_{};
  AddrRange exidx_at_{};    // empty: there is none
  bool has_exidx_ = false;  // copy_exidx() was called
  CopiedBytes exidx_;
  Mapped<ModuleFiles> files_;
  bool has_looked_for_files_ = false;
};

}  // namespace jitunwind
