// The implementation of a Target: the source of registers, and the address space of its walks.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "jitunwind/sdk/target.h"
#include "jitunwind/sdk/targets/target_space_p.h"
#include "jitunwind/unwind_core/memory/bytes.h"
#include "jitunwind/unwind_core/memory/process.h"
#include "jitunwind/unwind_core/targets/core_file_internal.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"
#include "jitunwind/unwind_core/targets/threads/traced_threads_internal.h"

namespace jitunwind {

class Target::Impl {
 public:
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  virtual ~Impl() = default;

  virtual pid_t process() const noexcept { return 0; }
  virtual Result<RegisterFile> registers(const TargetThread& thread) const noexcept = 0;
  virtual void let_go() noexcept {}
  virtual std::uint64_t stopped_nanoseconds() const noexcept { return 0; }
  virtual std::optional<TargetError> renew() { return std::nullopt; }
  virtual std::optional<TargetError> take_sample(Sample) {
    return TargetError{TargetError::Reason::no_samples, "The target is none of a sample."};
  }

  const std::vector<TargetThread>& threads() const noexcept { return threads_; }
  const TargetSpace& space() const noexcept { return *space_; }

 protected:
  void add(TargetThread thread) {
    numbers_.emplace(thread.id, threads_.size());
    threads_.push_back(std::move(thread));
  }
  void forget_threads() noexcept {
    numbers_.clear();
    threads_.clear();
  }
  /// Returns the index in threads() of the first thread with that id.
  std::optional<std::size_t> number_of(pid_t id) const noexcept {
    const auto known = numbers_.find(id);
    return known == numbers_.end() ? std::nullopt : std::optional(known->second);
  }

  std::optional<TargetSpace> space_;

 private:
  std::vector<TargetThread> threads_;
  std::unordered_map<pid_t, std::size_t> numbers_;
};

TargetError no_such_process(pid_t process);
/// Finds the obstacles that are known before the attempt. None: attaching may succeed.
std::optional<TargetError> why_not_attached(const ProcessFolder& folder, const ProcessStatus& status);
/// Explains `failure`, the errno that PTRACE_SEIZE failed with.
TargetError refused_attach(const ProcessFolder& folder, const ProcessStatus& status, int failure);
/// Reports another architecture of a core file or of a process's program. `machine` is its ELF e_machine.
TargetError other_architecture(const std::string& whose, unsigned machine, bool is_64);
/// Reports an architecture without a table, or with another word size than its table's.
TargetError no_table(const std::string& whose, unsigned machine, bool is_64);
/// Tries to read the file again, since errno may have changed, and returns the reason: "No such file or directory".
std::string why_unreadable(const std::string& path);

/// A core file as a target.
class Target::Core final : public Target::Impl {
 public:
  static Result<Target, TargetError> make(const std::string& path, const TargetFolders& folders);
  Core(std::unique_ptr<CoreFile> core, const Arch& arch, TargetFiles files);

  pid_t process() const noexcept override { return core_->process(); }
  Result<RegisterFile> registers(const TargetThread& thread) const noexcept override;

 private:
  std::unique_ptr<CoreFile> core_;
  TargetFiles files_;
  FileBackedMemory memory_;
};

/// A sample of a thread as a target.
class Target::OfSample final : public Target::Impl {
 public:
  static Result<Target, TargetError> make(Sample sample, const TargetFolders& folders);
  OfSample(Sample sample, const Arch& arch, const TargetFolders& folders);

  pid_t process() const noexcept override { return process_; }
  Result<RegisterFile> registers(const TargetThread&) const noexcept override { return registers_; }
  std::optional<TargetError> take_sample(Sample sample) override;

 private:
  void take_kernels_object();
  BytesMemory memory_of(const Sample& sample) const;

  pid_t process_;
  RegisterFile registers_;
  Mappings mappings_;
  TargetFiles files_;
  AddrRange stack_range_;
  std::string build_ids_;
  Mapping kernels_mapping_{};   // what the bytes are of
  std::string kernels_object_;  // as a file; "": nobody has it
  BytesMemory taken_;
  FileBackedMemory memory_;
};

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
