// Converts the stacks of a target to plain data, from which every form of output is made.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/sdk/jitstack/terminal_p.h"
#include "jitunwind/sdk/target.h"

namespace jitunwind::jitstack {

/// A frame. Its texts are the target's own, thus hostile: each form of output escapes them.
struct SeenFrame {
  std::uint32_t number = 0;
  Addr pc = 0;
  Addr sp = 0;
  std::string name{};        ///< demangled; "": none
  std::uint64_t offset = 0;  ///< distance of the pc from the start of the named code
  std::string source{};      ///< file and line, "f.js:12"; "": not told
  std::string module{};      ///< path, or the kernel's name in brackets; "": none, as of code made at run time
  RowOrigin origin = RowOrigin::none;
  bool is_signal_frame = false;
  bool is_jit = false;  ///< registered, or reported by its JIT
  std::string row{};    ///< empty if it was not asked for, or if there is none
};

/// How much is said of each frame. An outline has neither name nor source nor row, which take the time.
enum class Detail : bool { outline, all };
using FrameVisitor = std::function<void(const SeenFrame&)>;

struct SeenStack {
  TargetThread thread{};
  std::string signal{};             ///< "SIGSEGV", that of the thread; "": none
  std::vector<SeenFrame> frames{};  ///< empty if walk_again is there
  /// Walks the stack again, while the target lives. Set for a stack with more frames than are kept.
  std::function<void(Detail, const FrameVisitor&)> walk_again{};
  StopReason stop = StopReason::none;
  std::string why{};
  struct Moment {
    pid_t process = 0;
    std::uint64_t time = 0;  ///< nanoseconds, of perf's clock
  };
  std::optional<Moment> moment{};  ///< set for a sample

  bool is_whole() const noexcept { return stop == StopReason::outermost; }
  /// Visits the frames, from the innermost on.
  void for_each(Detail detail, const FrameVisitor& visit) const {
    if (walk_again) return walk_again(detail, visit);
    for (const SeenFrame& frame : frames) visit(frame);
  }
};

enum class Rows : bool { no, yes };

/// The number of frames that are kept of a stack to be written. Deeper stacks, as of endless recursion, take no more
/// memory.
inline constexpr std::size_t k_most_kept = 1024;

/// Walks the stack of a thread and copies at most `most_kept` of its frames. Allocates.
SeenStack see(const Target& target, const TargetThread& thread, Rows rows, Guesses guesses,
              std::size_t most_kept = ~std::size_t{0});

/// Says that a core file was cut off, if it was. "" is none.
void remark_on_core(const std::string& path, Progress& progress);

/// Returns "SIGSEGV", "SIGRTMIN+2" or "signal 33"; "" for 0.
std::string signal_name(int signal, const Arch& arch);

/// Returns "libc.so.6", "[vdso]", "JIT" for code that is registered or reported by its JIT, or "?" if no file has the
/// code.
std::string short_module(const SeenFrame& frame);

}  // namespace jitunwind::jitstack
