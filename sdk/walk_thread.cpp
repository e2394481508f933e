#include "jitunwind/sdk/walk_thread.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <new>
#include <string_view>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

bool is_thread(pid_t thread) noexcept { return ::syscall(SYS_tgkill, ::getpid(), thread, 0) == 0; }

}  // namespace

/// Holds a question and its answer. It outlives the asking thread's wait: the other thread may answer when nobody waits
/// any more. `word_` combines whose turn it is with the question's number, so an answer to an old question is
/// recognised by its number.
class ThreadQuestion {
 public:
  /// Returns false if the question belongs to another thread.
  bool take() noexcept {
    Word word = word_.load(std::memory_order_relaxed);
    const pid_t process = ::getpid();
    // A child of fork() has none of the threads that asked.
    if (turn_of(word) != Turn::nobody && owner_.load(std::memory_order_relaxed) == process) return false;
    if (!word_.compare_exchange_strong(word, next_question(word), std::memory_order_acq_rel)) return false;
    owner_.store(process, std::memory_order_relaxed);
    return true;
  }
  std::uint32_t word() const noexcept { return word_.load(std::memory_order_relaxed); }

  /// Called in the signal handler of the asked thread.
  void answer(std::uint32_t asked, const void* ucontext) noexcept {
    Word word = asked;
    if (!word_.compare_exchange_strong(word, with(asked, Turn::answers), std::memory_order_acq_rel)) return;
    fill(ucontext);
    word = with(asked, Turn::answers);
    // The asking thread has given up.
    if (!word_.compare_exchange_strong(word, with(asked, Turn::answered), std::memory_order_acq_rel))
      return word_.store(with(asked, Turn::nobody), std::memory_order_release);
    (void)::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  /// Returns whether there is an answer before the time is over or the thread has ended. Waits twice as long if the
  /// thread has begun to answer. The question is over afterwards.
  bool wait(std::uint32_t asked, pid_t thread, std::chrono::nanoseconds time, ThreadWalk& out) noexcept {
    wait_while(asked, thread, time);
    Word word = asked;
    if (word_.compare_exchange_strong(word, with(asked, Turn::nobody), std::memory_order_acq_rel)) return false;
    wait_while(with(asked, Turn::answers), thread, time);
    word = with(asked, Turn::answers);
    if (word_.compare_exchange_strong(word, with(asked, Turn::given_up), std::memory_order_acq_rel)) return false;
    out = *reinterpret_cast<const ThreadWalk*>(&answer_);
    word_.store(with(asked, Turn::nobody), std::memory_order_release);
    return true;
  }
  void drop(std::uint32_t asked) noexcept { word_.store(with(asked, Turn::nobody), std::memory_order_release); }

  static void set_answer(ThreadWalk& walk, ThreadWalk::Answer answer) noexcept { walk.answer_ = answer; }

 private:
  using Word = std::uint32_t;
  enum class Turn : Word { nobody, asked, answers, answered, given_up };
  static constexpr Word k_turns = 8;
  static Turn turn_of(Word word) noexcept { return static_cast<Turn>(word % k_turns); }
  static Word with(Word word, Turn turn) noexcept { return word - word % k_turns + static_cast<Word>(turn); }
  static Word next_question(Word word) noexcept { return with(word + k_turns, Turn::asked); }

  void fill(const void* ucontext) noexcept {
    ThreadWalk& answer = *new (&answer_) ThreadWalk;
    answer.answer_ = ThreadWalk::Answer::given;
    Walk walk = walk_interrupted(ucontext);
    for (const Frame& frame : walk) {
      if (answer.size_ == ThreadWalk::k_most_frames) {
        answer.stop_ = StopReason::limit;
        answer.error_ = {ErrorCode::frame_limit, frame.pc(), "frames of another thread"};
        return;
      }
      answer.frames_[answer.size_++] = ThreadFrame(frame.address(), frame.sp(), frame.origin());
    }
    answer.stop_ = walk.stop_reason();
    answer.error_ = walk.stop_reason() == StopReason::outermost ? Error{} : walk.stop_error();
  }

  /// Looks again and again whether the thread is still there: the kernel queues signals for a thread that is ending,
  /// but the thread does not answer them.
  void wait_while(Word expected, pid_t thread, std::chrono::nanoseconds time) noexcept {
    constexpr std::int64_t k_look_again = k_second / 500;
    const std::int64_t end = nanoseconds_of(CLOCK_MONOTONIC) + time.count();
    for (std::int64_t left;
         word_.load(std::memory_order_acquire) == expected && (left = end - nanoseconds_of(CLOCK_MONOTONIC)) > 0;) {
      const timespec until{0, static_cast<long>(std::min(left, k_look_again))};
      (void)::syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, expected, &until, nullptr, 0);
      if (word_.load(std::memory_order_acquire) == expected && !is_thread(thread)) return;
    }
  }
  static constexpr std::int64_t k_second = 1'000'000'000;

  std::atomic<Word> word_{0};
  std::atomic<pid_t> owner_{0};
  alignas(ThreadWalk) std::array<std::byte, sizeof(ThreadWalk)> answer_{};  // all zeros take no room in a file
};

namespace {

using Answer = ThreadWalk::Answer;

constexpr std::size_t k_questions = 16;
constinit MadeOnce<std::array<ThreadQuestion, k_questions>> questions;

/// Packs a question's number and word into the value that a signal carries.
void* carried(std::size_t number, std::uint32_t word) noexcept {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(std::uint64_t{word} << 32 | number));
}

void answer_signal(int, siginfo_t* info, void* ucontext) noexcept {
  const ErrnoKeeper keeper;
  if (info->si_code != SI_QUEUE || info->si_pid != ::getpid()) return;
  const std::uint64_t value = reinterpret_cast<std::uintptr_t>(info->si_value.sival_ptr);
  const std::size_t number = value & 0xffff'ffff;
  auto* const asked = questions.if_made();
  if (asked && number < k_questions) (*asked)[number].answer(static_cast<std::uint32_t>(value >> 32), ucontext);
}

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == answer_signal;
}

/// 0: not chosen yet; -1: a thread is choosing.
constinit std::atomic<int> signal_number{0};

/// Chooses the highest real-time signal that is neither handled nor ignored. Returns 0 if there is none.
int choose_signal() noexcept {
  for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
    struct sigaction action;
    if (::sigaction(signal, nullptr, &action) != 0) continue;
    if (is_ours(action)) return signal;
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) continue;
    action = {};
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    action.sa_sigaction = answer_signal;
    ::sigfillset(&action.sa_mask);
    if (::sigaction(signal, &action, nullptr) == 0) return signal;
  }
  return 0;
}

/// Returns 0 if there is none. Chooses another signal if the program has replaced our handler.
int signal_to_ask_by() noexcept {
  constexpr int k_most_tries = 1000;  // this thread may have interrupted the one that chooses, in a signal handler
  for (int i = 0; i < k_most_tries; ++i) {
    int signal = signal_number.load(std::memory_order_acquire);
    struct sigaction action;
    if (signal > 0 && ::sigaction(signal, nullptr, &action) == 0 && is_ours(action)) return signal;
    if (signal >= 0 && signal_number.compare_exchange_strong(signal, -1, std::memory_order_acq_rel)) {
      signal = choose_signal();
      signal_number.store(signal, std::memory_order_release);
      return signal;
    }
    ::sched_yield();
  }
  return 0;
}

/// Reads SigBlk, a hexadecimal mask, from /proc/self/task/TID/status (proc_pid_status(5)).
bool blocks(pid_t thread, int signal) noexcept {
  std::array<char, 64> path{"/proc/self/task/"};
  char* const digits = path.data() + std::strlen(path.data());
  char* const end = std::to_chars(digits, path.data() + 32, thread).ptr;
  std::memcpy(end, "/status", sizeof "/status");
  const ReadableFile file(path.data());
  if (!file.is_open()) return false;
  LineReader<512> lines(file);
  constexpr std::string_view k_key = "SigBlk:\t";
  for (std::string_view line; lines.next(line);) {
    if (!line.starts_with(k_key)) continue;
    std::uint64_t mask = 0;
    std::from_chars(line.data() + k_key.size(), line.data() + line.size(), mask, 16);
    return (mask >> (signal - 1) & 1) != 0;
  }
  return false;
}

}  // namespace

Result<ProcedureName> ThreadFrame::raw_name(std::span<char> into) const noexcept {
  const AddressSpace& space = local_space().for_addresses();
  MemoryWindow window;
  ProcedureName name;
  if (find_local_name(space.named_at(address_, window), into, name)) return name;
  return Error{ErrorCode::no_info, pc(), "no name for this pc"};
}

ThreadWalk walk_thread(pid_t thread, std::chrono::nanoseconds wait) noexcept {
  const ErrnoKeeper keeper;
  ThreadWalk walk;
  const auto without = [&](Answer why) {
    ThreadQuestion::set_answer(walk, why);
    return walk;
  };
  if (thread <= 0) return without(Answer::no_thread);
  const int signal = signal_to_ask_by();
  if (signal <= 0) return without(Answer::no_signal);
  auto* const all = questions.get();
  std::size_t number = 0;
  while (all && number < k_questions && !(*all)[number].take()) ++number;
  if (!all || number == k_questions) return without(Answer::busy);
  ThreadQuestion& question = (*all)[number];
  const std::uint32_t asked = question.word();

  siginfo_t info{};
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_ptr = carried(number, asked);
  if (::syscall(SYS_rt_tgsigqueueinfo, info.si_pid, thread, signal, &info) != 0) {
    const Answer why = errno == EAGAIN ? Answer::no_signal : Answer::no_thread;
    question.drop(asked);
    return without(why);
  }
  if (question.wait(asked, thread, wait, walk)) return walk;
  if (!is_thread(thread)) return without(Answer::no_thread);
  return without(blocks(thread, signal) ? Answer::blocked : Answer::none);
}

}  // namespace jitunwind
