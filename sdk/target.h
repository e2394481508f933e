// Stacks other than this process's: those of a live process, of a core file, or of a sample.
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
  /// The address that the thread's fault concerns (si_addr), in core files of threads that SIGSEGV, SIGBUS, SIGILL or
  /// SIGFPE ended: the memory or the instruction. Empty if the core does not have it, as where the signal was sent.
  std::optional<Addr> fault_address{};
};

/// The folders with the files that a core file or a sample refers to.
struct TargetFolders {
  /// A folder with the files of the machine that it ran on, at their paths. Links lead to files in this folder.
  std::string root{};
  std::string program{};  ///< the file of its program, if that is somewhere else
  /// Files of this machine that replace mapped files of a core file, by the address of the mapping. They are read where
  /// the core lacks the memory.
  std::vector<std::pair<Addr, std::string>> files{};
  /// perf's cache: a sample's [vdso] is .build-id/xx/yyyy/vdso in this folder, unless it is this machine's.
  std::string build_ids{};
};

/// A moment of a thread as a profiler records it: the registers, the top of the stack, and the mappings.
struct Sample {
  /// Null: this machine's. If its address_mask differs from the table's, the mask tells which bits of addresses are not
  /// signature bits.
  const Arch* arch = nullptr;
  RegisterFile registers{};
  Addr stack_address = 0;              ///< of the first byte of `stack`
  std::span<const std::byte> stack{};  ///< must outlive the Target
  std::vector<Mapping> mappings{};     ///< Mappings::parse() makes them of the text of /proc/PID/maps
  pid_t process = 0;
  pid_t thread = 0;
};

/// A target that can be walked. Its memory is treated as hostile: every read is checked, every loop is bounded, and a
/// walk ends with a reason. Rows, names and guesses come from the engine of walk_here(); registered procedures are
/// found as docs/registry.md "Finding the list" says. One thread uses it at a time. It is not signal-safe, except for
/// Frame's functions as documented there, and those that look up names are not.
class Target {
 public:
  /// How long a process is stopped.
  enum class Hold : std::uint8_t {
    while_attached,  ///< until let_go(), or the end of the Target
    to_copy,         ///< as long as registers and stacks are copied; it is walked while it runs on
  };

  /// Stops all threads of a process by PTRACE_SEIZE and PTRACE_INTERRUPT; the process gets no signal. Interrupted
  /// system calls are restarted as after any signal without a handler (signal(7)). However the Target ends, the process
  /// goes on, with the signals that it had. A thread that does not stop within a second goes on as well and cannot be
  /// walked. The tracer is a thread of this process's own.
  /// A walk under Hold::to_copy ends with an error, not with a wrong frame, at code that was registered after the
  /// process was let go, in the place of the code that was there.
  static Result<Target, TargetError> attach(pid_t process, Hold hold = Hold::while_attached);
  /// A process that the calling thread already traces and has stopped. It is neither stopped nor let go here. Call
  /// renew() after it has run.
  static Result<Target, TargetError> of_traced(pid_t process);

  /// Opens a core file that the kernel or gcore wrote, whole or cut off anywhere. Code that the file lacks is read from
  /// the files that were mapped, if their build ids match.
  static Result<Target, TargetError> open_core(const std::string& path, const TargetFolders& folders = {});
  /// Makes a target of a sample. Its walk ends where the copied stack ends. A sample knows registered procedures only
  /// if their lists are in the memory that it has.
  static Result<Target, TargetError> from_sample(Sample sample, const TargetFolders& folders = {});

  Target(Target&&) noexcept;
  Target& operator=(Target&&) noexcept;
  ~Target();

  /// Returns 0 for a sample.
  pid_t process() const noexcept;
  /// The threads by ascending number, but in a core file the thread that caused it comes first.
  const std::vector<TargetThread>& threads() const noexcept;
  /// Reads the registers of the interrupted frame. Error io: the thread is gone, or is not stopped.
  Result<RegisterFile> registers(const TargetThread& thread) const noexcept;
  /// Walks the frames of a thread, innermost first, while the Target lives. If there are no registers the walk stops at
  /// one frame without a pc, and why() says so.
  Walk walk(const TargetThread& thread, Guesses guesses = Guesses::confirmed) const noexcept;

  /// Finds the source line of a frame's code, if its JIT reports lines: in jitdumps or in files of GDB's list.
  /// Allocates.
  std::optional<SourceLine> source_line(const Frame& frame) const;

  /// Finds the head of a list of registered procedures (unw_dyn_info_list_t). Each copy of the library in the target
  /// has one; they are numbered from 0. Returns 0 if there are no more.
  Result<Addr> registered_list(std::size_t number = 0) const noexcept;

  /// The code made at run time whose JITs describe it: what is registered, and what has call frame information in GDB's
  /// list or in jitdumps. A range may have several procedures, and ranges may overlap. Allocates.
  std::vector<AddrRange> jit_code() const;

  const Arch& arch() const noexcept;
  /// The address space of the target, for a Cursor that the caller makes.
  const AddressSpace& space() const noexcept;
  const Mappings& mappings() const noexcept;

  /// Lets the process go on. The copied stacks can still be walked; see Hold::to_copy.
  void let_go() noexcept;
  /// How long the process was stopped when it was last attached to and let go: from before its first thread was told to
  /// stop until all were told to go on. Returns 0 if it was never let go, or if it was not attached to.
  std::uint64_t stopped_nanoseconds() const noexcept;
  /// Reads the threads, mappings and lists of a process that has run meanwhile. A process that was let go is stopped
  /// again. Earlier frames become invalid.
  Result<Done, TargetError> renew();
  /// Replaces the sample by another one of the same process. Knowledge of modules stays where the mappings are
  /// unchanged; a sample without mappings has those of the one before. Error no_samples: this is no target of a sample;
  /// it remains unchanged.
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
