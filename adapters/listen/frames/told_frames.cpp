#include "jitunwind/adapters/listen/frames/told_frames_p.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "jitunwind/adapters/listen/frames/told_calls_p.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/own_fde_internal.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/sources/guesses/taken_back_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

// Guarded by told_lock, unless their functions say otherwise. That lock also guards the counters of calls, calls taken
// back and procedures.
constinit ToldMemory memory;
constinit ToldCalls calls;
constinit std::size_t call_looked_at = 0;  // a place in the table
/// A call in the table whose procedures are being cancelled. A thread that takes it back waits.
constinit ToldCall being_forgotten;

using TableScope = std::lock_guard<ForkableLock>;

using Pointers = std::array<unw_dyn_info_t*, ToldMemory::k_most>;

// A call has parts: blocks, and a single procedure, which is the last or the only part.

ToldCall next_of(ToldCall part) noexcept { return part.is_lone() ? ToldCall() : part.block()->next; }

std::size_t size_of(ToldCall part) noexcept { return part.is_lone() ? 1 : part.block()->count; }

std::span<unw_dyn_info_t* const> pointers_to(ToldBlock& block, Pointers& into) noexcept {
  for (std::uint32_t i = 0; i < block.count; ++i) into[i] = &block.infos()[i];
  return {into.data(), block.count};
}

void count_procedures(std::int64_t by) noexcept { count_under_lock(Heard::procedures, by); }

/// False: the procedures are still registered, so their memory must stay.
bool cancel(std::span<unw_dyn_info_t* const> infos) noexcept {
  if (infos.empty()) return true;
  const Status cancelled = infos.size() == 1 ? cancel_procedure(infos.front()) : cancel_procedures(infos);
  if (!cancelled && cancelled.error().code == ErrorCode::in_signal_handler) {
    note_unheard(cancelled.error());
    return false;
  }
  part_from_names(infos);
  return true;
}

bool cancel(ToldCall part) noexcept {
  if (part.is_lone()) {
    unw_dyn_info_t* const lone = part.lone();
    return cancel({&lone, 1});
  }
  Pointers pointers;
  return cancel(pointers_to(*part.block(), pointers));
}

/// A single procedure that is not registered any more has a start of 0, which no announced procedure has.
bool is_gone(const unw_dyn_info_t& lone) noexcept { return lone.start_ip == 0; }

/// Callers call it before they cancel, since the code may be running.
void keep_begins(std::span<const unw_dyn_info_t> infos) noexcept {
  for (const unw_dyn_info_t& info : infos)
    if (!is_gone(info)) keep_taken_back(code_of(info));
}

/// Cancels the procedures of a call. The call stays in the table, since it will be taken back by its address.
void forget(ToldCall call) noexcept {
  std::size_t cancelled = 0;
  ToldCall part = call;
  for (; part && cancel(part); part = next_of(part)) {
    cancelled += size_of(part);
    if (part.is_lone()) part.lone()->start_ip = 0;
  }
  if (!part && !call.is_lone()) call.block()->is_gone = true;
  const TableScope scope(told_lock);
  count_procedures(-static_cast<std::int64_t>(cancelled));
  being_forgotten = {};
}

/// The start of a call's registered code; 0: none of its code is registered.
Addr begin_of(ToldCall call) noexcept {
  if (!call) return 0;
  if (call.is_lone()) return call.lone()->start_ip;
  ToldBlock& first = *call.block();
  if (first.is_gone) return 0;
  return first.count != 0 ? first.infos()->start_ip : begin_of(first.next);
}

/// Returns the next call if its code is unmapped, or none. `left` is the number of calls still to be checked, at most
/// all.
ToldCall begin_to_forget_next(std::size_t& left) noexcept {
  const TableScope scope(told_lock);
  left = std::min(left, calls.round());
  if (left == 0) return {};
  --left;
  if (being_forgotten) return {};
  const ToldCall call = calls.next(call_looked_at);
  const Addr begin = begin_of(call);
  if (begin == 0 || is_mapped(begin)) return {};
  being_forgotten = call;
  return call;
}

/// Takes the call with this argument out of the table and counts it, with its single procedure.
ToldCall take_call(const void* begin) noexcept {
  for (;;) {
    {
      const TableScope scope(told_lock);
      if (!being_forgotten || being_forgotten != calls.find_call(begin)) {
        const ToldCall call = calls.take(begin);
        if (!call) return call;
        count_under_lock(Heard::taken_back);
        if (call.is_lone() && !is_gone(*call.lone())) count_procedures(-1);
        return call;
      }
    }
    sleep_for_nanoseconds(100'000);
  }
}

/// One call while it is being read.
class Call {
 public:
  explicit Call(const ToldSections& told) noexcept : told_(told) {}

  void read(const void* section) noexcept {
    const Addr begin = reinterpret_cast<std::uintptr_t>(section);
    Fde fde;
    if (read_usual_section(begin, fde)) return believe(fde);
    FrameReader reader(begin, told_.bases);
    while (!reader.at_end()) {
      const Result<bool> next = reader.next(fde);
      if (next && !*next) break;
      if (!next)
        refuse(next.error());
      else if (const std::optional<Error> unreadable = reader.forbids_reading_again(fde))
        refuse(*unreadable);
      else
        believe(fde);
    }
  }
  Answer finish() noexcept {
    ToldCall call(register_lone());
    if (!call) {
      register_pending();
      if (first_ == nullptr) put_first(take(0));
      if (first_ != nullptr) first_->handed_on = handed_on_;
      call = ToldCall(first_);
    }
    const TableScope scope(told_lock);
    count_under_lock(Heard::told);
    count_procedures(static_cast<std::int64_t>(registered_));
    memory.have_spare();
    if (!call) return Answer::next;  // and unknown when it is taken back
    if (put(call)) return handed_on_ ? Answer::next : Answer::ours;
    note_unheard({ErrorCode::out_of_memory, reinterpret_cast<std::uintptr_t>(told_.begin), "no memory for the call"});
    return Answer::ours;
  }

 private:
  void refuse(const Error& why) noexcept {
    // The next definition may know the bases of these pointers.
    if (why.code == ErrorCode::bad_encoding || why.code == ErrorCode::bad_augmentation) handed_on_ = true;
    note_unheard(why);
  }
  void disbelieve(const Error& why) noexcept {
    handed_on_ = true;
    note_unheard(why);
  }
  void believe(const Fde& fde) noexcept {
    if (const std::optional<Error> why = disbelief(fde)) return disbelieve(*why);
    unw_dyn_info_t& info = pending_[count_++];
    info = procedure_of_fde(fde.range, fde.address);
    info.gp = told_.bases.data;
    const unw_word_t& pair = has_common_form(fde) ? told_pairs.common : told_pairs.other;
    info.u.rti.table_data = reinterpret_cast<std::uintptr_t>(&pair);
    if (count_ == pending_.size()) register_pending();
  }
  ToldBlock* take(std::size_t count) const noexcept {
    const TableScope scope(told_lock);
    return memory.take(count);
  }
  unw_dyn_info_t* take_lone() const noexcept {
    if (unw_dyn_info_t* const spare = memory.take_spare()) return spare;
    const TableScope scope(told_lock);
    return memory.take_lone();
  }
  /// Handles a call with one procedure and nothing else to store, which is nearly every call. Null: it is another call;
  /// nothing has changed.
  unw_dyn_info_t* register_lone() noexcept {
    if (count_ != 1 || first_ != nullptr || handed_on_ || told_.object != nullptr) return nullptr;
    unw_dyn_info_t* const info = take_lone();
    if (info == nullptr) return nullptr;
    *info = pending_.front();
    if (!register_procedure(info)) {
      memory.give_back(info);
      return nullptr;
    }
    registered_ = 1;
    join_names({&info, 1});
    return info;
  }
  /// Precondition: the lock is held. A single procedure has no room for an earlier call with the same address.
  bool put(ToldCall call) const noexcept {
    if (call.is_lone() && calls.find_call(told_.begin)) {
      ToldBlock* const first = memory.take(0);
      if (first == nullptr) return false;
      first->next = call;
      call = ToldCall(first);
    }
    return calls.put(told_.begin, call);
  }
  /// The first block of the call stays the first.
  void put_first(ToldBlock* block) noexcept {
    if (block == nullptr) return disbelieve({ErrorCode::out_of_memory, 0, "no memory for what was told"});
    if (first_ != nullptr) {
      block->next = first_->next;
      first_->next = ToldCall(block);
      return;
    }
    first_ = block;
    block->object = told_.object;
  }
  void register_pending() noexcept {
    const std::size_t count = std::exchange(count_, 0);
    if (count == 0) return;
    ToldBlock* const block = take(count);
    if (block == nullptr) return put_first(nullptr);
    std::copy_n(pending_.data(), count, block->infos());
    Pointers pointers;
    if (const Status registered = register_procedures(pointers_to(*block, pointers)); !registered) {
      const TableScope scope(told_lock);
      memory.give_back(block);
      return disbelieve(registered.error());
    }
    registered_ += count;
    join_names({pointers.data(), count});
    put_first(block);
  }

  const ToldSections& told_;
  ToldBlock* first_ = nullptr;
  std::size_t count_ = 0;  // number of pending procedures
  std::size_t registered_ = 0;
  bool handed_on_ = false;
  std::array<unw_dyn_info_t, ToldMemory::k_most> pending_;
};

/// Its count was changed by take_call().
void take_back_lone(unw_dyn_info_t* lone) noexcept {
  keep_begins({lone, 1});
  if (is_gone(*lone) || cancel({&lone, 1})) return memory.give_back(lone);
  const TableScope scope(told_lock);
  count_procedures(1);
}

TakenBack take_back_blocks(ToldBlock* first) noexcept {
  const TakenBack back{first->handed_on ? Answer::next : Answer::ours, first->object};
  const bool is_gone = first->is_gone;
  ToldCall next;
  for (ToldCall part(first); part; part = next) {
    next = next_of(part);
    keep_begins(part.is_lone() ? std::span(part.lone(), 1) : std::span(part.block()->infos(), part.block()->count));
    if (!is_gone && !cancel(part)) continue;
    const TableScope scope(told_lock);
    if (!is_gone) count_procedures(-static_cast<std::int64_t>(size_of(part)));
    part.is_lone() ? memory.give_back(part.lone()) : memory.give_back(part.block());
  }
  return back;
}

}  // namespace

Answer note_told(const ToldSections& told) noexcept {
  // The caller is this library itself, for an unwinder that does not call _Unwind_Find_FDE, or a signal handler that
  // interrupted the registry.
  if (is_writing()) return Answer::next;
  calls.prefetch(told.begin);
  if (heard(Heard::told) % k_calls_to_a_look == 0) forget_unmapped_frames(1);
  Call call(told);
  if (told.list == nullptr) {
    call.read(told.begin);
  } else {
    for (const void* const* section = told.list; *section != nullptr; ++section) call.read(*section);
  }
  return call.finish();
}

Answer note_handed_on(const void* begin) noexcept {
  const TableScope scope(told_lock);
  ToldBlock* const block = memory.take(0);
  if (block == nullptr) return Answer::next;
  block->handed_on = true;
  if (!calls.put(begin, ToldCall(block))) memory.give_back(block);
  return Answer::next;
}

void note_nobody_told(const void* begin) noexcept {
  const TableScope scope(told_lock);
  const ToldCall call = calls.find_call(begin);
  if (call && !call.is_lone()) call.block()->handed_on = false;
}

TakenBack take_back(const void* begin) noexcept {
  calls.prefetch(begin);
  const ToldCall call = take_call(begin);
  if (!call) {
    if (is_empty_section(begin)) return {};
    if (is_writing()) return {Answer::next, nullptr};
    count_heard(Heard::never_told);
    return {};
  }
  if (!call.is_lone()) return take_back_blocks(call.block());
  take_back_lone(call.lone());
  return {};
}

void forget_unmapped_frames(std::size_t most) noexcept {
  for (std::size_t left = most; left != 0;)
    if (const ToldCall call = begin_to_forget_next(left)) forget(call);
}

void forget_nothing_in_child() noexcept { being_forgotten = {}; }

}  // namespace jitunwind
