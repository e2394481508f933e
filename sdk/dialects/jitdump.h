// Jitdumps, jit-PID.dump: the records that JITs write for perf about each piece of code that they make (Linux,
// tools/perf/Documentation/jitdump-specification.txt). JITs append to the file while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A record about code. Spans and texts are valid during the call.
struct JitDumpRecord {
  enum class Kind : std::uint8_t {
    load,   ///< `code` is there, with `name`, `bytes`, and `frames` if there are any
    move,   ///< what was at `from` is at `code` now
    lines,  ///< `lines` of the code that `code` begins
  };
  /// A line of the source, for the code from `at` to the next entry.
  struct Line {
    Addr at = 0;
    std::uint32_t line = 0;
    std::string_view file{};
  };
  Kind kind = Kind::load;
  AddrRange code{};
  Addr from = 0;
  std::string_view name{};
  std::span<const std::byte> bytes{};
  std::span<const std::byte> frames{};  ///< .eh_frame followed by .eh_frame_hdr
  std::uint64_t header_size = 0;        ///< how many of these bytes are .eh_frame_hdr
  std::span<const Line> lines{};
};

/// Returns the lines of a record of kind `lines`. Lines before the code's begin are left out. If the lines begin 64
/// bytes after it, they are taken to count from an ELF header in front of the code.
SourceLines lines_of(const JitDumpRecord& record);

/// Keeps lines until the code that they belong to is loaded: they come before it. No more than 2^16 pieces of code
/// wait.
class WaitingLines {
 public:
  /// Precondition: the record is of kind `lines`.
  void keep(const JitDumpRecord& record);
  /// Returns and removes the lines of the loaded code that begins at `code`.
  SourceLines take(Addr code);

 private:
  std::unordered_map<Addr, SourceLines> lines_;
};

/// True for "jit-PID.dump" in any folder.
bool is_jitdump(std::string_view path) noexcept;

/// Reads a dump as it grows, in pieces of any size. A record counts once it is complete. Records of other kinds are
/// skipped. So are inconsistent ones and those of more than k_longest bytes, and these are counted. Not thread-safe;
/// allocates as much as one record takes.
class JitDumpReader {
 public:
  static constexpr std::size_t k_longest = std::size_t{1} << 24;

  using Tell = std::function<void(const JitDumpRecord&)>;

  /// Reads the next piece of the file and calls `tell` for each record that ends in it. Error bad_structure: this is no
  /// jitdump, or one of another version; everything until restart() is skipped then.
  Status read(std::span<const std::byte> piece, const Tell& tell);
  /// Begins a new file.
  void restart() noexcept { *this = {}; }

  /// The process and the CPU (e_machine) that the header names; nothing before the header is read.
  std::optional<std::uint32_t> process() const noexcept { return process_; }
  std::uint32_t machine() const noexcept { return machine_; }
  bool big_endian() const noexcept { return big_endian_; }
  std::size_t passed_by() const noexcept { return passed_by_; }
  /// This library has written the file (attach_perf()): its records are procedures already.
  bool is_own() const noexcept { return is_own_; }

 private:
  Status take_header();
  void take_record(const Tell& tell);
  std::size_t wanted() const noexcept;

  std::vector<std::byte> begun_;   // the header, or a record, as far as it has come
  std::uint64_t skip_ = 0;         // bytes of a record that is passed by
  std::vector<std::byte> frames_;  // of the code that is loaded next
  std::uint64_t frames_header_ = 0;
  std::optional<std::uint32_t> process_{};
  std::uint32_t machine_ = 0;
  std::size_t passed_by_ = 0;
  bool big_endian_ = false;
  bool is_known_ = false;  // its header was read
  bool is_refused_ = false;
  bool is_own_ = false;
};

}  // namespace jitunwind
#pragma GCC visibility pop
