// Somebody else's stacks: those of another process, live or dead, or of a sample of one.
//
//   auto target = jitunwind::Target::attach(pid);
//   if (!target) return std::puts(target.error().text().c_str());
//   for (const jitunwind::TargetThread& thread : target->threads())
//     for (const jitunwind::Frame& frame : target->walk(thread)) std::puts(frame.name().c_str());
//
// docs/targets.md.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/targets/mappings.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Why there is no target, and what to do about it.
struct TargetError {
  enum class Reason : std::uint8_t {
    no_process,             ///< no process has that number
    zombie,                 ///< it has ended, or is about to: the kernel has taken its memory
    kernel_thread,          ///< a thread of the kernel's
    this_process,           ///< walk_here(), walk_thread()
    traced_by_another,      ///< a process has one tracer
    no_permission,          ///< the kernel does not let this user trace it
    other_architecture,     ///< its CPU, or its word size
    no_such_file,           ///< it cannot be opened or read
    no_core,                ///< the file is no core file, or nothing of one is left
    core_of_other_program,  ///< the program that was given is not the one that the core is of
    no_samples              ///< the file has no samples of stacks, or they cannot be read
  };
  Reason reason = Reason::no_process;
  std::string what{};    ///< one sentence
  std::string remedy{};  ///< another one, "" where nothing helps

  std::string text() const { return remedy.empty() ? what : what + " " + remedy; }
};

/// A thread of a target that can be walked.
struct TargetThread {
  pid_t id = 0;
  std::string name{};
  int signal = 0;  ///< that it was ended by, or about to get when it was stopped; 0: none
  bool is_stopped =
      true;  ///< false: it does not stop, as in an uninterruptible wait of the kernel's; it cannot be walked
  /// Of a core file, where a fault ended it (SIGSEGV, SIGBUS, SIGILL, SIGFPE): what it could not get at, or the
  /// instruction (si_addr). Nothing: the core does not say, as where a signal was sent.
  std::optional<Addr> fault_address{};
};

/// Where the files of a core file or a sample are.
struct TargetFolders {
  std::string root{};  ///< goes in front of the target's paths: a folder with the files of the machine that it ran on
  std::string program{};  ///< the file of its program, if that is somewhere else
  /// Of a core file: what is mapped at an address, as far as it is not in the core, is in that file of this machine.
  std::vector<std::pair<Addr, std::string>> files{};
  /// The [vdso] of a sample, unless it is this machine's, is .build-id/xx/yyyy/vdso in this folder: perf's cache.
  std::string build_ids{};
};

/// What a profiler keeps of a moment of a thread: registers, the top of the stack, and what was mapped where.
struct Sample {
  /// Null: this machine's. Its address_mask, if that is not the table's, says which bits of addresses do not sign.
  const Arch* arch = nullptr;
  RegisterFile registers{};
  Addr stack_address = 0;              ///< of the first byte of `stack`
  std::span<const std::byte> stack{};  ///< must outlive the Target
  std::vector<Mapping> mappings{};     ///< Mappings::parse() makes them of the text of /proc/PID/maps
  pid_t process = 0;
  pid_t thread = 0;
};

/// A target that is walked. Whatever its memory says is hostile: every read is checked, every loop bounded, and a walk
/// ends with a reason. Rows, names and guesses are those of walk_here(), by the same engine; registered procedures are
/// found by docs/registry.md "Finding the list". Used by one thread at a time. Not signal-safe, but for what Frame says
/// of itself, and that not of names.
class Target {
 public:
  /// How long a process stands still.
  enum class Hold : std::uint8_t {
    while_attached,  ///< until let_go(), or the end of the Target
    to_copy,         ///< as long as registers and stacks are copied; it is walked while it runs on
  };

  /// Stops all threads of a process (PTRACE_SEIZE, PTRACE_INTERRUPT: it gets no signal). Interrupted system calls are
  /// restarted as after any signal without handler (signal(7)). It always goes on, with the signals that it had,
  /// whichever way the Target ends; a thread that does not stop within a second, too, which cannot be walked. A thread
  /// of this process's own is its tracer. With Hold::to_copy code that was registered when it stood still is told from
  /// code that was registered in its place since: such a walk ends with an error instead of a wrong frame.
  static Result<Target, TargetError> attach(pid_t process, Hold hold = Hold::while_attached);
  /// A process that the calling thread traces already and has stopped: it is neither stopped nor let go. renew() after
  /// it has run.
  static Result<Target, TargetError> of_traced(pid_t process);

  /// A core file of the kernel's or of gcore's, whole or cut off anywhere. What the file does not hold of the target's
  /// code is read from the files that it was mapped from, if they have their build ids.
  static Result<Target, TargetError> open_core(const std::string& path, const TargetFolders& folders = {});
  /// The frames that can be told from a sample; the walk ends where the stack that was copied ends. Of registered
  /// procedures a sample knows nothing, unless their lists are among what it has of memory.
  static Result<Target, TargetError> from_sample(Sample sample, const TargetFolders& folders = {});

  Target(Target&&) noexcept;
  Target& operator=(Target&&) noexcept;
  ~Target();

  /// 0: of a sample.
  pid_t process() const noexcept;
  /// In the order of their numbers; the one that a core file was made for first.
  const std::vector<TargetThread>& threads() const noexcept;
  /// Of the frame that was interrupted. Error io: the thread is gone, or does not stand still.
  Result<RegisterFile> registers(const TargetThread& thread) const noexcept;
  /// Frames of a thread, innermost first, while the Target lives. Where there are no registers it has one frame without
  /// pc, and stops there: why() says so.
  Walk walk(const TargetThread& thread, Guesses guesses = Guesses::confirmed) const noexcept;

  /// The line of the source that a frame's code was made from, where its JIT tells: in jitdumps, in files of
  /// GDB's list. Allocates.
  std::optional<SourceLine> source_line(const Frame& frame) const;

  /// Where a list of registered procedures begins (unw_dyn_info_list_t): each copy of the library in the target has
  /// one, numbered from 0 on. 0: there are no more.
  Result<Addr> registered_list(std::size_t number = 0) const noexcept;

  const Arch& arch() const noexcept;
  /// For Cursors of one's own.
  const AddressSpace& space() const noexcept;
  const Mappings& mappings() const noexcept;

  /// A process goes on. What was copied of it can still be walked, as Hold::to_copy says.
  void let_go() noexcept;
  /// How long the process stood still the last time that it was attached to and let go: from before the first of its
  /// threads was told to stop until all were told to go on. 0: it was never let go, or is no process that was attached
  /// to.
  std::uint64_t stopped_nanoseconds() const noexcept;
  /// Of a process that has run meanwhile: one that was let go is stopped again; its threads, mappings and lists are
  /// looked at anew. Frames of before are void.
  Result<Done, TargetError> renew();
  /// Of a sample: another sample of the same process. What is known of its modules stays, as far as their mappings are
  /// the same; with no mappings they are those of the sample before. Error no_samples: it is no target of a sample, and
  /// stays what it is.
  Result<Done, TargetError> renew(Sample sample);

 private:
  class Impl;
  class Process;
  class Core;
  class OfSample;
  explicit Target(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
