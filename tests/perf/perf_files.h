// Files of perf that this process writes, read back.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "jitunwind/adapters/perf/perf.h"
#include "jitunwind/sdk/dialects/frames/dumped_frames.h"
#include "jitunwind/sdk/dialects/jitdump.h"
#include "jitunwind/sdk/dialects/perf_map.h"
#include "tests/listen/written_for_perf.h"
#include "tests/support/command.h"

namespace jitunwind::test {

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct MapLine {
  AddrRange code{};
  std::string name{};
};
inline std::vector<MapLine> lines_of_map(const std::string& path) {
  std::vector<MapLine> lines;
  PerfMapReader reader;
  reader.read(content_of(path), [&](const NamedCode& said) { lines.push_back({said.code, std::string(said.name)}); });
  if (reader.passed_by() != 0) lines.clear();
  return lines;
}

struct Loaded {
  AddrRange code{};
  std::string name{};
  std::string bytes{};
  DumpedFrames frames{};
  SourceLines lines{};
};
/// The records of a dump that is right.
inline std::vector<Loaded> loaded_by_dump(const std::string& path) {
  std::vector<Loaded> loaded;
  WaitingLines lines;
  JitDumpReader reader;
  const std::string content = content_of(path);
  const auto take = [&](const JitDumpRecord& record) {
    if (record.kind == JitDumpRecord::Kind::lines) return lines.keep(record);
    const auto* const bytes = reinterpret_cast<const char*>(record.bytes.data());
    loaded.push_back({record.code, std::string(record.name), std::string(bytes, record.bytes.size()),
                      DumpedFrames(record), lines.take(record.code.begin)});
  };
  if (!reader.read(std::as_bytes(std::span(content)), take) || reader.passed_by() != 0) loaded.clear();
  return loaded;
}

/// Perf is attached as long as the object lives; its dump is in a folder of its own, and its map goes.
class AttachedPerf {
 public:
  explicit AttachedPerf(std::uint64_t most_bytes = PerfOptions().most_bytes)
      : attached_(attach_perf({.folder = folder_.path(), .most_bytes = most_bytes})) {
    const PerfStatistics now = perf_statistics();
    map_ = now.map;
    dump_ = now.dump;
  }
  ~AttachedPerf() {
    (void)detach_perf();
    remove_written_for_perf(::getpid());
  }
  AttachedPerf(const AttachedPerf&) = delete;
  AttachedPerf& operator=(const AttachedPerf&) = delete;

  const Status& attached() const { return attached_; }
  const std::string& map() const { return map_; }
  const std::string& dump() const { return dump_; }
  std::string folder() const { return folder_.path(); }

 private:
  const TemporaryFolder folder_;
  const Status attached_;
  std::string map_;
  std::string dump_;
};

}  // namespace jitunwind::test
