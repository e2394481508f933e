// The jitdumps and the perf map of this process, followed while its engines append to them.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/sdk/dialects/frames/dumped_frames.h"
#include "jitunwind/sdk/dialects/growing_file_internal.h"
#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/sdk/dialects/perf_map.h"
#include "jitunwind/sdk/dialects/source_lines.h"

namespace jitunwind {

/// Finds dumps in the same way as perf, by a page of them that is mapped as code. Used by one thread.
class DumpFollower {
 public:
  /// Reads the records since the last time, from files of the owner; new dumps are searched for once a second. Throws
  /// std::bad_alloc.
  void look(uid_t owner = ::geteuid());

 private:
  static constexpr unsigned k_looks_in_a_second = 100;
  struct Dump {
    GrowingFile file;
    JitDumpReader reader{};
  };

  /// Code with its dump's call frame information, which stays until the code is forgotten.
  struct Described {
    AddrRange code{};
    std::string name{};
    DumpedFrames frames{};
    SourceLines lines{};
    std::vector<std::byte> written{};
    std::vector<DumpedFrames::Entry> entries{};

    Addr address_of(const DumpedFrames::Entry& entry) const noexcept {
      return reinterpret_cast<std::uintptr_t>(written.data()) + entry.fde;
    }
  };

  void find_dumps();
  void hear(const JitDumpRecord& record);
  void tell(const AddrRange& code, std::string_view name, DumpedFrames&& frames, SourceLines&& lines);
  std::map<Addr, Described>::iterator forget(std::map<Addr, Described>::iterator described);
  void forget_overlapped(const AddrRange& code);
  void forget_unmapped();

  std::list<Dump> dumps_;
  std::map<Addr, Described> described_;  // by the start of the code
  WaitingLines lines_;
  Addr looked_at_ = 0;  // the start of the piece that was checked last
  unsigned looks_ = 0;
};

/// Follows /tmp/perf-PID.map. Used by one thread.
class MapFollower {
 public:
  MapFollower();

  /// Reads the lines since the last time. A file that was made anew, or truncated, is read from its start. A file of
  /// another owner is not read. Throws std::bad_alloc.
  void look(uid_t owner = ::geteuid());

 private:
  GrowingFile file_;
  PerfMapReader reader_;
};

}  // namespace jitunwind
