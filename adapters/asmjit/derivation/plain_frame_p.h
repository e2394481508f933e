// The frame state of plain code, in few words: the distance of SP to the CFA is known, the usual frame pointer is the
// only other way to the CFA, and each saved register is in one slot. It is exactly the state that directives have
// (docs/directives.md, "Frame state"), so they are recorded while code is followed, and need no proof. FrameState has
// the states of all other code.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"
#include "jitunwind/builders/draft/mark_recorder.h"

namespace jitunwind::derivation {

class PlainFrame {
 public:
  /// The state of the directives. Distances are CFA - address.
  struct Facts {
    std::int32_t sp = 0;
    std::int32_t fp = 0;  ///< of the frame pointer; 0: there is none
    RegSet saved = 0;     ///< registers with a slot
    std::array<std::int32_t, 16> slots{};
    friend bool operator==(const Facts&, const Facts&) = default;
  };

  /// The state at the entry of a procedure. Preconditions: `preserved` are general registers, and the CPU's calls push.
  PlainFrame(const Arch& arch, RegSet preserved) noexcept;

  const Facts& facts() const noexcept { return facts_; }
  /// The state at entry: the frame is released.
  bool is_released() const noexcept { return facts_.sp == entry_sp_ && facts_.saved == 0; }
  /// Registers that hold addresses of the frame. An instruction with one of them as base must be applied.
  RegSet addresses() const noexcept { return (facts_.fp != 0 ? sp_and_fp_ : set_of(sp_)) | copies_; }
  /// Registers of which code must not change the value without being applied.
  RegSet relied_on() const noexcept { return addresses() | (preserved_ & ~facts_.saved); }
  /// These, and saved registers that have not changed yet: an instruction that names none of them changes nothing.
  RegSet watched() const noexcept { return relied_on() | intact_; }

  /// Applies an instruction that may change `registers` and no other part of the frame. Precondition: they are not
  /// relied on.
  void change(RegSet registers) noexcept { intact_ &= ~registers; }
  /// Apply what most instructions that move SP are, as apply() does: a push or pop of a whole general register, and the
  /// addition of a constant.
  bool push(RegNum reg, std::int32_t when, MarkRecorder& marks);
  bool pop(RegNum reg, std::int32_t when, MarkRecorder& marks);
  bool raise_sp(std::int64_t by, std::int32_t when, MarkRecorder& marks);
  /// Applies an instruction, and records its directives at `when`. False: it leaves plain code, and the state is lost.
  bool apply(std::span<const Effect> effects, std::int32_t when, MarkRecorder& marks);
  /// Paths meet: from now on saved registers may have been changed.
  void meet() noexcept { intact_ &= ~facts_.saved; }
  /// Takes a state over that other code had.
  void become(const Facts& facts) noexcept {
    facts_ = facts;
    meet();
  }

 private:
  static constexpr std::int32_t k_slot = 8;
  static constexpr std::int32_t k_largest_frame = std::int32_t{1} << 30;
  struct Before {
    std::int32_t sp, fp;
    RegSet saved;
  };
  bool apply(const Effect& effect);
  bool move_sp(std::int64_t distance);
  bool overwrite(RegSet registers);
  bool pop(const Effect& effect);
  bool copy(const Effect& effect);
  bool store(const Effect& effect);
  bool load(const Effect& effect);
  bool pop_other(RegNum reg, std::int32_t when, MarkRecorder& marks);
  void save(RegNum reg, std::int64_t slot) noexcept {
    if (has(facts_.saved, reg)) return;
    facts_.saved |= set_of(reg);
    facts_.slots[reg] = static_cast<std::int32_t>(slot);
  }
  void forget_slot(RegNum reg) noexcept {
    facts_.saved &= ~set_of(reg);
    facts_.slots[reg] = 0;
    if (reg == fp_) facts_.fp = 0;
  }
  void say_changes(const Before& before, std::int32_t when, MarkRecorder& marks) const;
  /// CFA - (reg + displacement); 0, where no slot is: not known.
  std::int64_t distance(RegNum reg, std::int64_t displacement) const noexcept;
  bool keeps(RegNum reg) const noexcept { return reg < 16 && has(preserved_, reg); }

  RegNum sp_, fp_;
  std::int32_t entry_sp_;
  RegSet sp_and_fp_;
  RegSet preserved_;
  Facts facts_;
  RegSet intact_;      // preserved registers that hold the caller's value
  RegSet copies_ = 0;  // registers that held addresses of the frame somewhere before
  bool sp_from_fp_ = false;
};

inline bool PlainFrame::push(RegNum reg, std::int32_t when, MarkRecorder& marks) {
  if (facts_.sp > k_largest_frame - k_slot) return false;
  facts_.sp += k_slot;
  marks.directive(when, DraftDirective::add(sp_, -k_slot));
  if (!keeps(reg) || has(facts_.saved, reg)) return true;
  save(reg, facts_.sp);
  marks.directive(when, DraftDirective::spill_sp_rel(reg, 0));
  return true;
}

/// A register that has its value back from its slot at SP is the only one whose slot ends: slots do not overlap.
inline bool PlainFrame::pop(RegNum reg, std::int32_t when, MarkRecorder& marks) {
  if (!keeps(reg) || facts_.slots[reg] != facts_.sp) return pop_other(reg, when, marks);
  intact_ |= set_of(reg);
  forget_slot(reg);
  facts_.sp -= k_slot;
  marks.directive(when, DraftDirective::add(sp_, k_slot));
  return true;
}

}  // namespace jitunwind::derivation
