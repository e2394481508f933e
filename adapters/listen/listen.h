// JITs that have never heard of this library tell others about their code: libgcc, Intel's profilers, perf. Whoever
// loads or links libjitunwind-listen hears it, too. What is told becomes procedures of the registry, which walks, names
// and throws find as any other. docs/listen.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What JITs speak: a word of JITUNWIND_LISTEN each, and a bit of listen().
enum class Dialect : std::uint32_t {
  frames = 1,  ///< "frames": __register_frame and its like, call frame information of libgcc's and LLVM's interface
  itt = 2,     ///< "itt": names that an agent of Intel's interface is told (libjitunwind-itt)
  maps = 4,    ///< "maps": names of /tmp/perf-PID.map and of jitdumps, which a thread of this library follows
  gdb = 8,     ///< "gdb": names and call frame information of GDB's lists, which the same thread follows
};
inline constexpr std::uint32_t k_all_dialects = 15;
/// Those that never need a thread.
inline constexpr std::uint32_t k_silent_dialects = 3;

/// Listens to these dialects from now on, and to no others: bits of Dialect. What was heard before stays known until
/// its owner takes it back. Without a call: to those that JITUNWIND_LISTEN names, words separated by commas; to all
/// where it is not set; to none where it is "nothing". Whoever listens to `maps` or `gdb` listens to `frames`, too. The
/// thread of these two begins with the call, or with the program where JITUNWIND_LISTEN names them. Where nothing is
/// said it begins when there is an engine: an object that the program was loaded with has a list of GDB's, or somebody
/// calls __register_frame. Thread-safe. Signal-safe without `maps` and `gdb`.
void listen(std::uint32_t dialects = k_all_dialects) noexcept;

/// For whoever is told by a dialect that gives names alone: code, and what it is called now. A name of code that this
/// overlaps is forgotten. Where call frame information of the code is heard, both become one procedure, in any order.
/// Nothing where the dialect is not listened to. Thread-safe; not signal-safe.
void say_name(Dialect dialect, const AddrRange& code, std::string_view name) noexcept;
/// Lines of the sources of code that has a name and begins there; of other code nothing. They are forgotten with the
/// name, and stay where the same code is only named anew. Thread-safe; not signal-safe.
void say_lines(Dialect dialect, Addr begin, SourceLines lines) noexcept;
/// Forgets names and lines of all that begins in this code.
void say_gone(Dialect dialect, const AddrRange& code) noexcept;

/// The line of its source that code at `at` was made from. Nothing: no dialect has told of it. Thread-safe; not
/// signal-safe; throws std::bad_alloc.
std::optional<SourceLine> heard_line(Addr at);

/// What was heard so far.
struct ListenStatus {
  /// Calls of __register_frame by libraries that came with the program lead here. False: another definition comes first
  /// in search order, as where this library was loaded late (dlopen), or is linked into a program that does not export
  /// the name. Calls within one object, to a static libgcc, never do.
  bool are_frames_told_here = false;
  std::uint32_t dialects = 0;    ///< that are listened to
  std::uint64_t told = 0;        ///< calls that told of call frame information
  std::uint64_t taken_back = 0;  ///< calls that took it back
  std::uint64_t never_told = 0;  ///< calls that took back what nobody had told of
  std::uint64_t procedures = 0;  ///< registered of it just now
  std::uint64_t names = 0;       ///< that are known just now
  std::uint64_t files = 0;       ///< of GDB's lists, that are known just now
  std::uint64_t handed_on = 0;   ///< calls that the next definition was left to answer
  std::uint64_t refused = 0;     ///< entries that cannot be read or are not believed
  Error latest_refusal{};        ///< of these; `at` is the entry; unspecified when there was none
};
/// Thread-safe; not signal-safe.
ListenStatus listen_status() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
