// A file that a JIT made for code in memory and gave to a debugger (GDB's list): names and call frame information of
// the code. It is an ELF file, or an entry of Erlang's (erlang_entry.h), which has names alone.
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

/// ELF files are linked or not (ET_REL). The addresses of the code sections say where the code is in either case, as
/// GDB assumes. Symbols and call frame information of files that are not linked are relative to these sections, and
/// relocations are applied (gABI, chapter 4 "Relocation"). Only a copy of the file is read, and never the code. Entries
/// of call frame information that are for other code, or that cannot be read, are left out. Immutable once made, except
/// for find_line().
class JitObject {
 public:
  /// Larger files are refused.
  static constexpr std::size_t k_largest = std::size_t{1} << 28;

  /// Takes ownership of the file. Errors: bad_elf, truncated, bad_structure (another CPU, or an ELF file without code).
  /// O(bytes), except for sorting; throws std::bad_alloc.
  static Result<JitObject> read(std::vector<std::byte> file, const Arch& arch);
  JitObject(JitObject&&) noexcept;
  JitObject& operator=(JitObject&&) noexcept;
  ~JitObject();

  /// The code sections by their addresses in memory, ascending; they may overlap.
  std::span<const AddrRange> code() const noexcept;
  /// The file, with the changes that linking made. Sections that it had compressed are behind its end.
  std::span<const std::byte> bytes() const noexcept;

  /// Finds rows and names as RowSource and NameSource do. Rows refer to this object. Signal-safe.
  Found find_row(Addr at, FrameRow& out) const noexcept;
  Found find_procedure(Addr at, ProcedureInfo& out) const noexcept;
  Found find_name(Addr at, std::span<char> into, ProcedureName& out) const noexcept;
  /// Finds a line in .debug_line, which the first call reads. Throws std::bad_alloc; not thread-safe.
  std::optional<SourceLine> find_line(Addr at) const;

  /// A piece of code that has a description, a name, or both.
  struct Procedure {
    AddrRange code{};
    std::string name{};              ///< "": none
    std::optional<std::size_t> fde;  ///< offset in Procedures::frames; none: it has a name alone
    SourceLines lines{};             ///< those that the file has
  };
  /// The procedures that are registered for a file.
  struct Procedures {
    std::vector<Procedure> all{};     ///< those with call frame information first, each kind ascending
    std::vector<std::byte> frames{};  ///< their .eh_frame, with absolute pointers
  };
  /// Rewrites everything that the file says, so that wrong entries are found now. The procedures have no personality
  /// routine, because a file that is not linked does not say where it is. Throws std::bad_alloc.
  Procedures procedures() const;

 private:
  struct Parts;
  explicit JitObject(std::unique_ptr<Parts> parts) noexcept;

  std::unique_ptr<Parts> parts_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
