// What a target's JITs have told debuggers: GDB's list, read out of the target's memory.
#pragma once

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

  /// Looks now, for a target that is about to run: what it says afterwards is of another moment. Where no memory but
  /// that of files is executable there is no such code, and nothing to look for.
  void look() const noexcept;
  /// The target has run and stands still again. False: what it says is not what it was.
  bool renew() noexcept;
  /// It may be another program by now.
  void forget() noexcept;

 private:
  struct File {
    GdbListEntry where;
    std::uint64_t hash = 0;  // of the bytes as they were read
    std::optional<JitObject> object;
  };

  const JitObject* object_at(Lookup& lookup) const noexcept;
  const JitObject* object_at(Addr at) const noexcept;
  bool may_have_code() const noexcept;
  void read_lists() const;
  void find_descriptors() const;
  void add_file(const GdbListEntry& where, std::vector<File>& old, std::uint64_t& room) const;
  void make_index() const;

  const Memory& memory_;
  const Arch& arch_;
  const MappedModules& modules_;
  const Mappings& mappings_;
  const TargetFiles& files_;
  mutable std::vector<Addr> descriptors_;
  mutable std::vector<File> all_;
  mutable ListIndex index_;
  mutable bool has_looked_ = false;
  mutable bool is_as_known_ = true;  // what was read last is what was read before
};

}  // namespace jitunwind
