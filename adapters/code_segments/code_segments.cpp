#include "jitunwind/adapters/code_segments/code_segments.h"

#include <pthread.h>

#include <atomic>
#include <bit>
#include <new>
#include <utility>

#include "jitunwind/adapters/code_segments/segments_state_p.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/unwind_core/environment.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/heap_internal.h"

namespace jitunwind {

/// A forked child's segments are its parent's.
void CodeSegments::State::leave_to_parent() noexcept {
  each_segment([](Segment& segment) { segment.after_fork_in_child(); });
  current = nullptr;
  is_at_work = is_some_full = false;
  empty.clear();
  folder.clear();
  outdated.clear();
}

void CodeSegments::State::cancel_all() noexcept {
  RegistrationBatch all;
  for (auto& [end, segment] : segments) {
    for (Segment::Index i = 0; i < segment->count(); ++i) {
      Registration one = Registration::adopt(std::exchange((*segment)[i].registered, nullptr));
      (void)all.add(std::move(one));
    }
  }
  (void)all.cancel();
}

void CodeSegments::State::close() noexcept {
  worker.join();
  {
    const SegmentsLock lock;
    leave_list();
    remove_outdated();
  }
  cancel_all();
}

/// The dynamic linker must not be called now. Segments stay open until the next call that may do so.
void CodeSegments::State::abandon() noexcept {
  cancel_all();
  const SegmentsLock lock;
  each_segment([](Segment& segment) {
    for (Segment::Index i = 0; segment.is_published() && i < segment.count(); ++i)
      if (segment[i].state != Segment::Function::State::part) segment.withdraw(i);
  });
  is_abandoned = true;
}

/// One whose thread is at work stays: the thread may wait for the dynamic linker's lock, which this one may have.
void CodeSegments::State::close_abandoned() noexcept {
  for (;;) {
    State* state = nullptr;
    {
      const SegmentsLock lock;
      for (state = first; state != nullptr && (!state->is_abandoned || state->is_at_work);) state = state->next;
      if (state == nullptr || lists_libraries()) return;
      state->is_abandoned = false;
    }
    state->close();
    destroy_on_heap(state);
  }
}

void CodeSegments::State::report(CodeSegmentsStatus& out) const {
  out.folder = folder;
  out.segments = segments.size();
  out.functions = committed;
  out.refused = refused;
  out.latest_refusal = latest_refusal;
  for (const auto& [end, segment] : segments) {
    out.files += segment->is_published();
    out.sealed += segment->memory().is_sealed();
    for (Segment::Index i = 0; i < segment->count(); ++i) out.published += (*segment)[i].is_published;
  }
}

/// Signal handlers may fork, also one that interrupted a change on its own thread. Nothing is copied then, since
/// nothing may be whole.
void CodeSegments::State::take_part_in_forks() noexcept {
  if (are_in_forks.exchange(true)) return;
  static constexpr auto each = [](auto action) {
    const ErrnoKeeper keep_errno;
    if (segments_are_changing.load(std::memory_order_relaxed)) return;
    for (State* state = first; state != nullptr; state = state->next) action(*state);
  };
  static constexpr auto each_segment = [](void (Segment::*action)() noexcept) {
    each([=](State& state) { state.each_segment([=](Segment& segment) { (segment.*action)(); }); });
  };
  (void)::pthread_atfork(
      [] {
        segments_lock.before_fork();
        each_segment(&Segment::before_fork);
      },
      [] {
        each_segment(&Segment::after_fork_in_parent);
        segments_lock.after_fork();
      },
      [] {
        each([](State& state) { state.leave_to_parent(); });
        segments_lock.after_fork();
      });
}

bool CodeSegments::State::is_published(Addr start) noexcept {
  const SegmentsLock lock;
  for (const State* state = first; state != nullptr; state = state->next)
    if (const Place place = state->find(start, Segment::Function::State::committed))
      return place.function().is_published && place.segment->is_published();
  return false;
}

/// Files of programs that end with their code still there. A signal handler that interrupted a change may call exit().
void CodeSegments::State::remove_files() noexcept {
  if (!segments_lock.try_lock()) return;
  for (State* state = first; state != nullptr; state = state->next) {
    state->remove_outdated();
    state->each_segment([](Segment& segment) { segment.memory().remove_file(); });
  }
  segments_lock.unlock();
}

void CodeSegments::State::enter_list() noexcept {
  const SegmentsLock lock;
  next = std::exchange(first, this);
}

void CodeSegments::State::leave_list() noexcept {
  State** at = &first;
  while (*at != this) at = &(*at)->next;
  *at = next;
}

/// The environment is read once, by the thread that makes the object: getenv(3).
CodeSegments::State* CodeSegments::State::make(const CodeSegmentsOptions& options) noexcept {
  close_abandoned();
  State* const state = make_on_heap<State>(options);
  if (state == nullptr) return nullptr;
  try {
    state->places = CodePlaces::of_environment();
  } catch (const std::bad_alloc&) {
    destroy_on_heap(state);
    return nullptr;
  }
  take_part_in_forks();
  find_list_owner();
  is_in_file = &State::is_published;
  state->enter_list();
  return state;
}

CodeSegments::CodeSegments(const CodeSegmentsOptions& options) noexcept : state_(State::make(options)) {}

CodeSegments::~CodeSegments() {
  if (state_ == nullptr) return;
  if (State::lists_libraries()) {
    state_->abandon();
    return;
  }
  state_->close();
  destroy_on_heap(state_);
  State::close_abandoned();
}

Result<CodeRoom> CodeSegments::allocate(std::size_t size, std::size_t more_functions, std::size_t alignment) noexcept {
  if (size == 0 || size > State::k_largest_function || more_functions >= size)
    return Error{ErrorCode::e_range, 0, "code of no bytes, or of too many, or of more functions than bytes"};
  if (!std::has_single_bit(alignment) || alignment < 16 || alignment > k_largest_page_size)
    return Error{ErrorCode::e_range, 0, "an alignment of code that is none of those from 16 to 65536"};
  try {
    if (state_ != nullptr) return state_->allocate(size, more_functions, alignment);
  } catch (const std::bad_alloc&) {
  }
  return Error{ErrorCode::out_of_memory, 0, "no memory for code segments"};
}

Status CodeSegments::commit(const Description& description, const Code& code) noexcept {
  return state_ == nullptr ? State::k_unknown : state_->commit(description, code);
}
Status CodeSegments::commit_marks(MarkRecorder& marks, const Code& code) noexcept {
  const Status committed = state_ == nullptr ? State::k_unknown : state_->commit(marks, code);
  if (!committed) marks.clear();  // register_code(), which forgets them, may not have been reached
  return committed;
}
Status CodeSegments::publish(AddrRange code) noexcept {
  return state_ == nullptr ? State::k_unknown : state_->publish(code);
}
Status CodeSegments::release(Addr start) noexcept {
  return state_ == nullptr ? State::k_unknown : state_->release(start);
}

Status CodeSegments::seal() noexcept { return state_ == nullptr ? Done{} : state_->seal(); }

CodeSegments* CodeSegments::of_environment() noexcept {
  static constexpr std::string_view k_yes[] = {"1"};
  constinit static std::atomic<CodeSegments*> segments{nullptr};
  constinit static std::atomic<bool> is_read{false};
  if (is_read.load(std::memory_order_acquire)) return segments.load(std::memory_order_relaxed);
  if (environment_words("JITUNWIND_PUBLISH", k_yes) != 0) {
    CodeSegments *const made = make_on_heap<CodeSegments>(), *of_other_thread = nullptr;
    if (!segments.compare_exchange_strong(of_other_thread, made)) destroy_on_heap(made);
  }
  is_read.store(true, std::memory_order_release);
  return segments.load(std::memory_order_relaxed);
}

void CodeSegments::refuse(const Error& why) noexcept {
  const SegmentsLock lock;
  if (state_ != nullptr) state_->refuse(why);
}

CodeSegmentsStatus CodeSegments::status() const {
  CodeSegmentsStatus status;
  const SegmentsLock lock;
  if (state_ != nullptr) state_->report(status);
  return status;
}

}  // namespace jitunwind
