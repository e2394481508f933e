// The recorded content of Marks: each directive as the 16 bytes that a walk executes, for one region from the
// procedure's begin, behind the empty regions of an entry state. Nothing is checked while recording, and nothing is
// shared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "jitunwind/builders/draft/procedure_draft.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// ProcedureBuilder is the interface; this class is not for direct use. It has the functions of ProcedureDraft that
/// directives of one region can express. Allocates only beyond k_inline directives; one thread at a time.
class MarkRecorder {
 public:
  static constexpr std::size_t k_inline = 48;

  explicit MarkRecorder(const Arch& arch) noexcept;
  MarkRecorder(const MarkRecorder& other) noexcept;
  MarkRecorder& operator=(const MarkRecorder&) = delete;
  ~MarkRecorder() {
    if (ops_ != inline_.data()) free_ops();
    if (draft_) drop_draft();
  }

  const Arch& arch() const noexcept { return *arch_; }

  void directive(std::int32_t when, const DraftDirective& directive) noexcept {
    add(directive, when, By::when);
    if (draft_) [[unlikely]]
      draft_directive(when);
  }
  void instruction(const Idiom& idiom, Instruction at, std::initializer_list<DraftDirective> directives) noexcept {
    add_all(at, directives);
    if (draft_) [[unlikely]]
      draft_instruction({idiom.regs[0], idiom.regs[1], idiom.has_number, static_cast<std::uint8_t>(directives.size())},
                        idiom.name, idiom.number, at.begin, at.end);
  }
  /// Errors of register_code() later: invalid_argument, those of parse_row(), out_of_memory.
  void entry_state(const FrameRow& row, std::optional<std::int64_t> sp_distance) noexcept;
  void entry_state(std::string_view row, std::optional<std::int64_t> sp_distance) noexcept;
  void remember() noexcept {
    if (draft_) [[unlikely]]
      draft_fact(Fact::remembers);
    const unw_dyn_op_t last = count_ == 0 ? unw_dyn_op_t{0, 0, 0, -1, 0} : ops_[count_ - 1];
    add(DraftDirective::label_state(static_cast<unw_word_t>(--label_)), last.when, static_cast<By>(last.qp));
  }
  void restore(Instruction leaving) noexcept {
    if (label_ == 0) return refuse(ErrorCode::e_label, leaving.begin, "restore(): nothing was remembered");
    if (draft_) [[unlikely]]
      draft_fact(Fact::restores, leaving);
    add_all(leaving, {DraftDirective::copy_state(static_cast<unw_word_t>(label_))});
  }
  void add_call(Instruction at) noexcept {
    if (draft_) [[unlikely]]
      draft_fact(Fact::calls, at);
  }
  void set_size(std::uint64_t bytes) noexcept { size_ = bytes, has_size_ = true; }
  void set_personality(Addr handler) noexcept { facts_.personality = handler; }
  void set_lsda(Addr lsda) noexcept { facts_.lsda = lsda; }
  void set_gp(Addr gp) noexcept { facts_.gp = gp; }
  void set_ends_without_return() noexcept {
    if (draft_) [[unlikely]]
      draft_fact(Fact::ends_without_return);
  }

  struct Facts {
    Addr personality = 0;
    Addr lsda = 0;
    Addr gp = 0;
  };
  const Facts& facts() const noexcept { return facts_; }
  /// Gives each directive its place in a procedure of `bytes`, and its registers the numbers of libunwind. Errors:
  /// register_code() of marks.
  Status settle(std::uint64_t bytes) noexcept;
  /// The judgement of build(), if JITUNWIND_CHECK asks for one. A mistake is told, and an error where mistakes are
  /// refused.
  Status judge(AddrRange code, std::string_view name) noexcept;
  /// Precondition for their values: settled.
  std::span<const unw_dyn_op_t> ops() const noexcept { return {ops_, count_}; }
  /// How many of the first directives make each of the empty regions in front of the last one.
  std::span<const std::uint16_t> entry_regions() const noexcept { return {entry_regions_.data(), entries_}; }
  std::int32_t insn_count() const noexcept { return insn_count_; }
  /// Forgets everything but the memory.
  void clear() noexcept;

 private:
  /// The meaning of `when` until a directive is settled, which has this number in place of the predicate.
  enum class By : std::int8_t { when, offset, distance_from_end };

  /// Facts by which only build() judges.
  enum class Fact : std::uint8_t { remembers, restores, calls, ends_without_return };

  static constexpr bool has_bytes(Instruction at) noexcept {
    return at.begin < at.end && at.begin >= INT32_MIN && at.end <= INT32_MAX && (at.begin >= 0 || at.end <= 0);
  }
  void add_all(Instruction at, std::initializer_list<DraftDirective> directives) noexcept {
    if (!has_bytes(at)) return refuse_bytes(at);
    for (const DraftDirective& d : directives) add(d, at.end, at.from_end() ? By::distance_from_end : By::offset);
  }
  void add(const DraftDirective& d, std::int64_t when, By by) noexcept {
    if (count_ == room_ && !grow()) return;
    const std::int64_t value = d.tag == UNW_DYN_SAVE_REG ? d.saved_in : d.value;
    ops_[count_++] = {static_cast<std::int8_t>(d.tag), static_cast<std::int8_t>(by), static_cast<std::int16_t>(d.reg),
                      static_cast<std::int32_t>(when), static_cast<unw_word_t>(value)};
  }
  [[gnu::cold]] bool grow() noexcept;
  void free_ops() noexcept;
  [[gnu::cold]] void refuse(ErrorCode code, std::int64_t offset, const char* what) noexcept;
  [[gnu::cold]] void refuse_bytes(Instruction at) noexcept;
  // The directives are read from those that were just added: nothing has an address, and all stays in registers.
  struct DraftArguments {
    RegNum first, second;
    bool has_number;
    std::uint8_t directives;
  };
  [[gnu::cold]] void draft_directive(std::int32_t when) noexcept;
  [[gnu::cold]] void draft_instruction(DraftArguments arguments, const char* name, std::int64_t number,
                                       std::int64_t begin, std::int64_t end) noexcept;
  [[gnu::cold]] void draft_fact(Fact fact, Instruction at = {0, 0}) noexcept;
  [[gnu::cold]] void draft_again() noexcept;
  [[gnu::cold]] void drop_draft() noexcept;
  template <class Say>
  void say_to_draft(Say say) noexcept;

  std::array<unw_dyn_op_t, k_inline> inline_;  // uninitialised
  const Arch* arch_;
  unw_dyn_op_t* ops_ = inline_.data();
  ProcedureDraft* draft_ = nullptr;  // with the same calls; only if JITUNWIND_CHECK asks for it
  std::size_t count_ = 0;
  std::size_t room_ = k_inline;
  std::int64_t label_ = 0;  // remember() counts down, because authors of directives count up
  std::uint64_t size_ = 0;
  Facts facts_;
  Error mistake_;  // the first one; none: its text is empty
  std::int32_t insn_count_ = 0;
  std::array<std::uint16_t, 6> entry_regions_{};  // as many as an entry state takes
  std::uint16_t entries_ = 0;
  bool has_size_ = false;
};

}  // namespace jitunwind
#pragma GCC visibility pop
