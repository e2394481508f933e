#include "jitunwind/adapters/listen/listen.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <string_view>

#include "jitunwind/adapters/listen/frames/told_frames_p.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/environment.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/trace/log.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {

constinit ForkableLock told_lock;
constinit ForkableLock names_lock;

namespace {

constinit thread_local bool names_are_lost = false;  // for the child of the fork in progress

/// The holder of the names may wait for this thread, if that is in an observer, or in a signal handler that interrupted
/// the registry. The lock is then only tried, for a limited time.
void take_names() noexcept {
  if (!is_writing()) return names_lock.before_fork();
  const ErrnoKeeper keep_errno;
  int patience = 1000;
  while (!names_lock.try_before_fork() && --patience != 0) sleep_for_nanoseconds(100'000);
  names_are_lost = patience == 0;
}

void give_names_back() noexcept {
  if (!names_are_lost) names_lock.after_fork();
  names_are_lost = false;
}

void give_names_back_in_child() noexcept {
  if (names_are_lost) {
    forget_names_in_child();
    forget_itt_methods_in_child();
    names_lock.forget_owner();
  }
  give_names_back();
}

[[gnu::constructor(101)]] void keep_told_whole_in_forks() {
  const auto in_child = [] {
    forget_nothing_in_child();
    told_lock.after_fork();
  };
  (void)pthread_atfork([] { told_lock.before_fork(); }, [] { told_lock.after_fork(); }, in_child);
}

}  // namespace

void keep_names_whole_in_forks() noexcept {
  constinit static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  (void)register_procedures({});  // installs the registry's handlers
  (void)pthread_atfork(take_names, give_names_back, give_names_back_in_child);
}

namespace {

constexpr std::array<std::string_view, 6> k_words{"frames", "itt", "maps", "gdb", "publish", "nothing"};
constexpr std::uint32_t k_nothing = 1u << (k_words.size() - 1);
static_assert((k_all_dialects | k_publish) == k_nothing - 1);

// Calls arrive before constructors have run, including those of this library.
constinit std::atomic<std::uint32_t> listened_to{k_all_dialects};
constinit std::array<std::atomic<std::int64_t>, static_cast<std::size_t>(Heard::count)> counts{};
constinit std::atomic<std::uint64_t> unheard{0};
constinit std::atomic<ErrorCode> latest_code{ErrorCode::unspecified};
constinit std::atomic<Addr> latest_at{0};
constinit std::atomic<const char*> latest_what{""};

/// Counter of refusals for one reason: an engine may cause the same refusal for thousands of pieces of code. Reasons
/// are constant texts, distinguished by their addresses.
struct Reason {
  std::atomic<const char*> what{nullptr};
  std::atomic<std::uint64_t> times{0};
};
constinit std::array<Reason, 64> reasons{};
constexpr std::uint64_t k_logged_one_by_one = 8;

/// Number of refusals for this reason, including this one. 0: there is no room for another reason.
std::uint64_t times_not_heard(const char* what) noexcept {
  for (Reason& reason : reasons) {
    const char* known = nullptr;
    if (reason.what.compare_exchange_strong(known, what, std::memory_order_relaxed) || known == what)
      return reason.times.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  return 0;
}

std::atomic<std::int64_t>& count_of(Heard what) noexcept { return counts[static_cast<std::size_t>(what)]; }
std::uint64_t so_far(Heard what) noexcept { return static_cast<std::uint64_t>(heard(what)); }

/// Runs before threads exist that might change the environment. Unknown words alone select nothing.
[[gnu::constructor]] void listen_by_environment() {
  const std::uint32_t words = environment_words("JITUNWIND_LISTEN", k_words);
  if (words == k_publish)
    listen(k_all_dialects | k_publish);
  else if (words != 0)
    listen((words & k_nothing) != 0 ? 0 : words);
  follow_where_an_engine_is();
  if (!logs(LogTopic::registry) || !listens_to(Dialect::frames)) return;
  LogLine(LogTopic::registry)
      .text(are_frames_told_here() ? "listens to __register_frame"
                                   : "does not hear __register_frame: another definition comes first");
}

}  // namespace

void count_heard(Heard what, std::int64_t by) noexcept { count_of(what).fetch_add(by, std::memory_order_relaxed); }

void count_under_lock(Heard what, std::int64_t by) noexcept {
  count_of(what).store(heard(what) + by, std::memory_order_relaxed);
}

std::int64_t heard(Heard what) noexcept { return count_of(what).load(std::memory_order_relaxed); }

void note_unheard(const Error& why) noexcept {
  unheard.fetch_add(1, std::memory_order_relaxed);
  latest_at.store(why.at, std::memory_order_relaxed);
  latest_what.store(why.what, std::memory_order_relaxed);
  latest_code.store(why.code, std::memory_order_relaxed);
  note_refusal("not heard", why);
}

void note_refusal(const char* what, const Error& why) noexcept {
  if (!logs(LogTopic::registry)) return;
  const std::uint64_t times = times_not_heard(why.what);
  if (times > k_logged_one_by_one && !std::has_single_bit(times)) return;
  LogLine line(LogTopic::registry);
  line.text(what).text(": ").text(error_name(why.code)).text(", ").text(why.what).text(", at ").hex(why.at);
  if (times > k_logged_one_by_one) line.text(", ").number(times).text(" times so far");
}

bool listens_to(Dialect dialect) noexcept {
  return (listened_to.load(std::memory_order_relaxed) & static_cast<std::uint32_t>(dialect)) != 0;
}

bool publishes() noexcept { return (listened_to.load(std::memory_order_relaxed) & k_publish) != 0; }

/// Call frame information that is not announced by calls has no personality routines. If the same code were announced
/// to libgcc alone, exceptions would pass their handlers.
void listen(std::uint32_t dialects) noexcept {
  constexpr auto k_without_personality =
      static_cast<std::uint32_t>(Dialect::maps) | static_cast<std::uint32_t>(Dialect::gdb);
  if ((dialects & k_without_personality) != 0) dialects |= static_cast<std::uint32_t>(Dialect::frames);
  listened_to.store(dialects & (k_all_dialects | k_publish), std::memory_order_relaxed);
  if (listens_to(Dialect::maps) || listens_to(Dialect::gdb) || publishes()) follow_what_is_written();
}

void say_name(Dialect dialect, const AddrRange& code, std::string_view name) noexcept {
  if (listens_to(dialect)) name_code(code, name);
}

void say_lines(Dialect dialect, Addr begin, std::span<const ToldLine> lines) noexcept try {
  if (listens_to(dialect)) add_lines(begin, SourceLines(lines));
} catch (const std::bad_alloc&) {
  note_unheard({ErrorCode::out_of_memory, begin, "no memory for lines"});
}

void say_gone(Dialect dialect, const AddrRange& code) noexcept {
  if (listens_to(dialect)) forget_names(code);
}

ListenStatus listen_status() noexcept {
  ListenStatus status;
  status.are_frames_told_here = are_frames_told_here();
  status.dialects = listened_to.load(std::memory_order_relaxed);
  status.told = so_far(Heard::told);
  status.taken_back = so_far(Heard::taken_back);
  status.never_told = so_far(Heard::never_told);
  status.procedures = so_far(Heard::procedures);
  status.names = so_far(Heard::names);
  status.files = so_far(Heard::files);
  status.handed_on = so_far(Heard::handed_on);
  status.refused = unheard.load(std::memory_order_relaxed);
  status.latest_refusal = {latest_code.load(std::memory_order_relaxed), latest_at.load(std::memory_order_relaxed),
                           latest_what.load(std::memory_order_relaxed)};
  report_published(status);
  return status;
}

}  // namespace jitunwind
