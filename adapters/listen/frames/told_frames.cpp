#include "jitunwind/adapters/listen/frames/told_frames_p.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "jitunwind/adapters/listen/frames/told_calls_p.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/locks_p.h"
#include "jitunwind/adapters/listen/mapped_code_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/builders/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/sources/guesses/taken_back_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

constinit ToldMemory memory;
constinit ToldCalls calls;
constinit std::size_t call_looked_at = 0;  // a place of the table
constinit std::atomic<std::uint32_t> calls_since_look{0};
/// A first block in the table whose procedures are being cancelled. Whoever takes it back waits.
constinit const ToldBlock* being_forgotten = nullptr;

using TableScope = std::lock_guard<ListenLock>;

using Pointers = std::array<unw_dyn_info_t*, ToldMemory::k_most>;

std::span<unw_dyn_info_t* const> pointers_to(ToldBlock& block, Pointers& into) noexcept {
  for (std::uint32_t i = 0; i < block.count; ++i) into[i] = &block.infos()[i];
  return {into.data(), block.count};
}

/// False: still registered, so that its memory must stay.
bool cancel_all(ToldBlock& block) noexcept {
  if (block.count == 0) return true;
  Pointers pointers;
  const auto infos = pointers_to(block, pointers);
  const Status cancelled = block.count == 1 ? cancel_procedure(infos.front()) : cancel_procedures(infos);
  if (!cancelled && cancelled.error().code == ErrorCode::in_signal_handler) {
    note_unheard(cancelled.error());
    return false;
  }
  part_from_names(infos);
  count_heard(Heard::procedures, -std::int64_t{block.count});
  return true;
}

/// Before they are cancelled: the code may be running.
void remember_all(ToldBlock& block) noexcept {
  for (std::uint32_t i = 0; i < block.count; ++i) {
    const unw_dyn_info_t& info = block.infos()[i];
    remember_taken_back({info.start_ip, info.end_ip});
  }
}

/// Registered procedures of a call, which stays in the table: it is taken back by its address.
void forget_call(ToldBlock& first) noexcept {
  for (ToldBlock* block = &first; block != nullptr; block = block->next)
    if (!cancel_all(*block)) return;
  first.is_gone = true;
}

/// One that is not mapped any more, if that is the one that is looked at. `left`: how many more are to be looked at,
/// which are no more than all.
ToldBlock* begin_to_forget_next(std::size_t& left) noexcept {
  const TableScope scope(told_lock);
  left = std::min(left, calls.round());
  if (left == 0) return nullptr;
  --left;
  if (being_forgotten != nullptr) return nullptr;
  ToldBlock* const block = calls.next(call_looked_at);
  if (block == nullptr || block->count == 0 || block->is_gone || is_mapped(block->infos()->start_ip)) return nullptr;
  being_forgotten = block;
  return block;
}

/// The block that a call takes back.
ToldBlock* take_call(const void* begin) noexcept {
  for (;;) {
    {
      const TableScope scope(told_lock);
      if (being_forgotten == nullptr || being_forgotten != calls.find_block(begin)) return calls.take(begin);
    }
    sleep_for_nanoseconds(100'000);
  }
}

/// One call, as far as it was read.
class Call {
 public:
  explicit Call(const ToldSections& told) noexcept : told_(told) {}

  void read(const void* section) noexcept {
    FrameReader reader(reinterpret_cast<std::uintptr_t>(section), told_.bases);
    Fde fde;
    while (!reader.at_end()) {
      const Result<bool> next = reader.next(fde);
      if (next && !*next) break;
      if (!next)
        refuse(next.error());
      else if (const std::optional<Error> why = disbelief(fde))
        disbelieve(*why);
      else if (const std::optional<Error> unreadable = reader.forbids_reading_again(fde))
        refuse(*unreadable);
      else
        add(fde);
    }
  }
  Answer finish() noexcept {
    register_pending();
    if (first_ == nullptr) put_first(take(0));
    if (first_ == nullptr) return Answer::next;  // and not heard of when it is taken back
    first_->handed_on = handed_on_;
    const TableScope scope(told_lock);
    if (calls.put(first_)) return handed_on_ ? Answer::next : Answer::ours;
    note_unheard({ErrorCode::out_of_memory, reinterpret_cast<std::uintptr_t>(told_.begin), "no memory for the call"});
    return Answer::ours;
  }

 private:
  void refuse(const Error& why) noexcept {
    // Somebody else may know what these pointers are relative to.
    if (why.code == ErrorCode::bad_encoding || why.code == ErrorCode::bad_augmentation) handed_on_ = true;
    note_unheard(why);
  }
  void disbelieve(const Error& why) noexcept {
    handed_on_ = true;
    note_unheard(why);
  }
  void add(const Fde& fde) noexcept {
    unw_dyn_info_t& info = pending_[count_++];
    info = procedure_of_fde(fde.range, fde.address);
    info.gp = told_.bases.data;
    info.u.rti.table_data = reinterpret_cast<std::uintptr_t>(&told_pair);
    if (count_ == pending_.size()) register_pending();
  }
  ToldBlock* take(std::size_t count) const noexcept {
    const TableScope scope(told_lock);
    calls.prefetch(told_.begin);
    return memory.take(count);
  }
  /// The first one of the call stays the first.
  void put_first(ToldBlock* block) noexcept {
    if (block == nullptr) return disbelieve({ErrorCode::out_of_memory, 0, "no memory for what was told"});
    if (first_ != nullptr) {
      block->next = first_->next;
      first_->next = block;
      return;
    }
    first_ = block;
    block->begin = told_.begin;
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
    count_heard(Heard::procedures, static_cast<std::int64_t>(count));
    join_names({pointers.data(), count});
    put_first(block);
  }

  const ToldSections& told_;
  ToldBlock* first_ = nullptr;
  std::size_t count_ = 0;
  bool handed_on_ = false;
  std::array<unw_dyn_info_t, ToldMemory::k_most> pending_;
};

}  // namespace

Answer note_told(const ToldSections& told) noexcept {
  // This library's own tables for an unwinder that does not ask, or a signal handler that interrupted the registry.
  if (is_writing()) return Answer::next;
  count_heard(Heard::told);
  if (calls_since_look.fetch_add(1, std::memory_order_relaxed) % k_calls_to_a_look == 0) forget_unmapped_frames(1);
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
  block->begin = begin;
  block->handed_on = true;
  if (!calls.put(block)) memory.give_back(block);
  return Answer::next;
}

void note_nobody_told(const void* begin) noexcept {
  const TableScope scope(told_lock);
  if (ToldBlock* const block = calls.find_block(begin)) block->handed_on = false;
}

TakenBack take_back(const void* begin) noexcept {
  ToldBlock* block = take_call(begin);
  if (block == nullptr) {
    if (is_empty_section(begin)) return {};
    if (is_writing()) return {Answer::next, nullptr};
    count_heard(Heard::never_told);
    return {};
  }
  count_heard(Heard::taken_back);
  const TakenBack back{block->handed_on ? Answer::next : Answer::ours, block->object};
  const bool is_gone = block->is_gone;
  while (block != nullptr) {
    ToldBlock* const next = block->next;
    remember_all(*block);
    if (is_gone || cancel_all(*block)) {
      const TableScope scope(told_lock);
      memory.give_back(block);
    }
    block = next;
  }
  return back;
}

void forget_unmapped_frames(std::size_t most) noexcept {
  for (std::size_t left = most; left != 0;) {
    ToldBlock* const block = begin_to_forget_next(left);
    if (block == nullptr) continue;
    forget_call(*block);
    const TableScope scope(told_lock);
    being_forgotten = nullptr;
  }
}

void forget_nothing_in_child() noexcept { being_forgotten = nullptr; }

}  // namespace jitunwind
