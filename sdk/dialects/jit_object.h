// A file that a JIT made of code in memory and gave to a debugger (GDB's list): names of the code, and its call frame
// information. It is an ELF file, or an entry of Erlang's (erlang_entry.h), which has names alone.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/row_source.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// ELF files are linked or not (ET_REL); of either kind the sections of code say by their addresses where the code is,
/// as GDB takes it. Symbols and call frame information of files that are not linked count from there, and relocations
/// are applied (gABI, chapter 4 "Relocation"). Only a copy of the file is read, and never the code. Call frame
/// information of other code than the file's own sections of code is left out, and so are entries that cannot be read.
/// Immutable once made, but for find_line().
class JitObject {
 public:
  /// Larger files are refused.
  static constexpr std::size_t k_largest = std::size_t{1} << 28;

  /// Takes the file over. Errors: bad_elf, truncated, bad_structure (of another CPU, or an ELF file without code).
  /// O(bytes), but for sorting; throws std::bad_alloc.
  static Result<JitObject> read(std::vector<std::byte> file, const Arch& arch);
  JitObject(JitObject&&) noexcept;
  JitObject& operator=(JitObject&&) noexcept;
  ~JitObject();

  /// The sections of code, as they are in memory: ascending; they may overlap.
  std::span<const AddrRange> code() const noexcept;
  /// The file, changed as far as it was linked.
  std::span<const std::byte> bytes() const noexcept;

  /// As RowSource and NameSource do it. Rows refer to this object. Signal-safe.
  Found find_row(Addr at, FrameRow& out) const noexcept;
  Found find_procedure(Addr at, ProcedureInfo& out) const noexcept;
  Found find_name(Addr at, std::span<char> into, ProcedureName& out) const noexcept;
  /// By .debug_line, which is read when this is first called. Throws std::bad_alloc; not thread-safe.
  std::optional<SourceLine> find_line(Addr at) const;

  /// A piece of code that is described, or has a name, or both.
  struct Procedure {
    AddrRange code{};
    std::string name{};              ///< "": none
    std::optional<std::size_t> fde;  ///< where in Procedures::frames; none: it has a name alone
    SourceLines lines{};             ///< as far as they are told
  };
  /// What is registered of a file.
  struct Procedures {
    std::vector<Procedure> all{};     ///< those with call frame information first, each kind ascending
    std::vector<std::byte> frames{};  ///< their .eh_frame, whose pointers are absolute
  };
  /// All that the file says, written anew: what is wrong in an entry is found now. Such procedures have no personality
  /// routine, since a file that is not linked does not say where it is. Throws std::bad_alloc.
  Procedures procedures() const;

 private:
  struct Parts;
  explicit JitObject(std::unique_ptr<Parts> parts) noexcept;

  std::unique_ptr<Parts> parts_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
