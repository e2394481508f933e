// A live process as a target.
#pragma once

#include <cstdint>

#include "jitunwind/sdk/targets/target_impl_p.h"
#include "jitunwind/unwind_core/memory/process.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/targets/threads/traced_threads_internal.h"

namespace jitunwind {

class Target::Process final : public Target::Impl {
 public:
  static Result<Target, TargetError> make(pid_t process, bool attach, Hold hold);
  Process(pid_t process, bool attaches, Hold hold)
      : attaches_(attaches),
        longest_ns_(hold == Hold::to_copy ? k_longest_copy_ns : TracedThreads::k_for_ever),
        folder_(process) {}
  ~Process() override { traced_.let_go(); }

  pid_t process() const noexcept override { return process_; }
  Result<RegisterFile> registers(const TargetThread& thread) const noexcept override;
  void let_go() noexcept override;
  std::optional<TargetError> renew() override;
  std::uint64_t stopped_nanoseconds() const noexcept override { return traced_.stopped_nanoseconds(); }

 private:
  static constexpr std::int64_t k_longest_copy_ns = 10'000'000'000;

  std::optional<TargetError> begin();
  /// Reads the process's number and decides whether it can be a target; the process still runs.
  std::optional<TargetError> look();
  /// Finds what takes long while the process still runs: docs/targets.md "How long it stands still".
  std::optional<TargetError> look_ahead();
  std::optional<TargetError> stop();
  /// Returns true if the process has executed no other program since its memory was opened.
  bool runs_what_it_ran() const noexcept;
  /// Reads the mappings of the stopped process.
  std::optional<TargetError> take_mappings();
  /// Parses the mappings of the program that runs now, and learns its CPU.
  Result<Mappings, TargetError> parse_mappings(const std::string& text);
  void make_space(Mappings mappings);
  void take_threads();
  void keep_stacks() noexcept;

  bool attaches_;
  std::int64_t longest_ns_;
  bool is_overdue_ = false;  // it ran on before it was copied
  pid_t process_ = 0;
  pid_t own_number_ = 0;  // of the process, as ProcessStatus has it
  const Arch* arch_ = host_arch();
  ProcessStatus status_;
  std::string maps_;  // the text that the space's mappings were read of
  ProcessFolder folder_;
  ReadableFile mem_;
  std::optional<ProcessMemory> memory_;
  TracedThreads traced_{folder_};
  std::vector<std::optional<RegisterFile>> registers_;  // of each thread, as they were while it stood still
};

}  // namespace jitunwind
