#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <unordered_set>
#include <utility>
#include <vector>

#include "jitunwind/adapters/gdb_jit/code_files_p.h"
#include "jitunwind/adapters/gdb_jit/gdb_functions_p.h"
#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"
#include "jitunwind/dyn_info/registry/observers_internal.h"
#include "jitunwind/sdk/c/answer_internal.h"
#include "jitunwind/sdk/exceptions/copied_procedure_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/targets/threads/own_thread_internal.h"
#include "jitunwind/unwind_core/targets/tracer_internal.h"

namespace jitunwind {
namespace {

/// A delayed call on a thread of its own. One thread at a time, except for join().
class LateCall {
 public:
  /// Calls `call()` once, after `delay`. True: the call will happen, in this process; also if it was pending already.
  bool start(std::chrono::nanoseconds delay, void (*call)()) noexcept {
    const pid_t process = ::getpid();
    if (process_ == process) return true;
    if (stopped_.load() != 0) return false;
    thread_.join();  // the thread before is about to end
    delay_ = delay;
    call_ = call;
    const bool started = thread_.start(run, this);
    if (started) process_ = process;
    return started;
  }
  /// Called by `call()`: start() may start another call from now on.
  void is_over() noexcept { process_ = 0; }
  /// Prevents every later call.
  void stop() noexcept { (void)stopped_.exchange(1); }
  /// Waits after stop() until a call that had begun has returned and no thread is left. The caller must not hold a lock
  /// that the call waits for.
  void join() noexcept { thread_.join(); }

 private:
  static void run(void* self) noexcept {
    LateCall& late = *static_cast<LateCall*>(self);
    const timespec until = monotonic_time_in(late.delay_.count());
    late.stopped_.wait_while(0, &until);
    if (late.stopped_.load() == 0) late.call_();
  }

  OwnThread thread_;
  pid_t process_ = 0;  // the process with a thread whose call is not over
  std::chrono::nanoseconds delay_{};
  void (*call_)() = nullptr;
  WaitedWord stopped_;  // 0: no
};

class GdbJit final : public RegistryObserver {
 public:
  GdbJit() : files_(local_space().arch, tracer_) {}

  bool open() noexcept { return files_.open(); }
  void close() noexcept {
    waiting_ = decltype(waiting_)();
    files_.close();
  }

  void registered(std::span<const RegisteredProcedure> procedures) noexcept override {
    change([&] {
      const bool waits = may_wait(procedures.size());
      std::copy_if(procedures.begin(), procedures.end(), std::back_inserter(waiting_),
                   [&](const RegisteredProcedure& procedure) { return !is_read_from_file(procedure); });
      if (!waits) publish();
    });
  }
  void cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept override {
    change([&] { files_.remove(procedures, [&] { return may_wait(0); }); });
  }
  void retired() noexcept override {
    change([&] { files_.remove_all_gone([&] { return may_wait(0); }); });
  }

  void flush() noexcept {
    change([&] {
      if (observers.some_retired.load(std::memory_order_acquire)) files_.remove_all_gone([] { return false; });
      publish();
    });
  }

  GdbStatistics statistics(bool attached) const noexcept {
    return {attached,       copies(), files_.procedures(), files_.withdrawn() + waiting(), files_.files(),
            files_.bytes(), refused_, latest_refusal_};
  }

  unsigned copies() const noexcept { return files_.users(); }
  LateCall& late_call() noexcept { return late_call_; }
  bool has_waiting() const noexcept { return !waiting_.empty() || files_.withdrawn() != 0; }

 private:
  static constexpr std::size_t k_most_waiting = 4096;

  template <class Change>
  void change(Change change) noexcept {
    const auto begin = StopBudget::Clock::now();
    const std::uint64_t stops = files_.stops();
    try {
      change();
    } catch (const std::bad_alloc&) {
      refuse({ErrorCode::out_of_memory, 0, "no memory for files for debuggers: they were taken back"});
      close();
      (void)files_.open();
    }
    if (files_.stops() != stops)
      budget_.spend(StopBudget::Clock::now() - begin, static_cast<unsigned>(files_.stops() - stops));
  }

  void refuse(const Error& error) noexcept {
    ++refused_;
    latest_refusal_ = error;
  }

  /// Whether changes may be published later, and will be. `more`: number of procedures to be registered.
  bool may_wait(std::size_t more) noexcept;

  /// Debuggers that come later read the file. A debugger that is here may have read it before.
  bool is_read_from_file(const RegisteredProcedure& procedure) noexcept {
    const auto is_known = is_in_file.load(std::memory_order_acquire);
    if (is_known == nullptr || tracer_.kind() != TracerKind::none) return false;
    Addr start = 0;
    {
      const ProcedureHold hold(procedure.key);
      if (hold.info() != nullptr) start = hold.info()->start_ip;
    }
    return start != 0 && is_known(start);
  }

  std::size_t waiting() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(waiting_.begin(), waiting_.end(), [](const auto& p) { return still_registered(p.key); }));
  }

  void publish() {
    std::vector<std::unique_ptr<DebuggedProcedure>> made;
    std::unordered_set<const unw_dyn_info_t*> seen;
    for (const RegisteredProcedure& procedure : std::exchange(waiting_, {})) {
      if (!still_registered(procedure.key) || files_.contains(procedure.info) || !seen.insert(procedure.info).second)
        continue;
      if (auto known = make_debugged(procedure)) made.push_back(std::move(known));
    }
    files_.add(std::move(made));
  }

  /// Null: the procedure is no longer registered.
  std::unique_ptr<DebuggedProcedure> make_debugged(const RegisteredProcedure& procedure) {
    auto read = copy_registered(procedure, CfiPointers::absolute);
    if (!read) return nullptr;
    if (read->not_encoded) refuse(*read->not_encoded);
    return std::make_unique<DebuggedProcedure>(std::move(*read), procedure.key, procedure.info);
  }

  Tracer tracer_;
  CodeFiles files_;
  std::vector<RegisteredProcedure> waiting_;
  StopBudget budget_;
  LateCall late_call_;
  std::uint64_t refused_ = 0;
  Error latest_refusal_{};
};

// The observers' lock guards everything below.

/// Never destroyed, because foreign static objects cancel at exit.
GdbJit* gdb_jit = nullptr;
alignas(GdbJit) std::byte gdb_jit_memory[sizeof(GdbJit)];
constinit bool is_attached = false;

void hand_on_what_waits() {
  const WritingScope writing;
  const ObserversScope scope;
  gdb_jit->late_call().is_over();
  if (is_attached && gdb_jit->has_waiting()) gdb_jit->flush();
}

bool GdbJit::may_wait(std::size_t more) noexcept {
  if (!budget_.is_spent() || waiting_.size() + more > k_most_waiting) return false;
  if (!has_waiting() && budget_.has_paused()) return false;
  if (tracer_.kind() != TracerKind::none) return late_call_.start(budget_.pause(), hand_on_what_waits);
  budget_.restore();
  return false;
}

Status attach() noexcept {
  const ObserversScope scope;
  if (is_attached) return Done{};
  try {
    if (gdb_jit == nullptr) gdb_jit = new (gdb_jit_memory) GdbJit;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, 0, "no memory for files for debuggers"};
  }
  if (!gdb_jit->open()) return Error{ErrorCode::out_of_memory, 0, "no memory for lists for debuggers"};
  is_attached = true;
  const Status attached = attach_in_scope(*gdb_jit);
  if (!attached) {
    gdb_jit->close();
    is_attached = false;
  }
  return attached;
}

const char* attach_by_environment() noexcept {
  if (const Status attached = attach(); !attached) return attached.error().what;
  const ObserversScope scope;
  if (gdb_jit->copies() < 2) return nullptr;
  return "the process has another copy of this library, with procedures of its own; debuggers are shown both";
}

Status detach() noexcept {
  const ObserversScope scope;
  if (!is_attached) return Done{};
  (void)observers.remove(*gdb_jit);
  gdb_jit->close();
  is_attached = false;
  return Done{};
}

Status flush() noexcept {
  const ObserversScope scope;
  if (is_attached) gdb_jit->flush();
  return Done{};
}

GdbStatistics statistics() noexcept {
  const ObserversScope scope;
  return gdb_jit != nullptr ? gdb_jit->statistics(is_attached) : GdbStatistics{};
}

/// Runs when the code may be unmapped next, or when the process ends; later registrations are not published. It runs
/// after the destructors of static objects, which cancel.
[[gnu::destructor(101)]] void leave() {
  // exit() was called in a signal handler that interrupted a change on its own thread.
  if (WritingScope::active() || gdb_jit == nullptr) return;
  {
    const WritingScope writing;
    const ObserversScope scope;
    gdb_jit->late_call().stop();
  }
  gdb_jit->late_call().join();
  const WritingScope writing;
  (void)detach();
}

ju_status statistics_get(ju_gdb_statistics* statistics, ju_error* error) {
  const GdbStatistics now = gdb_statistics();
  const ju_gdb_statistics out{0,         now.attached, now.copies,  now.procedures,        now.waiting,
                              now.files, now.bytes,    now.refused, c::latest_refusal(now)};
  return c::write_struct(out, statistics, "statistics", error);
}

/// Puts the thread-locals of the C++ run-time library, which this library has as well, into memory that each thread
/// has. Otherwise the first exception of a thread, which says that there is no memory, would allocate.
constinit thread_local char own_thread_local = 0;

[[gnu::constructor(101)]] void come() {
  asm volatile("" : : "r"(&own_thread_local));
  gdb_comes(*jitunwind_gdb_functions());
}

}  // namespace

const GdbFunctions* jitunwind_gdb_functions() noexcept {
  static constexpr GdbFunctions k_functions{attach, detach, flush, statistics, attach_by_environment, statistics_get};
  return &k_functions;
}

}  // namespace jitunwind
