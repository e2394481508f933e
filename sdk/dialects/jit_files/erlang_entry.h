// Entries of GDB's list that Erlang's just-in-time compiler makes. They are structures of its own, not ELF files
// (beam_jit_metadata.cpp of OTP 25 to 27).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// One entry: the emulator's, which a process has once, or a module's.
struct ErlangEntry {
  /// A function or another named piece of code.
  struct Range {
    AddrRange code{};
    std::string name{};  ///< "module:function/arity"; any bytes
    SourceLines lines{};
  };
  /// Facts that hold for all Erlang processes.
  struct Emulator {
    bool has_frame_pointers = false;  ///< false: frames are return addresses among terms
    Addr normal_exit = 0;             ///< where the outermost frame of each Erlang process returns to
  };
  std::optional<Emulator> emulator{};
  std::string module{};
  AddrRange code{};           ///< of the module; empty: the entry is the emulator's
  std::vector<Range> ranges;  ///< ascending; within `code`
};

/// Decides by the first bytes whether this may be an entry of Erlang's; an ELF file is not.
bool is_erlang_entry(std::span<const std::byte> file, const Arch& arch) noexcept;

/// Reads an entry of a 64-bit target. Ranges that are empty or outside the module are left out; names are cut at 4 KiB.
/// Errors: truncated, bad_structure. O(bytes), except for sorting; throws std::bad_alloc.
Result<ErlangEntry> read_erlang_entry(std::span<const std::byte> file, const Arch& arch);

}  // namespace jitunwind
#pragma GCC visibility pop
