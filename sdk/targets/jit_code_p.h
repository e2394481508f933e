// What a target's JITs have told debuggers: GDB's list, read out of the target's memory.
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

/// Code of no module that is in a file of GDB's lists: each program and library of the target may have one. Of code
/// that is in several files the one counts that is first in the lists, where engines put new ones; a file for code that
/// is not mapped counts for nothing, and so does one that cannot be read. Looks when it is first asked about code of no
/// module. At most 256 MiB of files are read. Used by one thread at a time.
class JitCode final : public RowSource, public NameSource {
 public:
  /// `memory` is that of the target at any moment. All must outlive this.
  JitCode(const Memory& memory, const Arch& arch, const MappedModules& modules, const Mappings& mappings,
          const TargetFiles& files) noexcept
      : memory_(memory), arch_(arch), modules_(modules), mappings_(mappings), files_(files) {}

  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override;
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override;
  bool was_told_of(Addr at) const noexcept override;
  /// The line of its source, as far as files tell.
  std::optional<SourceLine> find_line(Addr at) const;

  /// The target runs, and renew() follows when it stands still: what is read now need not be read then.
  void look_ahead() noexcept { look(); }
  /// The target is about to run: what it says afterwards is of another moment. Files that are new are read now. A file
  /// that was known before is used only if it is unchanged at the next query.
  void let_run() noexcept;
  /// The target has run and stands still again. `changed` gets the code of files that have come, gone or changed;
  /// false: it is not known. Lists are read, and files that are new or were asked about. Others are when they are.
  bool renew(bool is_mapped_as_before, std::vector<AddrRange>& changed) noexcept;
  /// It may be another program by now.
  void forget() noexcept;

 private:
  struct File {
    GdbListEntry where;
    std::uint64_t hash = 0;  // of the bytes as they were read
    std::optional<JitObject> object;
    bool is_checked = false;  ///< it is what was read, since the last look
    bool was_asked = false;   ///< there may be rows of it that are kept
    bool is_taken = false;
  };

  const JitObject* object_at(Lookup& lookup) const noexcept;
  const JitObject* object_at(Addr at) const noexcept;
  /// Where no memory but that of files is executable there is no such code, and nothing to look for.
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
  mutable std::vector<AddrRange> changed_;  // code of files that were not there at the look before, or are no more
  mutable bool has_looked_ = false;
  mutable bool has_descriptors_ = false;
  mutable bool all_are_checked_ = true;
  mutable bool has_given_up_ = false;
  bool runs_ = false;
};

}  // namespace jitunwind
