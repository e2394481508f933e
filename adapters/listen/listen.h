// JITs that do not know this library announce their code to others: libgcc, Intel's profilers, perf. A program that
// loads or links libjitunwind-listen hears these announcements, too. Announced code becomes procedures of the registry,
// which walks, names and throws find like any other. docs/listen.md.
#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The interfaces by which JITs announce code: each is a word of JITUNWIND_LISTEN, and a bit of listen().
enum class Dialect : std::uint32_t {
  frames = 1,  ///< "frames": the __register_frame family, call frame information of libgcc's and LLVM's interface
  itt = 2,     ///< "itt": names that an agent of Intel's interface gets (libjitunwind-itt)
  maps = 4,    ///< "maps": names of /tmp/perf-PID.map and of jitdumps, which a thread of this library follows
  gdb = 8,     ///< "gdb": names and call frame information of GDB's lists, which the same thread follows
};
inline constexpr std::uint32_t k_all_dialects = 15;
/// Not a dialect, but the other word: "publish". Announced code that is a second old is published, for tools that know
/// nothing of this library (docs/listen.md "Published pages"). Alone it implies all dialects in JITUNWIND_LISTEN.
inline constexpr std::uint32_t k_publish = 16;
/// The dialects that never need a thread.
inline constexpr std::uint32_t k_silent_dialects = 3;

/// Listens to these dialects from now on, and to no others: bits of Dialect, and k_publish. Earlier announcements stay
/// known until their owner takes them back. The default without a call is JITUNWIND_LISTEN, words separated by commas:
/// all dialects without it, none with "nothing". `maps` and `gdb` imply `frames`. The thread of these two begins with
/// the call, or with the program if JITUNWIND_LISTEN names them. It otherwise begins with an engine: an object loaded
/// with the program has a list of GDB's, or __register_frame is called. Thread-safe. Signal-safe without `maps` and
/// `gdb`.
void listen(std::uint32_t dialects = k_all_dialects) noexcept;

/// Announces code and its present name, for agents of a dialect with names alone. A name of code that this overlaps is
/// forgotten. If call frame information of the code is heard, both become one procedure, in any order. Does nothing if
/// the dialect is not listened to. Thread-safe; not signal-safe.
void say_name(Dialect dialect, const AddrRange& code, std::string_view name) noexcept;
/// Announces source lines of code that has a name and begins there; other code is ignored. They are forgotten with the
/// name, and stay if the same code is only named anew. Thread-safe; not signal-safe.
void say_lines(Dialect dialect, Addr begin, std::span<const ToldLine> lines) noexcept;
/// Forgets names and lines of all code that begins in this range.
void say_gone(Dialect dialect, const AddrRange& code) noexcept;

/// Calls `receive` with the source line of the code at `at`, and with `into`. Returns false and calls nothing if no
/// dialect has announced the line. `receive` must not call functions of this header. Thread-safe; not signal-safe.
bool receive_heard_line(Addr at, void (*receive)(void* into, const ToldLine& line) noexcept, void* into) noexcept;
/// The source line of the code at `at`. Empty: no dialect has announced it. Thread-safe; not signal-safe; throws
/// std::bad_alloc. The caller's own run-time library allocates the text, which frees it: the listening library has
/// another one.
inline std::optional<SourceLine> heard_line(Addr at) {
  struct Copy {
    SourceLine line{};
    bool has_memory = true;
  } copy;
  const auto take = [](void* into, const ToldLine& line) noexcept {
    Copy& made = *static_cast<Copy*>(into);
    try {
      made.line = {std::string(line.file), line.line};
    } catch (const std::bad_alloc&) {
      made.has_memory = false;
    }
  };
  if (!receive_heard_line(at, take, &copy)) return std::nullopt;
  if (!copy.has_memory) throw std::bad_alloc();
  return std::move(copy.line);
}

/// Counters of the announcements so far.
struct ListenStatus {
  /// Calls of __register_frame by libraries that were loaded with the program reach this library. False: another
  /// definition comes first in search order, since this library was loaded late (dlopen), or is linked into a program
  /// that does not export the name. Calls within one object, to a static libgcc, never reach it.
  bool are_frames_told_here = false;
  std::uint32_t dialects = 0;         ///< dialects that are listened to
  std::uint64_t told = 0;             ///< calls that announced call frame information
  std::uint64_t taken_back = 0;       ///< calls that took it back
  std::uint64_t never_told = 0;       ///< calls that took back an address never announced
  std::uint64_t procedures = 0;       ///< procedures registered now
  std::uint64_t names = 0;            ///< names known now
  std::uint64_t files = 0;            ///< files of GDB's lists known now
  std::uint64_t handed_on = 0;        ///< calls that were passed on to the next definition
  std::uint64_t refused = 0;          ///< entries that cannot be read or are not believed
  Error latest_refusal{};             ///< the latest of these; `at` is the entry; unspecified without one
  std::uint64_t published = 0;        ///< procedures that tools know by files now
  std::uint64_t published_files = 0;  ///< these files
  std::uint64_t unpublished = 0;      ///< pages of code that could not be published, or not whole; at each time they
                                      ///< are tried
  Error latest_unpublished{};         ///< the latest reason; `at` is in the pages; unspecified without one
};
/// Thread-safe; not signal-safe.
ListenStatus listen_status() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
