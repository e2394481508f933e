// Follows all paths of some code and compares the row at each instruction with the state that each path brings there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jitunwind/unwind_core/check/row_claims_p.h"

namespace jitunwind::check_code {

class CodePaths {
 public:
  /// `bytes` are the code; it may be shorter if the rest cannot be read.
  CodePaths(const Machine& machine, AddrRange code, std::span<const std::byte> bytes, const ClaimedRows& rows);

  void follow_all();
  std::uint32_t assumed() const noexcept { return assumed_; }

  /// A judgement at an instruction that does not agree.
  struct Note {
    std::uint32_t offset;
    Judgement judgement;
  };
  /// Visits each instruction that was judged in order: (offset, note or null).
  template <class Visitor>
  void visit(Visitor visitor) const {
    auto note = notes_.begin();
    for (std::uint32_t at = 0; at < verdicts_.size(); ++at) {
      const auto is_other = [&](const Note& n) {
        return n.offset < at || (n.offset == at && static_cast<std::uint8_t>(n.judgement.verdict) > verdicts_[at]);
      };
      while (note != notes_.end() && is_other(*note)) ++note;
      if (verdicts_[at] == k_unseen) continue;
      visitor(at, note != notes_.end() && note->offset == at ? &note->judgement : nullptr);
    }
  }
  /// The end of the last instruction that was judged: padding to which nothing leads is not.
  std::uint32_t judged_end() const noexcept;
  /// The number of bytes that could be read.
  std::size_t size() const noexcept { return bytes_.size(); }
  std::uint32_t length_at(std::uint32_t offset) const noexcept { return shapes_[offset] & k_length; }

 private:
  static constexpr std::uint8_t k_unseen = 0xff;
  static constexpr std::uint8_t k_length = 0x0f, k_is_head = 0x10, k_pads = 0x20;
  static constexpr std::uint32_t k_no_head = ~std::uint32_t{0};

  /// Code that several paths may lead to.
  struct Head {
    std::uint32_t offset;
    bool is_assumed;
    bool waits;
    CodeValues values;
  };
  /// A path on its way.
  struct Path {
    std::uint32_t at;
    CodeValues values;
    bool is_assumed;                       ///< it began with a row, not with the entry
    std::uint32_t judged_row = k_no_head;  ///< that of the last judgement, if nothing has changed since
    Judgement judgement{};
    RegNum equal = k_no_reg;  ///< register that the last instruction has compared with SP
    std::uint32_t called =
        k_no_head;  ///< row of a call, behind which there was nothing but padding; k_no_head: no call
  };

  MachineInstruction read(std::uint32_t offset) const noexcept;
  void find_heads();
  void follow(std::uint32_t head);
  bool step(Path& path);
  bool ends_in_call(const Path& path, std::uint32_t row, const Judgement& judgement) const noexcept;
  void settle(Path& path, const RowClaims& row) noexcept;
  const Judgement& judge(Path& path, std::uint32_t row) const noexcept;
  void flow(Path& path, std::uint32_t to);
  void jump(Path& path, const MachineInstruction& i);
  void add_head(std::uint32_t offset, const CodeValues& values, bool is_assumed);
  void work();
  void assume_unreached();
  void assume(std::uint32_t offset);
  void note_overlaps();
  void keep_candidate(const CodeValues& values);
  void note(std::uint32_t offset, Judgement judgement, bool is_assumed);

  const Machine& machine_;
  AddrRange code_;
  std::span<const std::byte> bytes_;
  const ClaimedRows& rows_;
  std::vector<std::uint8_t> shapes_;    // by offset
  std::vector<std::uint8_t> verdicts_;  // by offset: a Verdict
  std::vector<std::uint32_t> head_at_;  // by offset
  std::vector<std::uint16_t> read_at_;  // by offset: the number of an instruction in read_; empty for much code
  std::vector<MachineInstruction> read_;
  std::vector<Head> heads_;
  std::vector<std::uint32_t> waiting_;
  std::vector<CodeValues> candidates_;  // behind calls, and at indirect jumps
  std::vector<Note> notes_;
  CannotTell unreached_ = CannotTell::no_path;  // why no path leads to code
  std::uint32_t row_ = 0;                       // of the last instruction
  std::uint32_t assumed_ = 0;
  std::uint32_t judged_ = 0;  // number of heads
  bool judges_ = false;
  bool may_overlap_ = false;  // a path has met an instruction that the first pass has not
  std::uint64_t steps_left_;
};

}  // namespace jitunwind::check_code
