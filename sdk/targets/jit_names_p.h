// Names that a target's JITs write for perf: its perf map, and the jitdumps that it has mapped.
#pragma once

#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "jitunwind/dyn_info/list_index_internal.h"
#include "jitunwind/sdk/dialects/growing_file_internal.h"
#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/sdk/dialects/perf_map.h"
#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/targets/mappings.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"

namespace jitunwind {

/// Names of code of no module; what was written last counts. Files are read when such code is first asked for, and what
/// has been appended since after look_again(). At most 256 MiB of files and 2^20 names. Used by one thread at a time.
class JitNames final : public NameSource {
 public:
  /// Both must outlive this.
  JitNames(const Mappings& mappings, const TargetFiles& files) noexcept : mappings_(mappings), files_(files) {}

  Found find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept override;
  /// The line of its source, by what jitdumps say of code at that address.
  std::optional<SourceLine> find_line(Addr at) const;

  /// Where the perf map is, as this process can open it; "": nowhere.
  void set_map(std::string path) { map_ = GrowingFile(std::move(path)); }
  void look_again() noexcept { has_looked_ = false; }
  /// It may be another program by now.
  void forget() noexcept;

 private:
  struct Named {
    AddrRange code{};
    std::string name{};
    SourceLines lines{};
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
  void add(const AddrRange& code, std::string_view name, const SourceLines& lines = {}) const;
  void take_record(const JitDumpRecord& record) const;

  const Mappings& mappings_;
  const TargetFiles& files_;
  mutable GrowingFile map_;
  mutable PerfMapReader map_reader_;
  mutable std::list<Dump> dumps_;
  mutable std::vector<Named> all_;                        // as they were written
  mutable std::unordered_map<Addr, std::size_t> latest_;  // where in it, by the begin of the code
  mutable std::unordered_map<Addr, SourceLines> lines_;   // of code that is loaded next, by its begin
  mutable ListIndex index_;
  mutable std::uint64_t room_ = std::uint64_t{256} << 20;  // bytes that may still be read
  mutable bool has_looked_ = false;
};

}  // namespace jitunwind
