// Holds a description of code against the code itself, without running it. Every path from the entry is followed, and
// at every instruction the row of the description is compared with what the instructions before it have done: to the
// CFA, to the return address, to each register that calls preserve, to the signature of the return address.
//
// There are three answers. The row agrees; it disagrees, and the finding says what the row says and what the code does;
// or it cannot be told, and the finding says why. A row that cannot be compared is never called wrong.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/rows/frame_row.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// The result of a comparison of a description with the code.
enum class Verdict : std::uint8_t { agrees, cannot_tell, disagrees };

/// The reason why a row cannot be compared.
enum class CannotTell : std::uint8_t {
  none,
  other_cpu,            ///< code of this CPU is not checked, only that of x86-64 and AArch64
  no_row,               ///< the description has no row there
  broken_row,           ///< the description cannot be read there
  expression,           ///< the row has an expression or a rule that is not followed
  other_frame,          ///< the row takes SP from elsewhere, as those of longjmp do: it is not that of the caller
  unreadable,           ///< the code cannot be read
  unknown_instruction,  ///< data, or an instruction that is not known, is there or on the way there
  inside_instruction,   ///< a jump leads into the middle of an instruction
  indirect_jump,        ///< only indirect jumps can lead there
  no_path,              ///< no path leads there; exceptions, other entries or a debugger may
  stack_pointer,        ///< SP, or the register of the CFA, has an unknown distance from the CFA
  paths_differ,         ///< paths that do different things lead there
  too_long,             ///< there is more code than is followed
};
inline constexpr std::size_t k_cannot_tell_reasons = 14;
/// A text such as "only indirect jumps lead there". Never null. Signal-safe.
const char* reason_text(CannotTell reason) noexcept;

/// Code of any target. The memory must outlive the check, not the report.
struct CheckedCode {
  const Arch& arch;
  AddrRange range;
  const Memory& memory;
  Addr lsda = 0;              ///< language-specific data: exceptions continue at its landing pads; 0: none
  Addr landing_pad_base = 0;  ///< 0: the code's first address
};

/// Gives the row at an address; FrameRow::range tells how far it holds. False: there is none. It is called with
/// ascending addresses first, and then with any to print rows.
using RowAt = std::function<Found(Addr at, FrameRow& out)>;

/// Adjacent instructions with the same verdict for the same reason.
struct CheckFinding {
  AddrRange range;
  std::uint32_t instructions = 1;
  Verdict verdict = Verdict::cannot_tell;
  CannotTell why = CannotTell::none;
  /// The register whose rule disagrees, or cannot be compared: the CPU's SP stands for the CFA. k_no_reg: all of them.
  RegNum reg = k_no_reg;
  std::string row_says;       ///< "rbx=[cfa-24]"
  std::string code_does;      ///< "nothing was stored there"
  std::optional<Addr> cause;  ///< the instruction that made the difference, if there is one
  std::vector<RegNum> also;   ///< other registers whose rules disagree
};

/// The result for all instructions of a procedure.
struct CheckReport {
  Verdict verdict = Verdict::cannot_tell;  ///< the worst of all instructions, disagrees before cannot_tell
  std::uint64_t agreed = 0;                ///< instructions of each verdict
  std::uint64_t disagreed = 0;
  std::uint64_t undecided = 0;
  std::array<std::uint32_t, k_cannot_tell_reasons> reasons{};  ///< undecided instructions by reason
  /// Places where the row itself was taken for what the code has done: the entry, if the first row is not that of a
  /// call, and code to which no path is known.
  std::uint32_t assumed = 0;
  /// Padding behind the last instruction, to which nothing leads: it is no part of the procedure. No verdict counts it.
  AddrRange padding{};
  /// Code at the end that is not the procedure's, such as the next procedure or a PLT: nothing leads there, it
  /// begins with the row of an entry or returns like code that is entered there, and its rows contradict each other, or
  /// it jumps by a word of the dynamic linker. No verdict counts it as wrong.
  AddrRange foreign{};
  /// Findings in the order of addresses, at most k_most_findings. If there are more, those that disagree are kept.
  std::vector<CheckFinding> findings;
  bool has_more_findings = false;
  /// A table of exceptions or of a switch was asked for, or a CFA depends on the pc. Otherwise all code of these bytes
  /// and rows has the same result.
  bool depends_on_more = false;

  static constexpr std::size_t k_most_findings = 64;
};

class CheckedParts;
CheckReport check(const CheckedCode& code, const RowAt& rows, CheckedParts* parts);

/// Code that is described in parts, each of which is checked by itself, and the ways from one part into another: direct
/// jumps, calls, and landing pads of calls. Checks of all parts record them. Parts into which more ways lead than were
/// known are due in the next round: they are checked again, and their rows are compared with the states that the ways
/// bring there. Parts that do not begin with the row of a call are due in any case: their first report is empty.
class CheckedParts {
 public:
  CheckedParts();
  ~CheckedParts();
  CheckedParts(const CheckedParts&) = delete;
  CheckedParts& operator=(const CheckedParts&) = delete;

  /// Ends a round of checks. True: there are parts that are due. After some rounds there are none.
  bool begin_round();
  bool is_due(AddrRange part) const noexcept;

  class Ways;

 private:
  friend CheckReport check(const CheckedCode& code, const RowAt& rows, CheckedParts* parts);
  std::unique_ptr<Ways> ways_;
};

/// More code is not followed.
inline constexpr Addr k_most_checked_code = Addr{4} << 20;

/// Compares all rows of the code. Nothing is executed, and the bytes may be anything. The time is proportional to the
/// size of the code. The memory is 8 bytes for each of its bytes, some hundreds for each target of a jump, and 1 KiB
/// for each way with a frame into other code. `parts`: the code is one of them. Allocates; throws std::bad_alloc.
CheckReport check(const CheckedCode& code, const RowAt& rows, CheckedParts* parts = nullptr);
/// Compares the rows of one FDE.
CheckReport check(const Fde& fde, const CfiContext& context, const Memory& memory, CheckedParts* parts = nullptr);

/// A text such as "0x401036: the row says cfa=rsp+24, but rsp is cfa-16, since the instruction at 0x401034". If the
/// code's first address is given, places are told as offsets from there, "+0x36". Allocates.
std::string text(const CheckFinding& finding, const Arch& arch, Addr start = 0);

}  // namespace jitunwind
#pragma GCC visibility pop
