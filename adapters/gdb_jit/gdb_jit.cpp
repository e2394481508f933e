#include "adapters/gdb_jit/gdb_jit.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "adapters/gdb_jit/code_files_p.h"
#include "dyn_info/directives.h"
#include "dyn_info/environment_p.h"
#include "dyn_info/observers_p.h"
#include "sdk/fde_encoder_p.h"
#include "sdk/local_space.h"

namespace jitunwind {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// How often, and for how much of the time, debuggers may stop the process: so many times whatever it takes, and more
/// while it takes no more than a fifth of the time, and what was saved up of both.
class StopBudget {
 public:
  bool is_spent() const noexcept { return time_ <= 0ns && stops_ < k_between_stops; }
  void refill() noexcept {
    const auto passed = Clock::now() - refilled_;
    refilled_ += passed;
    time_ = std::min(time_ + passed / 5, k_most_time);
    stops_ = std::min(stops_ + passed, k_most_stops);
  }
  void spend(Clock::duration time) noexcept {
    time_ -= time;
    stops_ = std::max(stops_ - k_between_stops, Clock::duration(0));
  }
  void restore() noexcept {
    time_ = k_most_time;
    stops_ = k_most_stops;
  }

 private:
  static constexpr Clock::duration k_most_time = 400ms;
  static constexpr Clock::duration k_between_stops = 30ms;
  static constexpr Clock::duration k_most_stops = 100 * k_between_stops;
  Clock::duration time_ = k_most_time;
  Clock::duration stops_ = k_most_stops;  // as the time in which there may be one each 30 ms
  Clock::time_point refilled_ = Clock::now();
};

class CfiCollector final : public FdeReceiver {
 public:
  explicit CfiCollector(std::vector<std::byte>& into) noexcept : into_(into) {}
  void fde(AddrRange, std::span<const std::byte> bytes) override {
    into_.insert(into_.end(), bytes.begin(), bytes.end());
  }
  void refused(const Error& error) noexcept override { error_ = error; }
  const std::optional<Error>& error() const noexcept { return error_; }

 private:
  std::vector<std::byte>& into_;
  std::optional<Error> error_;
};

/// As it is registered now; longer ones than debuggers print are cut.
std::string name_of(Addr start) {
  std::array<char, 4096> name;
  MemoryWindow window;
  Lookup lookup(local_space(), CodeAddress::interrupted(start), window);
  ProcedureName found;
  const Found known = dyn_name_source().find_name(lookup, name, found);
  if (!known || !*known) return {};
  return name.data();
}

class GdbJit final : public RegistryObserver {
 public:
  GdbJit() : files_(local_space().arch, tracer_) {}

  void open() noexcept { files_.open(); }
  void close() noexcept {
    waiting_.clear();
    files_.close();
  }

  void registered(std::span<const RegisteredProcedure> procedures) noexcept override {
    change([&] {
      waiting_.insert(waiting_.end(), procedures.begin(), procedures.end());
      budget_.refill();
      if (!may_wait()) publish();
    });
  }
  void cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept override {
    change([&] {
      forget_waiting();
      files_.remove(procedures);
    });
  }
  void retired() noexcept override {
    change([&] {
      forget_waiting();
      files_.remove_all_gone();
    });
  }

  void flush() noexcept {
    change([&] {
      if (observers.some_retired.load(std::memory_order_acquire)) files_.remove_all_gone();
      publish();
    });
  }

  void report(GdbStatistics& statistics) const noexcept {
    statistics.procedures = files_.procedures();
    statistics.waiting = waiting_.size();
    statistics.files = files_.files();
    statistics.bytes = files_.bytes();
    statistics.refused = refused_;
    statistics.latest_refusal = latest_refusal_;
  }

  /// Ends with the thread that waits.
  void wait_is_over() noexcept { waiter_process_ = 0; }
  bool has_waiting() const noexcept { return !waiting_.empty(); }

 private:
  static constexpr std::size_t k_most_waiting = 4096;

  template <class Change>
  void change(Change change) noexcept {
    const auto begin = Clock::now();
    try {
      change();
    } catch (const std::bad_alloc&) {
      refuse({ErrorCode::out_of_memory, 0, "no memory for files for debuggers: they were taken back"});
      close();
      files_.open();
    }
    budget_.spend(Clock::now() - begin);
  }

  void refuse(const Error& error) noexcept {
    ++refused_;
    latest_refusal_ = error;
  }

  bool may_wait() noexcept {
    if (!budget_.is_spent() || waiting_.size() >= k_most_waiting) return false;
    if (tracer_.kind() != TracerKind::none) return start_waiter();
    budget_.restore();
    return false;
  }

  bool start_waiter() noexcept;

  void forget_waiting() noexcept {
    std::erase_if(waiting_, [](const RegisteredProcedure& p) { return !still_registered(p.key); });
  }

  void publish() {
    std::vector<std::unique_ptr<DebuggedProcedure>> described;
    std::unordered_set<const unw_dyn_info_t*> seen;
    for (const RegisteredProcedure& procedure : std::exchange(waiting_, {})) {
      if (files_.contains(procedure.info) || !seen.insert(procedure.info).second) continue;
      if (auto known = describe(procedure)) described.push_back(std::move(known));
    }
    files_.add(std::move(described));
  }

  /// Null: it is not registered any more.
  std::unique_ptr<DebuggedProcedure> describe(const RegisteredProcedure& procedure) {
    auto known = std::make_unique<DebuggedProcedure>();
    known->key = procedure.key;
    known->info = procedure.info;
    {
      const ProcedureHold hold(procedure.key);
      if (hold.info() == nullptr) return nullptr;
      known->code = {hold.info()->start_ip, hold.info()->end_ip};
    }
    // Without the hold, since rows may be asked of sources that wait for the dynamic linker.
    known->name = name_of(known->code.begin);
    CfiCollector collector(known->cfi);
    encode_fdes(known->code, collector);
    if (!still_registered(procedure.key)) return nullptr;
    if (collector.error()) refuse(*collector.error());
    return known;
  }

  Tracer tracer_;
  CodeFiles files_;
  std::vector<RegisteredProcedure> waiting_;
  StopBudget budget_;
  pid_t waiter_process_ = 0;  // has a thread that hands on what waits
  std::uint64_t refused_ = 0;
  Error latest_refusal_{};
};

// Everything below is under the observers' lock.

/// Never destroyed: static objects of others cancel at exit.
GdbJit* gdb_jit = nullptr;
alignas(GdbJit) std::byte gdb_jit_memory[sizeof(GdbJit)];
constinit bool is_attached = false;

void* wait_and_flush(void*) {
  const timespec time{0, std::chrono::nanoseconds(30ms).count()};
  nanosleep(&time, nullptr);
  const WritingScope writing;
  const ObserversScope scope;
  gdb_jit->wait_is_over();
  if (is_attached && gdb_jit->has_waiting()) gdb_jit->flush();
  return nullptr;
}

/// A thread that runs once, so that what comes last does not wait for ever. True: there is one, in this process.
bool GdbJit::start_waiter() noexcept {
  if (waiter_process_ == ::getpid()) return true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, wait_and_flush, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) return false;
  pthread_detach(thread);
  waiter_process_ = ::getpid();
  return true;
}

}  // namespace

Status attach_gdb_in_writer() noexcept {
  const ObserversScope scope;
  if (is_attached) return Done{};
  try {
    if (gdb_jit == nullptr) gdb_jit = new (gdb_jit_memory) GdbJit;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, 0, "no memory for files for debuggers"};
  }
  gdb_jit->open();
  is_attached = true;
  const Status attached = attach_in_scope(*gdb_jit);
  if (!attached) {
    gdb_jit->close();
    is_attached = false;
  }
  return attached;
}

Status attach_gdb() noexcept {
  if (WritingScope::active()) return refused_to_interrupter();
  const WritingScope writing;
  return attach_gdb_in_writer();
}

Status detach_gdb() noexcept {
  if (WritingScope::active()) return refused_to_interrupter();
  const WritingScope writing;
  const ObserversScope scope;
  if (!is_attached) return Done{};
  (void)observers.remove(*gdb_jit);
  gdb_jit->close();
  is_attached = false;
  return Done{};
}

Status flush_gdb() noexcept {
  if (WritingScope::active()) return refused_to_interrupter();
  const WritingScope writing;
  const ObserversScope scope;
  if (is_attached) gdb_jit->flush();
  return Done{};
}

GdbStatistics gdb_statistics() noexcept {
  GdbStatistics statistics;
  if (WritingScope::active()) return statistics;
  const WritingScope writing;
  const ObserversScope scope;
  statistics.attached = is_attached;
  if (gdb_jit != nullptr) gdb_jit->report(statistics);
  return statistics;
}

}  // namespace jitunwind
