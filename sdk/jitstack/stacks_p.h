// The stacks of a target as plain data: what every form of output is made from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/sdk/target.h"

namespace jitunwind::jitstack {

/// Text is as the target has it: hostile, and escaped by whoever writes it.
struct SeenFrame {
  std::uint32_t number = 0;
  Addr pc = 0;
  Addr sp = 0;
  std::string name{};        ///< demangled; "": none
  std::uint64_t offset = 0;  ///< of the pc in what has that name
  std::string source{};      ///< file and line, "f.js:12"; "": not told
  std::string module{};      ///< path, or the kernel's name in brackets; "": none, as of code made at run time
  RowOrigin origin = RowOrigin::none;
  bool is_signal_frame = false;
  bool is_jit = false;  ///< registered, or told by its JIT
  std::string row{};    ///< empty where it was not asked for, or there is none
};

struct SeenStack {
  TargetThread thread{};
  std::string signal{};  ///< "SIGSEGV", that of the thread; "": none
  std::vector<SeenFrame> frames{};
  StopReason stop = StopReason::none;
  std::string why{};
  struct Moment {
    pid_t process = 0;
    std::uint64_t time = 0;  ///< nanoseconds, of perf's clock
  };
  std::optional<Moment> moment{};  ///< of a sample

  bool is_whole() const noexcept { return stop == StopReason::outermost; }
};

enum class Rows : bool { no, yes };

/// Allocates.
SeenStack see(const Target& target, const TargetThread& thread, Rows rows, Guesses guesses);

/// "SIGSEGV", "SIGRTMIN+2" or "signal 33"; "" of 0.
std::string signal_name(int signal, const Arch& arch);

/// "libc.so.6", "[vdso]", "JIT" of code that is registered or that its JIT tells of, "?" where no file has the code.
std::string short_module(const SeenFrame& frame);

}  // namespace jitunwind::jitstack
