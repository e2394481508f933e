#include "adapters/eh/unwind_frame_p.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "adapters/eh/other_runtimes_p.h"
#include "unwind_core/context.h"
#include "unwind_core/page_p.h"
#include "unwind_core/resume.h"
#include "unwind_core/sources/cfi.h"
#include "unwind_core/stack_position_p.h"

namespace jitunwind::eh {

namespace {

/// Of code whose row is compact and whose procedure has no global pointer.
struct CodeFacts {
  CompactRow row;
  Addr personality = 0;
  Addr lsda = 0;
  Addr start = 0;  ///< of the procedure
};
constinit CodeTable<CodeFacts> known_code;

/// A register that lives across calls, or that an exception is passed in. Words of 8 bytes: the host's.
struct LiveRegister {
  std::int16_t ucontext = 0;
  std::int8_t column = 0;
  bool passes_exceptions = false;
  RegNum dwarf = 0;
};

class LiveRegisters {
 public:
  explicit LiveRegisters(const Arch& arch) noexcept {
    for (const RegisterInfo& r : arch.registers) {
      const bool passes = std::ranges::find(arch.exception_registers, r.dwarf) != arch.exception_registers.end();
      if (r.ucontext < 0 || (!r.preserved && !passes && r.dwarf != arch.sp && r.dwarf != arch.pc)) continue;
      if (count_ < list_.size()) list_[count_++] = {r.ucontext, r.column, passes, r.dwarf};
    }
  }
  operator std::span<const LiveRegister>() const noexcept { return std::span(list_).first(count_); }

 private:
  std::array<LiveRegister, 40> list_;
  std::size_t count_ = 0;
};

/// Made before threads exist: the loader runs this library's initialisers before the program's.
std::span<const LiveRegister> live_registers() noexcept {
  static const LiveRegisters registers(*host_arch());
  return registers;
}
[[gnu::constructor]] void make_live_registers() { (void)live_registers(); }

}  // namespace

UnwindFrame::UnwindFrame(const void* entry, FrameRow& row) noexcept : StackPosition(local_space()), row_(&row) {
  for (const LiveRegister& live : live_registers()) {
    std::uint64_t value = 0;
    std::memcpy(&value, static_cast<const std::byte*>(entry) + live.ucontext, sizeof value);
    if (!live.passes_exceptions) registers_.set_from_register(live.column, value, live.dwarf);
  }
  address_ = CodeAddress::returned_to(pc_in_register());
  // The page that the caller of this very function has its frame in needs no probe.
  const Addr page = page_of(sp() - 1);
  window_.proven = {page, page + k_page_size};
}

UnwindFrame::Known UnwindFrame::fail(const Error& error) noexcept {
  error_ = error;
  return Known::broken;
}

bool UnwindFrame::look_at_known(CodeQuestion& question) noexcept {
  CodeFacts facts;
  if (!space_->row_cache->find(known_code, address_.lookup(), module_, question, facts)) return false;
  is_compact_ = true;
  compact_row_ = facts.row;
  procedure_.handler = facts.personality;
  procedure_.lsda = facts.lsda;
  procedure_.range.begin = facts.start;
  procedure_.gp = 0;
  return true;
}

void UnwindFrame::keep(const CodeQuestion& question) const noexcept {
  CodeFacts facts{{}, procedure_.handler, procedure_.lsda, procedure_.range.begin};
  if (question.version != 0 && procedure_.gp == 0 && space_->row_cache->to_keep(*row_, facts.row))
    known_code.keep(question, facts);
}

UnwindFrame::Known UnwindFrame::look() noexcept {
  if (is_outermost()) {
    procedure_ = {};
    return Known::end;
  }
  CodeQuestion question;
  if (look_at_known(question)) return Known::found;
  is_compact_ = false;
  procedure_ = {};
  Lookup asked = lookup();
  const Found row = space_->find_row(asked, *row_);
  if (!row) return fail(row.error());
  if (!*row || is_guess(row_->origin)) return look_at_frames_of_others();
  const Found procedure = space_->find_procedure(asked, procedure_);
  if (!procedure) return fail(procedure.error());
  if (!asked.about_other_code) keep(question);
  return Known::found;
}

/// What programs tell libgcc by __register_frame(), it alone knows. Asked last, since that takes its lock; never kept,
/// since nobody says when it ends.
UnwindFrame::Known UnwindFrame::look_at_frames_of_others() noexcept {
  ForeignFde found;
  if (!find_fde_of_others(address_.lookup(), found)) return Known::end;
  CfiContext context{space_->arch};
  context.text_base = found.text_base;
  context.data_base = found.data_base;
  MemoryView bytes(space_->memory, window_, {});
  Fde fde;
  const Found covers = read_fde_for(address_.lookup(), bytes, context, found.fde, fde);
  if (!covers) return fail(covers.error());
  if (!*covers) return Known::end;
  if (const Status row = row_at(fde, context, address_.lookup(), *row_); !row) return fail(row.error());
  row_->origin = RowOrigin::eh_frame;
  const Status described = describe(fde, space_->arch, space_->memory, window_, procedure_);
  return described ? Known::found : fail(described.error());
}

template <class C, class Row>
UnwindFrame::Known UnwindFrame::go_on_to(const C& caller, const Row& row) noexcept {
  if (is_itself(caller)) return fail({ErrorCode::cyclic_frames, caller.pc, "the caller is the frame itself"});
  landing_pad_ = 0;
  go_to(caller, row);
  return Known::found;
}

UnwindFrame::Known UnwindFrame::step() noexcept {
  if (depth_ == k_max_frames) return fail({ErrorCode::frame_limit, pc(), "frames of one stack"});
  if (is_compact_) {
    if (CompactCaller caller; find_caller(compact_row_, caller)) return go_on_to(caller, compact_row_);
    *row_ = expand(compact_row_, space_->row_cache->layout);
  }
  Caller caller;
  if (const Status applied = find_caller(*row_, caller); !applied) return fail(applied.error());
  if (caller.outermost) caller.pc = 0;
  return go_on_to(caller, *row_);
}

std::uint64_t UnwindFrame::get(int reg) const noexcept {
  // The ABI has no way to say that there is no value; at the end of the stack there is no frame either.
  if (reg < 0 || is_outermost()) return 0;
  return registers_.get(space_->arch.column(static_cast<RegNum>(reg))).value_or(0);
}

bool UnwindFrame::set(int reg, std::uint64_t value) noexcept {
  const int column = reg < 0 ? -1 : space_->arch.column(static_cast<RegNum>(reg));
  if (column < 0) return false;
  return bool(write(column, value, k_no_context));
}

void UnwindFrame::set_pc(Addr pc) noexcept { landing_pad_ = pc; }

Error UnwindFrame::install() noexcept {
  const Arch& arch = space_->arch;
  alignas(16) std::byte context[k_registers_size]{};
  for (const LiveRegister& live : live_registers()) {
    std::uint64_t value = registers_.get(live.column).value_or(0);
    if (live.dwarf == arch.pc) value = landing_pad_ != 0 ? landing_pad_ : pc();
    if (live.dwarf == arch.sp && !is_compact_) value += row_->args_size;
    std::memcpy(context + live.ucontext, &value, sizeof value);
  }
  return go_on_with(*space_, context, sp());
}

}  // namespace jitunwind::eh
