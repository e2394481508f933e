// Code that a target's JITs report to debuggers: GDB's list, read from the target's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "jitunwind/dyn_info/list_index_internal.h"
#include "jitunwind/sdk/dialects/gdb_list.h"
#include "jitunwind/sdk/dialects/jit_object.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/targets/mapped_modules.h"

namespace jitunwind {

/// Finds code outside modules in the files of GDB's lists; each program and library of the target may have a list. If
/// several files have the code, the first one in the lists counts, because engines put new files in front. Files that
/// cannot be read, or whose code is not mapped, are ignored. The lists are first read when somebody asks about code
/// outside modules. No more than 256 MiB of files are read. Used by one thread at a time.
class JitCode final : public RowSource, public NameSource {
 public:
  /// `memory` always shows the target's present memory. All arguments must outlive this.
  JitCode(const Memory& memory, const Arch& arch, const MappedModules& modules, const Mappings& mappings,
          const TargetFiles& files) noexcept
      : memory_(memory), arch_(arch), modules_(modules), mappings_(mappings), files_(files) {}

  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override;
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override;
  bool was_told_of(Addr at) const noexcept override;
  /// Finds the source line of code, if the files have it.
  std::optional<SourceLine> find_line(Addr at) const;

  /// Appends the code that the files have call frame information for.
  void append_described_code(std::vector<AddrRange>& out) const;

  /// Reads the lists while the target runs, so that less must be read when it is stopped. renew() must follow then.
  void look_ahead() noexcept { look(); }
  /// Reads new files now, because the target is about to run and its memory will change. A file that was known before
  /// is used later only if it is unchanged at the next query.
  void let_run() noexcept;
  /// Reads the lists, new files, and files that were asked about, after the target has run and was stopped again. Other
  /// files are read when they are asked about. `changed` gets the code of files that were added, changed or removed.
  /// Returns false if the changes are not known.
  bool renew(bool is_mapped_as_before, std::vector<AddrRange>& changed) noexcept;
  /// Forgets everything: the process may run another program by now.
  void forget() noexcept;

 private:
  struct File {
    GdbListEntry where;
    std::uint64_t hash = 0;  // of the bytes as they were read
    std::optional<JitObject> object;
    bool is_checked = false;  ///< compared with the target's memory since the last look
    bool was_asked = false;   ///< rows of it may be kept
    bool is_taken = false;
    /// An object has more bytes than its file where sections of it are compressed.
    std::uint64_t bytes_held() const noexcept { return object ? object->bytes().size() : where.size; }
  };

  const JitObject* object_at(Lookup& lookup) const noexcept;
  const JitObject* object_at(Addr at) const noexcept;
  /// Returns false if only files are mapped executable: there is no code outside modules, and no list is looked for.
  bool may_have_code() const noexcept;
  void look() const noexcept;
  void give_up() const noexcept;
  void read_lists() const;
  void find_descriptors() const;
  void add_file(const GdbListEntry& where, std::vector<File>& old, std::uint64_t& room) const;
  std::vector<std::byte> read_file(const GdbListEntry& where) const;
  bool check(File& file) const;
  void note_changed(const File& file) const;
  static std::vector<Addr> entries_of(const std::vector<File>& files);
  void make_index() const;

  const Memory& memory_;
  const Arch& arch_;
  const MappedModules& modules_;
  const Mappings& mappings_;
  const TargetFiles& files_;
  mutable std::vector<Addr> descriptors_;
  mutable std::vector<File> all_;
  mutable ListIndex index_;
  mutable std::vector<AddrRange> changed_;  // code of files that the look before did not have, or that are gone
  mutable bool has_looked_ = false;
  mutable bool has_descriptors_ = false;
  mutable bool all_are_checked_ = true;
  mutable bool has_given_up_ = false;
  bool runs_ = false;
};

}  // namespace jitunwind
