// Executable memory that is the text of libraries: ELF files that the dynamic linker knows, and that grow in place.
// Tools that were never told of this library see committed code whole and by name: libgcc_s, backtrace_symbols(),
// dladdr(), gdb, eu-stack. docs/code_segments.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "jitunwind/builders/description.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// Room for a function, whose bytes have two addresses.
struct CodeRoom {
  Addr start = 0;                   ///< where the code runs: readable and executable
  std::span<std::byte> writable{};  ///< where it is written
};

/// The choices for all segments of one allocator.
struct CodeSegmentsOptions {
  /// The size of each segment. A function that is larger has a segment of its own.
  std::size_t text_bytes = std::size_t{1} << 20;
  std::size_t functions = 4096;
  /// Code is written to again after it was committed. Files then stay as they were made: none is renewed or sealed.
  bool changes_code = false;
};

/// The state at one moment.
struct CodeSegmentsStatus {
  std::string folder;         ///< of the newest published segment's file; empty: there is none
  std::size_t segments = 0;   ///< open, those that are published among them
  std::size_t files = 0;      ///< published segments
  std::size_t sealed = 0;     ///< those of them whose file has a build-id, and never changes
  std::size_t functions = 0;  ///< committed, and not released
  std::size_t published = 0;  ///< that tools know by name, with call frame information
  /// Segments, functions and objects that were not published, or not entirely.
  std::uint64_t refused = 0;
  Error latest_refusal{};  ///< reason for the latest one; unspecified if there was none
};

/// An allocator of executable memory. Code is allocated, written, committed with its description, and released.
///
/// Files are in a folder of this process, of mode 0700, in the first of these folders that serves: $JITUNWIND_CODE_DIR,
/// $XDG_RUNTIME_DIR, /dev/shm, /tmp. If none does, or in a program that changed its identity when it was executed, code
/// runs in memory without a name and is registered as always; status() says why tools do not see it.
///
/// The files go with their segment, and at exit. Those of a process that ended by a signal or by _exit() stay, since
/// core files need them; the next process of the user that makes such a folder removes them. JITUNWIND_CODE_FILES=keep
/// in the environment keeps all of them, for tools that read them later.
///
/// Tools keep what they have read of a file. A segment's content therefore becomes a new file, which has the name of
/// the former one and is mapped in its place. A commit or release does so if the former one is 100 ms old. A segment
/// that is full is sealed: its new file has a build-id, and never changes. Its rooms serve again when a quarter of them
/// is empty, in a new file. Segments stay as they are while rooms of them are allocated and not committed. Code must
/// not be written to after it was committed: see CodeSegmentsOptions::changes_code.
///
/// Thread-safe; not signal-safe. Opening a segment waits for the dynamic linker's lock. The next segment is therefore
/// opened ahead, by a thread of this library's, which also seals full ones. It ends when it has done so.
///
/// A child of fork() keeps the code of before, from copies that are made at the fork. Walks know it, and the child can
/// run and release it; it has no writable address there. The child's own code is in segments of its own.
class CodeSegments {
 public:
  /// Opens nothing yet.
  explicit CodeSegments(const CodeSegmentsOptions& options = {}) noexcept;
  /// Releases everything, closes all segments, and waits for the thread that opens one: not in a constructor that this
  /// thread waits for. A callback of dl_iterate_phdr() leaves closing them to later calls that open others.
  ~CodeSegments();
  CodeSegments(const CodeSegments&) = delete;
  CodeSegments& operator=(const CodeSegments&) = delete;

  /// Room for code of `size` bytes, with one function, and at most `more_functions` that begin behind the room's start.
  /// Errors: e_range (0 bytes, or more than 1 GiB; as many functions as bytes; an alignment that is not a power of two
  /// from 16 to 65536); out_of_memory.
  Result<CodeRoom> allocate(std::size_t size, std::size_t more_functions = 0, std::size_t alignment = 16) noexcept;

  /// Registers and publishes code, after its bytes were written: by register_code(). `code.start` is that of a room,
  /// and `code.size` at most the room's. Errors: not_registered (no room begins there, or it has code already),
  /// e_overlap (larger than the room), and those of register_code(); the room stays allocated. Code that is registered
  /// but cannot be published is no error: status() tells. Marks are forgotten, after an error, too.
  Status commit(const Description& description, const Code& code) noexcept;
  template <class Cpu>
  Status commit(ProcedureBuilder<Cpu, MarkRecorder>& marks, const Code& code) noexcept {
    return commit_marks(marks.recorder(), code);
  }

  /// Publishes what is registered in a stretch of a room by other means than commit(), such as an object's functions.
  /// Functions of one room are published in the order of their addresses, by one call or by several. The caller cancels
  /// their registrations, and then releases the room. Errors: not_registered (no room has this code, or commit() gave
  /// it code). Code that cannot be published is no error: status() tells.
  Status publish(AddrRange code) noexcept;

  /// Takes the code back, as Registration::cancel() does: its room may have other code when this returns. Errors:
  /// not_registered (no room begins there), in_signal_handler (nothing changed).
  Status release(Addr start) noexcept;

  /// Seals all segments, for programs that make no code for a while: nothing else does it after the last commit. Error
  /// io: a segment's file could not be renewed, and is as it was; those with rooms that are not committed are no error.
  Status seal() noexcept;

  /// Counts code that a code generator has placed elsewhere as refused, for this reason. Error::what is not copied.
  void refuse(const Error& why) noexcept;
  CodeSegmentsStatus status() const;

  /// The allocator of a program that was started with JITUNWIND_PUBLISH=1 in its environment, which is there for good;
  /// null in others, and in those that changed their identity when they were executed. Code generators of this library
  /// use it by default.
  static CodeSegments* of_environment() noexcept;

 private:
  struct [[gnu::visibility("hidden")]] State;  // several copies of this library in one process share no variable
  Status commit_marks(MarkRecorder& marks, const Code& code) noexcept;

  State* const state_;  // null: there was no memory
};

}  // namespace jitunwind
#pragma GCC visibility pop
