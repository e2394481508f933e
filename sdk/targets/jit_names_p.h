// Files that a target's JITs write for perf: the perf map, which has names, and mapped jitdumps, which have names and
// call frame information.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "jitunwind/dyn_info/list_index_internal.h"
#include "jitunwind/sdk/dialects/frames/dumped_frames.h"
#include "jitunwind/sdk/dialects/growing_file_internal.h"
#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/sdk/dialects/perf_map.h"
#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/targets/mappings.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"

namespace jitunwind {

/// Finds names and rows of code outside modules; the last record counts. Files are first read when somebody asks about
/// such code. Appended data is read after look_again(). No more than 256 MiB of files and 2^20 names are read; the
/// memory used is a small multiple of the bytes read. Used by one thread at a time.
class JitNames final : public RowSource, public NameSource {
 public:
  /// All must outlive this.
  JitNames(const Arch& arch, const Mappings& mappings, const TargetFiles& files) noexcept
      : arch_(arch), mappings_(mappings), files_(files) {}

  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override;
  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override;
  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override;
  /// Finds the source line in the records of jitdumps for code at that address.
  std::optional<SourceLine> find_line(Addr at) const;

  /// Appends the code that has call frame information in jitdumps.
  void append_described_code(std::vector<AddrRange>& out) const;

  /// Sets the path of the perf map, below the root of the files, and the user whose files count. Others may have put a
  /// file there before the process got its number.
  void set_process(std::string map, uid_t owner) {
    map_path_ = std::move(map);
    owner_ = owner;
  }
  void look_again() noexcept { has_looked_ = false; }
  /// Forgets everything: the process may run another program by now.
  void forget() noexcept;

 private:
  /// The records of one piece of code. It is kept when the code moves.
  struct Told {
    std::string name{};
    SourceLines lines{};
    DumpedFrames frames{};
  };
  struct Named {
    AddrRange code{};
    std::shared_ptr<const Told> told;
  };
  struct Dump {
    GrowingFile file;
    JitDumpReader reader{};
  };

  void look() const noexcept;
  void find_dumps() const;
  void read_map() const;
  void read_dump(Dump& dump) const;
  const Named* named_at(Addr at) const noexcept;
  /// Returns null also if the code is a module's.
  const Named* named_at(Lookup& lookup) const noexcept;
  void add(const AddrRange& code, std::shared_ptr<const Told> told) const;
  void take_record(const JitDumpRecord& record) const;

  const Arch& arch_;
  const Mappings& mappings_;
  const TargetFiles& files_;
  std::string map_path_;        // "": there is none
  std::optional<uid_t> owner_;  // none: anybody's
  mutable GrowingFile map_;     // of that path, as this process can open it
  mutable PerfMapReader map_reader_;
  mutable std::list<Dump> dumps_;
  mutable std::vector<Named> all_;                        // as they were written
  mutable std::unordered_map<Addr, std::size_t> latest_;  // where in it, by the begin of the code
  mutable WaitingLines lines_;
  mutable ListIndex index_;
  mutable std::uint64_t room_ = std::uint64_t{256} << 20;  // bytes that may still be read
  mutable bool has_looked_ = false;
};

}  // namespace jitunwind
