// Entries of GDB's list as Erlang's just-in-time compiler makes them: no ELF files, but structures of its own
// (beam_jit_metadata.cpp of OTP 25 to 27).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What one entry says: of the emulator, once in a process, or of a module.
struct ErlangEntry {
  /// A function, or another piece of code that has a name.
  struct Range {
    AddrRange code{};
    std::string name{};  ///< "module:function/arity"; any bytes
    SourceLines lines{};
  };
  /// Of all Erlang processes.
  struct Emulator {
    bool has_frame_pointers = false;  ///< false: frames are return addresses among terms
    Addr normal_exit = 0;             ///< where the outermost frame of each Erlang process returns to
  };
  std::optional<Emulator> emulator{};
  std::string module{};
  AddrRange code{};           ///< of the module; empty: the entry is the emulator's
  std::vector<Range> ranges;  ///< ascending; within `code`
};

/// Whether it may be one, by its first bytes: an ELF file is none.
bool is_erlang_entry(std::span<const std::byte> file, const Arch& arch) noexcept;

/// Of 64-bit targets. Ranges that are empty or not within the module are left out; names are cut at 4 KiB. Errors:
/// truncated, bad_structure. O(bytes), but for sorting; throws std::bad_alloc.
Result<ErlangEntry> read_erlang_entry(std::span<const std::byte> file, const Arch& arch);

}  // namespace jitunwind
#pragma GCC visibility pop
