// Follows all paths of some code and compares the row at each instruction with the state that each path brings there.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "jitunwind/unwind_core/check/code_ways_p.h"
#include "jitunwind/unwind_core/check/known_jumps_p.h"
#include "jitunwind/unwind_core/check/row_claims_p.h"

namespace jitunwind::check_code {

class CodePaths {
 public:
  /// `bytes` are the code; it may be shorter if the rest cannot be read. `ways`: between it and other code; null: they
  /// are not asked for.
  CodePaths(const Machine& machine, AddrRange code, std::span<const std::byte> bytes, const ClaimedRows& rows,
            const KnownJumps& jumps, CheckedParts::Ways* ways);

  void follow_all(bool begins_as_entry);
  std::uint32_t assumed() const noexcept;

  /// Visits each instruction that was judged in order: (offset, note or null).
  template <class Visitor>
  void visit(Visitor visitor) const {
    auto note = notes_.begin();
    for (std::uint32_t at = 0; at < shapes_.size(); ++at) {
      if ((shapes_[at] & k_seen) == 0) continue;
      while (note != notes_.end() && note->offset < at) ++note;
      visitor(at, note != notes_.end() && note->offset == at ? &note->judgement : nullptr);
    }
  }
  /// The end of the last instruction that was judged: padding to which nothing leads is not.
  std::uint32_t judged_end() const noexcept;
  /// The begin of other code at the end: nothing leads there, its first row is that of an entry, all of it is code that
  /// ends, and it begins as a stub of the dynamic linker or does something else than its rows say. size(): there is
  /// none.
  std::uint32_t foreign_begin() const noexcept { return foreign_begin_; }
  /// The number of bytes that could be read.
  std::size_t size() const noexcept { return bytes_.size(); }
  /// Whether the table of a switch was asked for.
  bool asks_tables() const noexcept { return asks_tables_; }
  std::uint32_t length_at(std::uint32_t offset) const noexcept { return shapes_[offset] & k_length; }

 private:
  /// k_behind_end: control comes to the instruction by jumps alone, as far as the first pass tells: nothing but padding
  /// is between it and code that ends, or a call, which may not return.
  static constexpr std::uint8_t k_length = 0x0f, k_is_head = 0x10, k_behind_end = 0x20, k_seen = 0x40;
  static constexpr std::uint32_t k_no_head = ~std::uint32_t{0};

  /// A judgement at an instruction that does not agree.
  struct Note {
    std::uint32_t offset;
    std::uint32_t head;  ///< k_no_head: of none
    std::uint32_t turn;
    Judgement judgement;
  };
  /// Code that several paths may lead to.
  struct Head {
    std::uint32_t offset;
    bool is_assumed;
    bool waits;
    CodeValues values;
    std::uint32_t turn = 0;     ///< how often it was followed: only what the last turn has found counts
    std::uint32_t end = 0;      ///< of the last turn
    std::uint32_t assumed = 0;  ///< in the last turn
  };
  /// A path on its way.
  struct Path {
    std::uint32_t head;
    std::uint32_t at;
    CodeValues values;
    bool is_assumed;                       ///< it began with a row, not with the entry
    std::uint32_t judged_row = k_no_head;  ///< that of the last judgement, if nothing has changed since
    Judgement judgement{};
    RegNum equal = k_no_reg;  ///< register that the last instruction has compared with SP
    std::uint32_t called =
        k_no_head;  ///< row of a call, behind which there was nothing but padding; k_no_head: no call
  };

  const MachineInstruction& read(std::uint32_t offset) noexcept;
  void find_heads();
  CodePiece piece(std::uint32_t begin, std::uint32_t end) const noexcept {
    return {bytes_.subspan(begin, end - begin), code_.begin + begin};
  }
  CodePiece piece_before(std::uint32_t end) const noexcept;
  std::uint32_t instruction_before(std::uint32_t end) const noexcept;
  std::uint32_t branch_to(std::uint32_t offset);
  struct TableJump {
    std::uint32_t at, first, last;  // first to last of targets_
    JumpTable table;
  };
  bool find_table(TableJump& jump);
  void find_open_targets();
  bool keep_targets(TableJump& jump);
  std::span<const std::uint32_t> targets_of(const TableJump& jump) const noexcept {
    return std::span(targets_).subspan(jump.first, jump.last - jump.first);
  }
  bool mark_head(Addr target);
  void follow(std::uint32_t head);
  bool step(Path& path);
  bool ends_in_call(Path& path, std::uint32_t row) const noexcept;
  void settle(Path& path, const RowClaims& row) noexcept;
  const Judgement& judge(Path& path, std::uint32_t row) const noexcept;
  void flow(Path& path, std::uint32_t to);
  bool flow_if_right(Path& path, std::uint32_t to);
  void jump(Path& path, const MachineInstruction& i);
  void jump_by_table(Path& path);
  void land(const Path& path, Addr pad, std::uint32_t from);
  void leave(const Path& path, Addr target, std::uint32_t from, bool is_pad);
  void begin(bool is_entry);
  void enter(const CheckedParts::Ways::Way& way);
  void land_missed();
  bool enter_cases();
  void follow_waiting();
  void add_head(std::uint32_t offset, const CodeValues& values, bool is_assumed);
  void work();
  void assume_unreached();
  void assume(std::uint32_t offset);
  bool returns_from(std::uint32_t at);
  void find_foreign(std::uint32_t begin);
  void note_overlaps();
  void drop_old_notes();
  void note(std::uint32_t offset, CannotTell why);
  void keep_candidate(const CodeValues& values);
  void note(const Path& path, std::uint32_t offset, Judgement judgement);

  const Machine& machine_;
  AddrRange code_;
  std::span<const std::byte> bytes_;
  const ClaimedRows& rows_;
  const KnownJumps& jumps_;
  CheckedParts::Ways* const ways_;
  std::map<std::uint32_t, CheckedParts::Ways::Way> exits_;  // by jump or call
  std::vector<std::uint8_t> shapes_;                        // by offset
  std::vector<std::uint32_t> head_at_;                      // by offset
  std::vector<std::uint16_t> read_at_;  // by offset: the number of an instruction in read_; empty for much code
  std::vector<MachineInstruction> read_;
  MachineInstruction unlisted_{};  // the last that is not in it
  std::size_t ways_left_;          // to jumps of switches, from branches
  struct Missed {
    Path path;
    std::uint32_t turn;
  };
  std::map<std::uint32_t, Missed> missed_;  // by landing pad: a call with another frame than the pad's row says
  std::map<std::uint32_t, Missed> open_;    // by jump: a table that nothing bounds
  std::vector<TableJump> table_jumps_;      // ascending
  std::vector<std::uint32_t> targets_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> branches_;  // target and place, ascending; empty: not asked for
  std::vector<Head> heads_;
  std::vector<std::uint32_t> waiting_;  // offsets, of which the first in the code comes first
  std::vector<CodeValues> candidates_;  // behind calls, and at indirect jumps
  std::vector<Note> notes_;
  std::size_t most_notes_ = 256;                // before those of old turns are dropped
  CannotTell unreached_ = CannotTell::no_path;  // why no path leads to code
  std::uint32_t row_ = 0;                       // of the last instruction
  std::uint32_t assumed_ = 0;
  std::uint32_t judged_ = 0;       // number of heads
  std::uint32_t refuted_end_ = 0;  // behind the last instruction where a row contradicts the one that a path began with
  std::uint32_t foreign_begin_ = 0;
  bool asks_tables_ = false;
  bool may_overlap_ = false;  // a path has met an instruction that the first pass has not
  std::uint64_t steps_left_;
};

}  // namespace jitunwind::check_code
