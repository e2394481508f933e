#include "jitunwind/unwind_core/walk/last_walk_p.h"

#include <pthread.h>

#include <algorithm>

#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {

constinit thread_local LastWalk* last_walk_of_thread = nullptr;
constinit thread_local unsigned char walks_without_memory = 0;

/// Room for so many threads at a time; the others walk without. A thread gives its room back when it ends, by a key of
/// thread-specific data. The key is one of the first 32: the C library keeps their values in the thread itself and
/// allocates nothing (glibc, nptl/pthread_setspecific.c).
class LastWalks {
 public:
  static LastWalk* take() noexcept {
    if (!has_key_.load(std::memory_order_acquire)) return nullptr;
    for (LastWalk& memory : all_) {
      if (memory.owned_.load(std::memory_order_relaxed) || memory.owned_.exchange(true, std::memory_order_acquire))
        continue;
      memory.count_ = 0;
      memory.policy_ = {};
      pthread_setspecific(key_, &memory);
      return last_walk_of_thread = &memory;
    }
    count_event(Counter::last_walk_full);
    return nullptr;
  }

 private:
  static constexpr std::size_t k_threads = 64;
  static constexpr pthread_key_t k_keys_in_thread = 32;

  static void give_back(void* memory) {
    last_walk_of_thread = nullptr;
    static_cast<LastWalk*>(memory)->owned_.store(false, std::memory_order_release);
  }
  [[gnu::constructor]] static void make_key() {
    if (pthread_key_create(&key_, &give_back) != 0) return;
    if (key_ < k_keys_in_thread)
      has_key_.store(true, std::memory_order_release);
    else
      pthread_key_delete(key_);
  }
  /// Threads that outlive this library must not come back to it.
  [[gnu::destructor]] static void delete_key() {
    if (has_key_.exchange(false)) pthread_key_delete(key_);
  }

  static constinit std::array<LastWalk, k_threads> all_;
  static constinit std::atomic<bool> has_key_;
  static constinit pthread_key_t key_;
};

[[gnu::section(".bss.large")]] constinit std::array<LastWalk, LastWalks::k_threads> LastWalks::all_{};
constinit std::atomic<bool> LastWalks::has_key_{false};
constinit pthread_key_t LastWalks::key_ = 0;

LastWalk* LastWalk::acquire() noexcept {
  if (!last_walk_of_thread && walks_without_memory < k_walks_without) return ++walks_without_memory, nullptr;
  LastWalk* const memory = last_walk_of_thread ? last_walk_of_thread : LastWalks::take();
  // A handler that comes between the two is done before this goes on.
  if (!memory || memory->busy_.load(std::memory_order_relaxed) || memory->policy_.skips_look()) return nullptr;
  memory->busy_.store(true, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return memory;
}

std::size_t LastWalk::find(Addr at, Addr sp, Addr fp) const noexcept {
  const std::size_t number = numbers()[place_of(sp)];
  if (number >= count_) return k_none;
  const PastFrame& frame = frames_[number];
  if (frame.sp != sp || (frame.fp != fp && frame.fp_decides)) return k_none;
  if (CodeAddress::returned_to(frame.pc).lookup() != at) return k_none;
  return number;
}

bool RecordingPolicy::wants(std::size_t known, std::span<void* const> all, std::size_t recorded) noexcept {
  constexpr unsigned k_most_skipped = 255;
  constexpr unsigned k_repetitions = 3;
  constexpr unsigned k_trial = 8;
  const auto saved = static_cast<std::ptrdiff_t>(known) - k_cost_of_looking;
  saved_ += saved;
  saved_in_trial_ += saved;
  if (++tried_ == k_trial) {
    looks_to_skip_ = saved_in_trial_ < 0 ? std::max(last_skip_, k_trial) : 0;
    tried_ = 0;
    saved_in_trial_ = 0;
  }
  // The inner part of two walks that follow each other is mostly the same as well if its middle is.
  const std::size_t unknown = all.size() - known;
  const Unknown now{unknown, unknown > 0 ? all[unknown / 2] : nullptr};
  repetitions_ = unknown > 0 && now == last_unknown_ ? repetitions_ + 1 : 0;
  last_unknown_ = now;
  if (!is_stale_ && repetitions_ < k_repetitions && known >= all.size() / 2) return false;
  if (walks_to_skip_ > 0) {
    --walks_to_skip_;
    return false;
  }
  const bool has_paid = saved_ >= static_cast<std::ptrdiff_t>(k_cost_of_recording * recorded);
  last_skip_ = has_paid ? 0 : std::min(2 * last_skip_ + 1, k_most_skipped);
  walks_to_skip_ = last_skip_;
  saved_ = 0;
  repetitions_ = 0;
  is_stale_ = false;
  return true;
}

bool LastWalk::wants(std::size_t known, std::span<void* const> all) noexcept {
  // A walk of more frames than there is room for is recorded without its inner ones.
  const std::size_t beyond = all.size() - std::min(all.size(), k_capacity - 1);
  return all.size() >= k_few && policy_.wants(known, all.subspan(beyond), count_);
}

void LastWalk::record(std::size_t number, const PastFrame& frame) noexcept {
  if (number < k_capacity) frames_[number] = frame;
}

void LastWalk::record_rule(std::size_t number, bool base_is_fp, std::optional<Addr> fp_at,
                           std::uint32_t pc_below) noexcept {
  if (number >= k_capacity) return;
  frames_[number].pc_below = pc_below;
  frames_[number].fp_at = fp_at.value_or(reinterpret_cast<std::uintptr_t>(&frames_[number].fp));
  frames_[number].fp_decides = base_is_fp;
}

void LastWalk::confirm(std::size_t count, std::uint64_t everywhere, std::uint64_t first_counts) noexcept {
  constexpr std::size_t k_look_back = 8;  // recursion repeats what is near
  count_ = count;
  everywhere_ = everywhere;
  first_counts_ = first_counts;
  counted_ = 0;
  for (std::size_t number = 0; number < count; ++number) {
    PastFrame& frame = frames_[number];
    (has_few_places() ? few_numbers_.data() : numbers_.data())[place_of(frame.sp)] = static_cast<std::uint16_t>(number);
    const bool is_passed_on = number > 0 && !frame.saves_fp();
    frame.fp_decides = frame.fp_decides || (is_passed_on && frames_[number - 1].fp_decides);
  }
  for (const PastFrame& frame : std::span(frames_).first(count)) {
    const std::uint64_t changes = frame.changes;
    if (CodeChanges::counts_nothing(changes)) continue;
    const auto end = counts_.begin() + static_cast<std::ptrdiff_t>(counted_);
    if (std::find(end - static_cast<std::ptrdiff_t>(std::min(counted_, k_look_back)), end, changes) != end) continue;
    if (counted_ == counts_.size() || CodeChanges::counts_several(changes)) {
      counted_ = counts_.size() + 1;
      return;
    }
    counts_[counted_++] = changes;
  }
}

[[gnu::hot]] void LastWalkLease::follow(CallerChain& chain) noexcept {
  const LastWalk& last = *walk_;
  if (last.everywhere() != chain.everywhere()) return;
  const auto [at, sp, fp, pc] = chain.position();
  const std::size_t known = last.find(at, sp, fp);
  if (known == LastWalk::k_none || last[0].sp > chain.stack().end()) return;
  if (chain.arch().calls_push())
    follow_from<true>(known, chain);
  else
    follow_from<false>(known, chain);
}

template <bool k_calls_push>
void LastWalkLease::follow_from(const std::size_t first, CallerChain& chain) noexcept {
  LastWalk& last = *walk_;
  const CodeChanges& changes = chain.changes();
  const bool unchanged = last.nothing_changed(changes, first_counts_);
  void** const begin = chain.room().data();
  void** out = begin;
  void** const end = out + std::min(first, chain.room().size());
  for (const PastFrame* frame = &last[first]; out != end; --frame) {
    const PastFrame& caller = frame[-1];
    if (!unchanged && changes.stamp(CodeAddress::returned_to(frame->pc).lookup()) != frame->changes) {
      last.set_stale();
      break;
    }
    const Addr pc_at = caller.sp - (k_calls_push ? CompactRow::k_word : frame->pc_below);
    const Addr pc = raw_word(pc_at) & (k_calls_push ? ~Addr{0} : chain.arch().address_mask);
    if (pc != caller.pc || raw_word(frame->fp_at) != caller.fp) break;
    *out++ = reinterpret_cast<void*>(static_cast<std::uintptr_t>(caller.pc));
  }
  const std::size_t number = first - static_cast<std::size_t>(out - begin);
  if (number == 0 && last.first_counts() != first_counts_) last.confirm(first + 1, chain.everywhere(), first_counts_);
  // A frame pointer that decided nothing may be another one now, up to where the caller's was read.
  std::size_t passed = first;
  while (passed > number && !last[passed].saves_fp()) --passed;
  const PastFrame& reached = last[number];
  const Addr fp = passed > number ? reached.fp : chain.position().fp;
  chain.pass(first - number, {CodeAddress::returned_to(reached.pc).lookup(), reached.sp, fp});
  followed_ += first - number;
  count_warm_event(Counter::last_walk_used, first - number);
}

void LastWalkLease::record_if_wanted(CallerChain& chain, const WalkStart& start) noexcept {
  if (walk_->wants(followed_, chain.callers())) record(chain, start);
}

/// Goes the way of the walk again: the walk itself has no time for that.
void LastWalkLease::record(CallerChain& chain, const WalkStart& start) noexcept {
  count_event(Counter::last_walk_stored);
  walk_->begin_recording();
  CallerChain::Position position{start.address.lookup(), start.sp, start.fp, start.address.value()};
  const auto bias = static_cast<Addr>(std::int64_t{chain.arch().caller_sp_bias});
  RulePlace callee;
  std::size_t number = chain.depth();
  // Frames are confirmed if they were returned to, and if compact rules lead from them to the last frame of the walk.
  std::size_t count = start.address.is_return_address() ? number + 1 : number;
  for (;; --number) {
    walk_->record(number, {position.sp, position.pc, position.fp, 0, chain.changes().stamp(position.at), false, 0});
    if (number == 0) break;
    const auto [entry, rule, holds] = chain.find_behind(callee, position.at);
    if (!holds) return;
    callee = RulePlace::at(entry, rule);
    if (rule.kind() != CallerRule::Kind::compact || rule.kept_by() != KeptBy::lasting) count = number;
    if (chain.step_by(rule, position) != CallerChain::Stop::full || !chain.stack().is_known()) return;
    const Addr cfa = position.sp - bias;
    const auto pc_below = static_cast<std::uint32_t>(rule.return_address_below_cfa() + bias);
    walk_->record_rule(number, rule.base_is_frame_pointer(),
                       rule.saves_frame_pointer() ? std::optional(cfa - rule.frame_pointer_below_cfa()) : std::nullopt,
                       pc_below);
  }
  walk_->confirm(std::min(count, LastWalk::k_capacity), chain.everywhere(), first_counts_);
}

}  // namespace jitunwind
