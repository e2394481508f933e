// The marks of jitunwind_jit.h as the directives that are registered, in one pass, where nothing is left to judge. They
// are the marks of most frames on CPUs whose calls push, each behind the one before it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "jitunwind/builders/released_registration_internal.h"
#include "jitunwind/sdk/c/describing/described_internal.h"
#include "jitunwind/unwind_core/arch/arch.h"
#define JITUNWIND_JIT_OFF  // the types alone
#include "jitunwind/adapters/jit_header/include/jitunwind_jit.h"

namespace jitunwind::jit_header {

/// ProcedureBuilder records to it. Directives get their place and libunwind's numbers of registers at once. They are
/// elsewhere, so that all members stay in registers.
class ReadyRecorder {
 public:
  static constexpr std::size_t k_most_of_mark = 2;

  explicit ReadyRecorder(const Arch& arch) noexcept : arch_(&arch), sp_(arch.by_dwarf(arch.sp)->libunwind) {}
  void write_to(unw_dyn_op_t* begin) noexcept { next_ = begin; }

  const Arch& arch() const noexcept { return *arch_; }

  /// Goes to the instruction in front of `end`, an offset in code of `bytes`. False: it is in front of the last one or
  /// outside of the code, or counts otherwise than those before it.
  bool go_to(std::int32_t end, std::int64_t bytes) noexcept {
    const bool from_end = end <= 0;
    const std::int64_t when = std::int64_t{end} - 1 + (from_end ? bytes : 0);
    if (from_end != from_end_) {
      if (from_end_ || when == when_) return false;
      from_end_ = true;
    }
    if (when < when_ || when >= bytes) return false;
    when_ = static_cast<std::int32_t>(when);
    return true;
  }
  /// Precondition: one directive or two, which a loop would write in three times the instructions.
  [[gnu::always_inline]] void instruction(const Idiom&, Instruction,
                                          std::initializer_list<DraftDirective> directives) noexcept {
    add(directives.begin()[0]);
    if (directives.size() == k_most_of_mark) add(directives.begin()[1]);
  }
  void remember() noexcept { add(UNW_DYN_LABEL_STATE, 0, static_cast<unw_word_t>(--label_)); }
  void restore(Instruction) noexcept {
    if (label_ == 0) is_right_ = false;
    add(UNW_DYN_COPY_STATE, 0, static_cast<unw_word_t>(label_));
  }

  const unw_dyn_op_t* end() const noexcept { return next_; }
  std::int32_t insn_count() const noexcept { return when_ + 1; }
  /// False: a register has no number, or nothing was remembered.
  bool is_right() const noexcept { return is_right_; }

 private:
  [[gnu::always_inline]] int number_of(RegNum dwarf) noexcept {
    if (dwarf == arch_->sp) return sp_;
    const RegisterInfo* const info = arch_->by_dwarf(dwarf);
    const int number = info ? info->libunwind : -1;
    if (number < 0) is_right_ = false;
    return number;
  }
  [[gnu::always_inline]] void add(const DraftDirective& d) noexcept {
    add(d.tag, number_of(d.reg), static_cast<unw_word_t>(d.tag == UNW_DYN_SAVE_REG ? number_of(d.saved_in) : d.value));
  }
  [[gnu::always_inline]] void add(unw_dyn_operation_t tag, int reg, unw_word_t value) noexcept {
    *next_++ = {static_cast<std::int8_t>(tag), _U_QP_TRUE, static_cast<std::int16_t>(reg), when_, value};
  }

  const Arch* arch_;
  unw_dyn_op_t* next_ = nullptr;
  std::int64_t label_ = 0;  // counts down, as that of MarkRecorder
  std::int32_t when_ = -1;
  int sp_;
  bool from_end_ = false;
  bool is_right_ = true;
};

/// The directives of a frame, if its marks are all of this kind; else its builder judges them.
class ReadyMarks {
 public:
  /// Precondition: calls of the CPU push. False: there are other marks.
  [[gnu::always_inline]] bool read(const Arch& arch, std::span<const ju_jit_mark> marks, std::uint64_t bytes) noexcept {
    Marks to(arch);
    ReadyRecorder& recorder = to.recorder();
    recorder.write_to(ops_.data());
    if (bytes - 1 >= INT32_MAX || marks.size() > ops_.size() / ReadyRecorder::k_most_of_mark) return false;
    bool is_entry = true;
    for (const ju_jit_mark& mark : marks) {
      is_entry = is_entry && mark.end == 0 && say_entry(to, mark);
      if (is_entry) continue;
      if (mark.does == JU_JIT_REMEMBER)
        to.remember();
      else if (!recorder.go_to(mark.end, static_cast<std::int64_t>(bytes)) || !say(to, mark))
        return false;
    }
    directives_ = {{ops_.data(), recorder.end()}, recorder.insn_count()};
    return recorder.is_right();
  }
  const ReadyDirectives& directives() const noexcept { return directives_; }

 private:
  using Marks = ProcedureBuilder<c::AnyCpu, ReadyRecorder>;

  /// The frame of other code in which the code begins, in front of its first instruction. False: another mark.
  static bool say_entry(Marks& to, const ju_jit_mark& mark) noexcept {
    switch (mark.does) {
      case JU_JIT_SPILL_SP_REL:
        return to.save_at_sp({0, 0}, Marks::Reg(mark.reg), mark.value), true;
      case JU_JIT_ADD_TO_SP:
        return to.deallocate({0, 0}, mark.value), true;
      default:
        return mark.does == JU_JIT_ENDS_WITHOUT_RETURN;
    }
  }
  [[gnu::always_inline]] static bool say(Marks& to, const ju_jit_mark& mark) noexcept {
    constexpr Instruction at{0, 0};  // go_to() has the place
    const Marks::Reg reg(mark.reg);
    switch (mark.does) {
      case JU_JIT_PUSH:
        return to.push(at, reg), true;
      case JU_JIT_POP:
        return to.pop(at, reg), true;
      case JU_JIT_ALLOCATE:
        return to.allocate(at, mark.value), true;
      case JU_JIT_DEALLOCATE:
        return to.deallocate(at, mark.value), true;
      case JU_JIT_SET_FRAME_POINTER:
        return to.set_frame_pointer(at, reg, mark.value), true;
      case JU_JIT_RESTORE_SP:
        return to.restore_sp(at, reg, mark.value), true;
      case JU_JIT_LEAVE:
        return to.leave(at), true;
      case JU_JIT_SPILL_SP_REL:  // counts from the begin alone
        return mark.end > 0 && (to.save_at_sp(at, reg, mark.value), true);
      case JU_JIT_ADD_TO_SP:
        return mark.end > 0 && (to.deallocate(at, mark.value), true);
      case JU_JIT_SAVE_AT_SP:
        return to.save_at_sp(at, reg, mark.value), true;
      case JU_JIT_SAVE_AT_FP:
        return to.save_at_fp(at, reg, mark.value), true;
      case JU_JIT_RELOAD:
        return to.reload(at, reg), true;
      case JU_JIT_RESTORE:
        return to.restore(at), true;
      default:
        return false;
    }
  }

  std::array<unw_dyn_op_t, 128> ops_;  // uninitialised
  ReadyDirectives directives_;
};

}  // namespace jitunwind::jit_header
