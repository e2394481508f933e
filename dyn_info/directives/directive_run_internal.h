// A run through the directives of one procedure that stops at ascending addresses. All rows of a procedure therefore
// cost no more than a lookup of the last one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/directives/frame_state_p.h"
#include "jitunwind/dyn_info/directives/region_list_internal.h"

namespace jitunwind {

// Runs the region list of one procedure up to an instruction: regions, times, labels and the stack of region states
// (docs/directives.md), on the FrameState. It serves rows and, with an observer, the check of a whole list.
//
// Labels and region states may be any number, and nothing is allocated: a state that is needed again is rebuilt. Every
// state has a Point in the list. The way back from it over COPY_STATE and POP_FRAMES gives the few stretches of
// directives that lead to it, and running these gives the state.

/// Observes a run. If there is an observer, a wrong directive is reported and left out instead of ending the run.
class DirectiveObserver {
 public:
  struct Place {
    int region;
    int directive;      ///< -1: none in particular
    std::int64_t unit;  ///< instruction index in the procedure at which it takes effect
  };
  virtual void finding(ErrorCode code, const Place& place, const char* what) = 0;
  /// Receives the state from instruction `place.unit` on; place.directive is the last one that changed it, or -1.
  virtual void state(const Place& place, const FrameState& state) = 0;
  /// `place.directive` stored a register into memory; `above_sp`: the distance of the slot from SP, if it is known.
  virtual void spill(const Place& place, RegNum reg, std::optional<std::int64_t> above_sp, const FrameState& state) = 0;
  /// A region ends; its POP_FRAMES has not removed states yet.
  virtual void region_end(int region, std::int64_t unit, const FrameState& state) = 0;

 protected:
  ~DirectiveObserver() = default;
};

/// The reason why `op` is wrong in any state: the CPU does not have its registers, or they cannot be used so. Null:
/// nothing is wrong. Every case is e_reg. `reg`: op.reg of the CPU, null if it has none.
[[gnu::visibility("default")]] const char* wrong_register(const unw_dyn_op_t& op, const RegisterInfo* reg,
                                                          const Arch& arch) noexcept;

class [[gnu::visibility("default")]] DirectiveMachine {
 public:
  /// `units`: length of the procedure. `first`: 0 if there are no regions.
  DirectiveMachine(const Arch& arch, const RegionReader& reader, Addr first, std::int64_t units,
                   DirectiveObserver* observer = nullptr) noexcept;

  /// Runs to the state at instruction index `x`, 0 <= x < units; not smaller than the one before. Directives before
  /// that one are not run again. After an error every x has an error. Error::at is the code offset in bytes.
  Status run_to(std::int64_t x) noexcept;

  const FrameState& state() const noexcept { return state_; }
  /// The range of instruction indices around x for which the state holds.
  std::int64_t holds_from() const noexcept { return holds_from_; }
  std::int64_t holds_to() const noexcept { return holds_to_; }
  /// Number of directives examined so far, repetitions included.
  std::uint32_t work() const noexcept { return WorkBudget{}.ops_left - budget_.ops_left; }
  /// The place that the run has reached.
  DirectiveObserver::Place place() const noexcept { return {static_cast<int>(region_), -1, unit_}; }

 private:
  static constexpr std::int64_t k_before_region = k_when_entry - 1;

  /// The state after all directives of `region` with effective when <= `when`; k_before_region: its entry state.
  struct Point {
    std::uint32_t region;
    std::int64_t when;
  };
  /// Directives from <= when <= to of a region, without COPY_STATE.
  struct Stretch {
    std::uint32_t region;
    std::int64_t from;
    std::int64_t to;
  };
  /// The effects of a region besides changes of the frame, up to some time.
  struct Control {
    std::int64_t copy_when = k_before_region;  ///< when of the last COPY_STATE; k_before_region: none
    unw_word_t copied_label = 0;
    std::int64_t pop_when = k_before_region;
    std::uint64_t pops = 0;     ///< POP_FRAMES in force
    std::optional<Addr> alias;  ///< address at the region's end
  };
  struct Remembered {
    unw_word_t label;
    FrameState state;
  };
  struct Region {
    std::uint32_t index;
    RegionHeader header;
    std::int64_t begin;
    std::int64_t length;
  };

  /// The stage that the run has reached: the place of the next region, the region's head, its inside.
  enum class Stage : std::uint8_t { unknown, between_regions, before_region, in_region };

  // False: failure_ says why.

  bool find_regions() noexcept;
  bool go_to(std::int64_t x) noexcept;
  bool locate_region() noexcept;
  bool enter_region() noexcept;
  bool run_region(std::int64_t x) noexcept;
  bool leave_region() noexcept;
  bool pop_states() noexcept;

  bool run_group(RegionOps & ops) noexcept;
  bool run_instruction(RegionOps & ops, unsigned steps, bool in_order) noexcept;
  bool run_one(const unw_dyn_op_t& op, std::uint32_t index, unsigned step, const FrameState::Anchor& anchor) noexcept;
  const Error* run_op(const unw_dyn_op_t& op, unsigned step, RegNum reg, const FrameState::Anchor& anchor) noexcept;
  unsigned step_of(const unw_dyn_op_t& op) const noexcept;
  bool copy_label(RegionOps & ops) noexcept;
  void remember_labels(RegionOps & ops) noexcept;
  bool rebuild(Point point) noexcept;
  bool run_stretch(const Stretch& stretch) noexcept;
  bool fail(const Error& error) noexcept;
  /// Reports the error to the observer. False: there is none, and the run fails.
  bool complain(const Error& error, std::uint32_t directive) noexcept;

  Status header(std::uint32_t region, RegionHeader & out) const noexcept;
  Status control(Point until, Control & out) noexcept;
  Result<std::optional<Point>> find_label(unw_word_t label, Point before) noexcept;
  Result<std::uint32_t> find_popped(std::uint32_t region, std::uint64_t n) noexcept;
  Result<std::uint32_t> collect(Point point, std::uint32_t limit, std::optional<Addr> & alias) noexcept;

  void show_state(int directive, std::int64_t unit) noexcept;
  void show_spills(RegionOps & ops) noexcept;

  const Arch& arch_;
  const RegionReader& reader_;
  const Addr first_;
  const std::int64_t units_;
  DirectiveObserver* const observer_;
  const RegisterInfo* const sp_;

  WorkBudget budget_;
  std::uint32_t region_count_ = 0;
  std::array<Addr, 64> regions_;  // the first ones

  FrameState state_;
  std::int64_t holds_from_ = 0;
  std::int64_t holds_to_ = 0;

  // The region that is being run, and the rest of its directives.
  Stage stage_ = Stage::unknown;
  std::optional<Error> failure_;
  std::uint32_t regions_left_ = 0;  // number of regions after it
  Region current_{};
  RegionOps ops_;
  bool has_group_ = false;  // the next group, which is not in force yet
  bool aliased_ = false;
  Addr alias_begin_ = 0;  // the row at the region's start is that of this address

  // The state of the region that is being run.
  std::uint32_t region_ = 0;
  std::int64_t unit_ = 0;        // its current group takes effect there
  std::int64_t alias_unit_ = 0;  // distance of the examined instruction from the region's start
  std::uint64_t pops_ = 0;
  std::uint32_t pop_directive_ = 0;  // the source of pops_
  std::uint32_t sp_directive_ = 0;   // the last directives of the group that moved SP, and that set the frame pointer
  std::uint32_t fp_directive_ = 0;
  bool copied_ = false;
  bool sp_high_ = false;  // is reported already
  bool rebuilding_ = false;
  FrameState entry_;

  // The label that was set first, which every early return of a function copies, and the latest one.
  std::optional<Remembered> first_label_, latest_label_;
  std::array<Stretch, 32> stretches_;  // the earliest stretches that collect() met, latest first
};

// The result of the directives of one procedure for one address: a row, or the address whose row it has. There are two
// steps, so that only the first one reads the procedure's memory.

class CompactLayout;
struct CompactRow;

struct DirectiveOutcome {
  explicit DirectiveOutcome(const Arch& arch) noexcept : state(arch) {}
  FrameState state;
  AddrRange range{};  ///< addresses it is valid for; empty after an ALIAS
};

/// `regions`: address of the first one for `reader`, or 0. `lookup` is CodeAddress::lookup(). Errors are those of
/// directive_row.
Status run_directives(const RegionReader& reader, Addr regions, AddrRange procedure, const Arch& arch, Addr lookup,
                      DirectiveOutcome& out) noexcept;
/// The procedure is one of this process, in format DYNAMIC.
[[gnu::visibility("default")]] Status run_directives(const unw_dyn_info_t& info, const Arch& arch, Addr lookup,
                                                     DirectiveOutcome& out) noexcept;

/// The row at `at`, CodeAddress::lookup(), of a procedure of this process, and where it holds. False: its directives
/// have to be run. Signal-safe.
bool find_compact_row(const unw_dyn_info_t& info, const CompactLayout& layout, Addr at, CompactRow& out,
                      AddrRange& range) noexcept;

/// `regions`: address of the first one for `reader`, or 0.
LsdaExtension lsda_extension(const RegionReader& reader, Addr regions) noexcept;

/// Precondition: not an alias. Sets origin and range, too.
[[gnu::visibility("default")]] Status make_row(const DirectiveOutcome& outcome, FrameRow& out) noexcept;

/// Makes the row of an outcome that is no ALIAS; an ALIAS is an error if there is no place to look its address up.
[[gnu::visibility("default")]] Status make_own_row(const DirectiveOutcome& outcome, FrameRow& out) noexcept;

/// Precondition: `row` is that of alias's address. Makes it the row of the aliasing procedure.
Status take_over(const FrameState& alias, FrameRow& row) noexcept;
/// Looks alias's address up in lookup.space, and takes the row over; a guess is no row. Precondition: the caller holds
/// no hazard pointer. `depth`: number of ALIAS followed so far, this one included.
Status follow_alias(const FrameState& alias, const Lookup& lookup, unsigned depth, FrameRow& out) noexcept;

}  // namespace jitunwind

#pragma GCC visibility push(default)
namespace jitunwind {

/// Signal-safe; no allocation; some 6 KiB.
class DirectiveRun {
 public:
  /// `regions`: address of the first one for `reader`, or 0.
  DirectiveRun(const RegionReader& reader, Addr regions, AddrRange procedure, const Arch& arch) noexcept;
  /// The procedure is one of this process, in format DYNAMIC.
  DirectiveRun(const unw_dyn_info_t& info, const Arch& arch) noexcept;
  DirectiveRun(const DirectiveRun&) = delete;
  DirectiveRun& operator=(const DirectiveRun&) = delete;

  /// `lookup` is CodeAddress::lookup(), not smaller than the one before. Errors are those of directive_row; all later
  /// calls fail, too.
  Status go_to(Addr lookup, DirectiveOutcome& out) noexcept;
  /// Number of directives examined so far, repetitions included.
  std::uint32_t work() const noexcept { return machine_.work(); }

 private:
  std::int64_t unit_of(Addr at) const noexcept {
    return static_cast<std::int64_t>((at - procedure_.begin) / arch_.unit);
  }

  const AddrRange procedure_;
  const Arch& arch_;
  DirectiveMachine machine_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
