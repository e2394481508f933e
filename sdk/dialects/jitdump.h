// Jitdumps, jit-PID.dump: what JITs write for perf of each piece of code that they make (Linux,
// tools/perf/Documentation/jitdump-specification.txt). JITs append to the file while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/address.h"
#include "jitunwind/unwind_core/error.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What a record says of code. Spans and texts are valid during the call.
struct JitDumpRecord {
  enum class Kind : std::uint8_t {
    load,   ///< `code` is there, with `name`, `bytes`, and `frames` if there are any
    move,   ///< what was at `from` is at `code` now
    lines,  ///< `lines` of the code that `code` begins
  };
  /// From `at` to the next one, the code is of that line.
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
  std::span<const std::byte> frames{};  ///< .eh_frame, and behind it its header
  std::uint64_t header_size = 0;        ///< of these bytes: of .eh_frame_hdr
  std::span<const Line> lines{};
};

/// Of a record of that kind. Lines in front of the code's begin are left out. Those that begin 64 bytes behind it are
/// taken to be of an ELF file with that code behind its header.
SourceLines lines_of(const JitDumpRecord& record);

/// Lines, which come in front of the code that they are of. Of 2^16 pieces of code that have not come no more are kept.
class WaitingLines {
 public:
  /// The record is of kind `lines`.
  void keep(const JitDumpRecord& record);
  /// Those of code that has come, by its begin.
  SourceLines take(Addr code);

 private:
  std::unordered_map<Addr, SourceLines> lines_;
};

/// "jit-PID.dump", at any place.
bool is_jitdump(std::string_view path) noexcept;

/// Reads a dump as it grows, piece by piece, wherever pieces begin and end. A record counts when all of it has come.
/// Records of other kinds are passed by; so are those that do not add up and those of more than k_longest bytes, which
/// are counted. Not thread-safe; allocates as much as one record takes.
class JitDumpReader {
 public:
  static constexpr std::size_t k_longest = std::size_t{1} << 24;

  using Tell = std::function<void(const JitDumpRecord&)>;

  /// The next piece of the file. Error bad_structure: it is no dump, or of another version; from then on all is passed
  /// by until restart(). `tell` is called for each record that ends in the piece.
  Status read(std::span<const std::byte> piece, const Tell& tell);
  /// The file begins anew.
  void restart() noexcept { *this = {}; }

  /// Process and CPU (e_machine) that the file says it is of; nothing as long as its header has not come.
  std::optional<std::uint32_t> process() const noexcept { return process_; }
  std::uint32_t machine() const noexcept { return machine_; }
  std::size_t passed_by() const noexcept { return passed_by_; }

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
};

}  // namespace jitunwind
#pragma GCC visibility pop
