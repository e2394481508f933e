
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <exception>

#include "jitunwind/adapters/listen/dumps/dump_follower_p.h"
#include "jitunwind/adapters/listen/frames/told_frames_p.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/lists/list_follower_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

constexpr long k_period = 10'000'000;  // nanoseconds

template <class Look>
void look(bool is_asked_for, Look look_at_it) {
  if (!is_asked_for) return;
  try {
    look_at_it();
  } catch (const std::exception&) {
    note_unheard({ErrorCode::out_of_memory, 0, "no memory for what is written of code"});
  }
}

/// The kernel keeps no memory of a process's first thread after that has ended, for example by pthread_exit().
bool has_main_ended() noexcept {
  const char from = 0;
  char into = 0;
  const iovec here{&into, 1};
  const iovec there{const_cast<char*>(&from), 1};
  return copy_between(SYS_process_vm_readv, ::getpid(), {&here, 1}, {&there, 1}) < 0 && errno == ESRCH;
}

/// A child that executes another program, or closes all files, has done so before the first poll. A process ends with
/// its last thread, so this thread must not be the last.
void* follow(void* waits_first) {
  if (waits_first != nullptr) sleep_for_nanoseconds(k_period);
  MapFollower maps;
  DumpFollower dumps;
  ListFollower lists;
  while (!has_main_ended()) {
    look(listens_to(Dialect::maps), [&] { maps.look(), dumps.look(); });
    look(listens_to(Dialect::gdb), [&] { lists.look(); });
    look(publishes(), publish_old_code);
    forget_unmapped_names(k_looked_at_each_time);
    forget_unmapped_frames(k_looked_at_each_time);
    sleep_for_nanoseconds(k_period);
  }
  return nullptr;
}

constinit std::atomic<bool> may_follow{false};  // constructors have run: the dialects are known
constinit std::atomic<bool> follows{false};

bool listens_to_what_is_written() noexcept {
  return listens_to(Dialect::maps) || listens_to(Dialect::gdb) || publishes();
}

void start_to_follow(bool waits_first) noexcept {
  if (follows.exchange(true)) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (const int failed = pthread_create(&thread, &attributes, follow, waits_first ? &follows : nullptr); failed != 0)
    note_unheard({ErrorCode::out_of_memory, 0, "no thread to follow what is written of code"});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

/// The child has its own lists and files from now on, and no thread except the one that forked.
void follow_in_child() noexcept {
  if (!follows.exchange(false)) return;
  count_heard(Heard::files, -heard(Heard::files));
  if (listens_to_what_is_written()) start_to_follow(true);
}

}  // namespace

void follow_what_is_written() noexcept {
  constinit static std::atomic<bool> is_in_forks{false};
  if (!is_in_forks.exchange(true)) (void)pthread_atfork(nullptr, nullptr, follow_in_child);
  start_to_follow(false);
}

void follow_where_an_engine_is() noexcept {
  may_follow.store(true);
  if (!listens_to_what_is_written()) return;
  GdbDescriptors descriptors;
  (void)descriptors.look();
  if (descriptors.is_one_of_others() || heard(Heard::told) != 0) follow_what_is_written();
}

void note_engine() noexcept {
  if (follows.load(std::memory_order_relaxed) || !may_follow.load(std::memory_order_relaxed)) return;
  if (listens_to_what_is_written()) follow_what_is_written();
}

}  // namespace jitunwind
