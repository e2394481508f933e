// Tracks the processes of a perf.data file: the mappings of each when a sample was taken, and one target that is
// renewed.
#pragma once

#include <map>
#include <optional>

#include "jitunwind/sdk/jitstack/perf/perf_data_p.h"

namespace jitunwind::jitstack {

class PerfProcesses {
 public:
  /// The most mappings of all processes together. Further ones are ignored: a file of a few megabytes could have 10^12.
  static constexpr std::size_t k_most_mappings = std::size_t{1} << 20;

  PerfProcesses(const Arch& arch, TargetFolders folders) : arch_(arch), folders_(std::move(folders)) {}

  /// Takes any record but a sample. Records must come in the order of time.
  void take(const PerfEvent& event);
  /// Returns a target that is valid until the next call. Precondition: the sample has registers.
  Result<const Target*, TargetError> target_of(const PerfSample& sample);
  /// Returns "" if no record has named the thread.
  std::string name_of(const PerfSample& sample) const;
  bool has_left_out() const noexcept { return has_left_out_; }

 private:
  struct Process {
    std::map<Addr, Mapping> mapped{};  ///< by where they begin; none overlap
    std::map<pid_t, std::string> names{};
    std::optional<Target> target{};
    bool is_mapped_as_before = false;  ///< since the target's last renewal
  };

  void map(Process& process, const Mapping& mapping);
  void unmap(Process& process, AddrRange range);
  void forget_mappings(Process& process);
  void fork(const PerfForked& forked);

  const Arch& arch_;
  TargetFolders folders_;
  std::map<pid_t, Process> all_;
  std::size_t mappings_ = 0;
  bool has_left_out_ = false;
};

}  // namespace jitunwind::jitstack
