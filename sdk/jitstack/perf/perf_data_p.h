// Reads perf.data files of `perf record --call-graph dwarf`. The layout is that of perf's
// tools/perf/Documentation/perf.data-file-format.txt; perf_event_open(2) describes the records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "jitunwind/sdk/target.h"

namespace jitunwind::jitstack {

struct PerfMapped {
  pid_t process = 0;
  Mapping mapping{};
};
/// The name of a thread. The process has lost all its mappings if `is_new_program` is set.
struct PerfNamed {
  pid_t process = 0, thread = 0;
  std::string name{};
  bool is_new_program = false;
};
/// A new process if `process` and `parent` differ, else a new thread.
struct PerfForked {
  pid_t process = 0, parent = 0, thread = 0, parent_thread = 0;
};
struct PerfEnded {
  pid_t process = 0, thread = 0;
};
struct PerfSample {
  pid_t process = 0, thread = 0;
  std::uint64_t time = 0;      ///< nanoseconds, of perf's clock
  bool has_registers = false;  ///< false: a kernel thread, or 32-bit code
  RegisterFile registers{};
  std::span<const std::byte> stack{};  ///< from SP on, in the file
};
using PerfEvent = std::variant<PerfMapped, PerfNamed, PerfForked, PerfEnded, PerfSample>;

/// The relevant records, ordered by time. Everything in the file is checked; the work is bounded by the file's size.
/// Immutable.
class PerfData {
 public:
  /// `file` must outlive this; error texts call it `name`.
  static Result<PerfData, TargetError> parse(std::span<const std::byte> file, const std::string& name);

  std::size_t size() const noexcept { return records_.size(); }
  std::size_t samples() const noexcept { return samples_; }
  const Arch& arch() const noexcept { return *arch_; }
  /// Decodes a record. Error: the record is broken; Error::at is its offset in the file.
  Result<PerfEvent> event(std::size_t index) const;
  /// Explains why the rest of the file is not known: it is cut off or broken. Null: the file is whole.
  const char* end_reason() const noexcept { return end_reason_; }

 private:
  /// The parts of perf_event_attr that determine how its records are read.
  struct Attributes {
    std::uint64_t sample_type = 0;
    std::uint64_t read_format = 0;
    std::uint64_t branch_sample_type = 0;
    std::uint64_t registers = 0;  ///< sample_regs_user
    bool sample_id_all = false;
    std::vector<std::uint64_t> ids{};
  };
  struct Record {
    std::uint64_t time = 0;
    std::size_t offset = 0;
    std::uint32_t attributes = 0;
  };
  class Parser;

  Result<PerfEvent> sample(std::span<const std::byte> record, std::size_t offset, const Attributes& attributes) const;

  std::span<const std::byte> file_;
  const Arch* arch_ = nullptr;
  std::map<std::string, std::string, std::less<>> build_ids_;  // of files, by their paths
  std::vector<Attributes> attributes_;
  std::vector<Record> records_;
  std::size_t samples_ = 0;
  const char* end_reason_ = nullptr;
};

}  // namespace jitunwind::jitstack

// Tracks the processes of a perf.data file: the mappings of each when a sample was taken, and one target that is
// renewed.

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
