// Follows all paths of some code and compares the row at each instruction with the state that each path brings there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "jitunwind/unwind_core/arch/instruction.h"
#include "jitunwind/unwind_core/check/check.h"
#include "jitunwind/unwind_core/check/code_values_p.h"
#include "jitunwind/unwind_core/check/row_claims_p.h"

namespace jitunwind::check_code {

/// All but landing pads is told by offsets in the code.
class KnownJumps {
 public:
  /// Reads the landing pads of the code's language-specific data. Data of which not all can be right has none.
  explicit KnownJumps(const CheckedCode& code);

  /// The landing pad of the call whose last byte is there; 0: there is none. It may be in another part of the
  /// procedure.
  Addr pad_of(std::uint32_t offset) const noexcept;
  /// Calls visit(address) for each landing pad.
  template <class Visitor>
  void visit_pads(Visitor visitor) const {
    for (const Site& site : sites_)
      if (site.pad != 0) visitor(site.pad);
  }
  /// Appends the targets that a table has. False: it is not that of a jump in this code. An open one ends before the
  /// first target that is not in the code.
  bool add_targets(const JumpTable& table, std::vector<std::uint32_t>& out) const;

 private:
  struct Site {
    std::uint32_t begin, end;
    Addr pad;
  };
  void read_sites(std::span<const std::byte> table, Addr at, std::uint8_t encoding, Addr base);
  bool add_site(Addr begin, Addr size, Addr pad);

  const CheckedCode& code_;
  Addr start_;
  std::vector<Site> sites_;  // ascending
};

}  // namespace jitunwind::check_code

namespace jitunwind {

class CheckedParts::Ways {
 public:
  struct Way {
    Addr target = 0;
    bool is_pad = false;  ///< the target is a landing pad of a call, which may not throw
    check_code::CodeValues values;
  };

  /// Begins the check of a part. True: it waits for a later round, when more ways into it are known.
  bool waits(AddrRange part, bool begins_as_entry);
  /// Calls visit(way) for each way into the part that is known, those with a frame first.
  template <class Visitor>
  void visit_ways_into(AddrRange part, const check_code::Machine& machine, Visitor visitor) {
    waiting_.erase(part.begin);
    const auto end = framed_.lower_bound(part.end);
    for (auto at = framed_.lower_bound(part.begin); at != end; ++at) {
      at->second.is_new = false;
      Way way = at->second.way;
      way.values.count_from(0 - static_cast<std::uint32_t>(part.begin));
      visitor(way);
    }
    const auto last = called_.lower_bound(part.end);
    for (auto at = called_.lower_bound(part.begin); at != last; ++at) {
      at->second = false;
      visitor({at->first, false, check_code::CodeValues::at_entry(machine)});
    }
  }
  /// A call, or a jump with the state of a procedure's entry.
  void add_call(Addr target) {
    Addr& last = last_calls_[static_cast<std::size_t>(target >> 4) % last_calls_.size()];
    if (last != target) calls_.push_back(last = target);
  }
  /// A way out of the part that begins at `start`.
  void add(Way way, Addr start, const check_code::Machine& machine);

  bool begin_round();
  bool is_due(AddrRange part) const noexcept { return due_.contains(part.begin); }

 private:
  struct Part {
    AddrRange range;
    bool begins_as_entry;
  };
  struct Framed {
    Way way;  // the places of instructions count from 0
    bool is_new;
  };
  const Part* part_at(Addr target) const noexcept;

  std::vector<Part> parts_;              // ascending behind the first round
  std::multimap<Addr, Framed> framed_;   // by target
  std::map<Addr, bool> called_;          // places that are no begin with the row of an entry, and whether they are new
  std::vector<Addr> calls_;              // of this round
  std::array<Addr, 1024> last_calls_{};  // of these, most are of few targets
  std::set<Addr> due_, waiting_;         // begins of parts
  unsigned rounds_ = 0;
};

}  // namespace jitunwind

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
