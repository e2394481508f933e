// Walks of another process that registers and cancels procedures without pause, while its threads call through them.
//
//   remote_storm --walks N
//
// The process is stopped at any instruction. Its threads are walked while it is stopped, and again from the copy after
// it has gone on. Each walk is judged by the thread's own record of its calls. Fails on any wrong frame.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "jitunwind/sdk/target.h"
#include "tests/prove/storm_code.h"
#include "tests/prove/storm_frames.h"

namespace jitunwind::storm {

namespace {

// The target.

constexpr std::size_t k_walkers = 8;
constexpr unsigned k_deepest = 12;

/// The memory that both processes share.
struct Told {
  std::atomic<std::size_t> ready{0}, replaced{0};
  std::array<pid_t, k_walkers> threads{};
  std::array<Addr, k_walkers> shadows{};
};

struct Walker {
  Shadow shadow;
  Arena& arena;
  std::mt19937 random;
};

struct Descent {
  Walker& self;
  unsigned left;
};

[[gnu::noinline]] void* arrive_from_procedure(void* descent);
[[gnu::noinline]] void* arrive(void* descent);

/// Calls the beginning of `next` through a procedure, or through other code if that is being replaced.
[[gnu::noinline]] void* call(Descent& next) {
  Walker& self = next.self;
  const Pushed pushed(self.shadow);
  Slot& slot = self.arena.any(self.random);
  if (const User user(slot.gate()); user) return slot.code()(&arrive_from_procedure, &next, &self.shadow);
  return through_realigned(&arrive, &next, &self.shadow);
}

[[gnu::noinline]] void* work(Descent& here) {
  const Pushed pushed(here.self.shadow);
  for (unsigned i = here.self.random() % 256; i != 0; --i) asm volatile("" : "+r"(i));
  return &here;
}

[[gnu::always_inline]] inline void* go_on(void* descent) {
  Descent& here = *static_cast<Descent*>(descent);
  if (here.left == 0) return returned(work(here));
  Descent next{here.self, here.left - 1};
  return returned(call(next));
}

[[gnu::noinline]] void* arrive_from_procedure(void* descent) { return go_on(descent); }
[[gnu::noinline]] void* arrive(void* descent) {
  const Pushed pushed(static_cast<const Descent*>(descent)->self.shadow);
  return go_on(descent);
}

[[gnu::noinline]] void* descend_again_and_again(Walker& self) {
  const Pushed pushed(self.shadow);
  for (;;) {
    Descent descent{self, static_cast<unsigned>(self.random() % k_deepest)};
    (void)returned(call(descent));
  }
}

[[noreturn]] void be_the_target(Arena& arena, Told& told) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::mt19937 random(1);
  arena.fill_all(random);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < k_walkers; ++i)
    threads.emplace_back([&, i] {
      Walker self{{}, arena, std::mt19937(static_cast<unsigned>(i) + 2)};
      self.shadow.top = self.shadow.calls.data();
      told.threads[i] = ::gettid();
      told.shadows[i] = reinterpret_cast<std::uintptr_t>(&self.shadow);
      ++told.ready;
      (void)returned(descend_again_and_again(self));
    });
  for (;;)
    if (arena.replace_one(random)) told.replaced.fetch_add(1, std::memory_order_relaxed);
}

// The tracer.

const Arena* arena_of_target = nullptr;
bool is_procedure(Addr pc) { return arena_of_target->contains(pc); }

struct Figures {
  std::size_t walks = 0, frames = 0, procedures = 0, names = 0, stops = 0;
  std::size_t cut = 0;   ///< walks of a target that had gone on, whose list was another one by then
  std::size_t late = 0;  ///< threads that the kernel gave no time to stop in a second
  std::size_t wrong = 0, too_short = 0;
};

/// Reads a shadow from the target's memory.
bool read_shadow(const Target& target, Addr at, Shadow& out) {
  std::array<std::byte, sizeof(Shadow)> bytes;
  MemoryWindow window;
  if (target.space().memory.read(at, bytes, window) != bytes.size()) return false;
  std::memcpy(static_cast<void*>(&out), bytes.data(), sizeof out);
  const auto here = [&](Call* there) {
    const Addr offset = reinterpret_cast<std::uintptr_t>(there) - at - offsetof(Shadow, calls);
    return out.calls.data() + offset / sizeof(Call);
  };
  if (reinterpret_cast<std::uintptr_t>(out.top) - at > sizeof(Shadow)) return false;
  out.top = here(out.top);
  out.certain = nullptr;
  return out.top != out.calls.data();
}

/// Procedures with one code may be described by directives or by rows: kinds().
bool is_name_of(std::string_view name, std::span<const std::byte> code) {
  constexpr std::array<std::string_view, 4> k_names{"storm_directives", "storm_rows", "storm_frame_pointer",
                                                    "storm_realigned"};
  for (std::size_t i = 0; i < kinds().size(); ++i) {
    const auto bytes = std::as_bytes(std::span(kinds()[i].bytes));
    if (name == k_names[i % k_names.size()] && std::ranges::equal(bytes, code.first(bytes.size()))) return true;
  }
  return false;
}

class Tracer {
 public:
  Tracer(pid_t process, const Told& told) : process_(process), told_(told) {}

  void run(std::size_t walks) {
    while (figures_.walks < walks && figures_.wrong + figures_.too_short == 0) {
      // A new target has no kept rows and lists; an old one has.
      if (figures_.stops % 500 == 0) target_.reset();
      if (!stop()) return;
      ++figures_.stops;
      std::array<Shadow, k_walkers> shadows;
      std::array<bool, k_walkers> are_known{};
      for (std::size_t i = 0; i < k_walkers; ++i) are_known[i] = read_shadow(*target_, told_.shadows[i], shadows[i]);
      const auto walk_all = [&](bool stands) {
        for (std::size_t i = 0; i < k_walkers; ++i)
          if (are_known[i]) walk(i, shadows[i], stands);
      };
      if (figures_.stops % 4 != 0) {
        walk_all(true);
        walk_all(true);  // by rows that are kept
      }
      target_->let_go();
      walk_all(false);
    }
  }
  const Figures& figures() const { return figures_; }

 private:
  bool stop() {
    if (target_) {
      if (const auto renewed = target_->renew(); !renewed) return fail(renewed.error());
      return true;
    }
    auto target = Target::attach(process_);
    if (!target) return fail(target.error());
    target_.emplace(std::move(*target));
    return true;
  }
  bool fail(const TargetError& error) {
    std::printf("%s\n", error.text().c_str());
    ++figures_.too_short;
    return false;
  }

  void walk(std::size_t walker, const Shadow& shadow, bool stands) {
    const auto thread = std::ranges::find(target_->threads(), told_.threads[walker], &TargetThread::id);
    if (thread == target_->threads().end()) return note(Verdict::too_short, shadow, {}, "no such thread");
    if (!thread->is_stopped) return void(++figures_.late);
    ++figures_.walks;
    std::vector<Walked> found;
    bool are_names_right = true;
    Walk walk = target_->walk(*thread);
    for (const Frame& frame : walk) {
      found.push_back({frame.pc(), frame.sp()});
      if (!is_procedure(frame.pc())) continue;
      ++figures_.procedures;
      if (stands && figures_.walks % 8 == 0) are_names_right = are_names_right && is_named(frame);
    }
    figures_.frames += found.size();
    std::span<const Walked> frames(found);
    // Frames above the first call that the thread knows lead to that call.
    const auto outermost = std::find_if(frames.rbegin(), frames.rend(), [&](const Walked& frame) {
      return frame.pc == reinterpret_cast<std::uintptr_t>(shadow.calls[0].pc) &&
             frame.sp == reinterpret_cast<std::uintptr_t>(shadow.calls[0].sp);
    });
    const bool reaches = outermost != frames.rend();
    if (reaches) frames = frames.first(static_cast<std::size_t>(frames.rend() - outermost));
    const bool may_be_cut = !stands && walk.stop_reason() == StopReason::broken &&
                            std::string_view(walk.stop_error().what).find("has changed since") != std::string::npos;
    if (!reaches && may_be_cut) {
      ++figures_.cut;
      if (!is_right_so_far(shadow, frames)) note(Verdict::wrong, shadow, found, walk.why());
      return;
    }
    const Verdict verdict = judge(shadow, frames, found.front().pc, is_procedure);
    if (verdict != Verdict::right) note(verdict, shadow, found, walk.why());
    if (!are_names_right) note(Verdict::wrong, shadow, found, "a procedure has the name of another");
  }

  bool is_named(const Frame& frame) {
    ++figures_.names;
    std::array<std::byte, k_slot_size> code;
    MemoryWindow window;
    return target_->space().memory.read(frame.pc() / k_slot_size * k_slot_size, code, window) == code.size() &&
           is_name_of(frame.name(), code);
  }

  /// Beginning with the first frame that the thread knows of, each frame must be the next call.
  static bool is_right_so_far(const Shadow& shadow, std::span<const Walked> frames) {
    const auto calls = shadow.all();
    const auto is = [](const Walked& frame, const Call& call) {
      return frame.pc == reinterpret_cast<std::uintptr_t>(call.pc) &&
             frame.sp == reinterpret_cast<std::uintptr_t>(call.sp);
    };
    for (std::size_t first = 0; first < frames.size(); ++first) {
      const auto call = std::find_if(calls.rbegin(), calls.rend(), [&](const Call& c) { return is(frames[first], c); });
      if (call == calls.rend()) continue;
      std::size_t left = static_cast<std::size_t>(calls.rend() - call);
      for (std::size_t i = first; i < frames.size(); ++i, --left)
        if (left == 0 || !is(frames[i], calls[left - 1])) return false;
      return true;
    }
    return std::none_of(frames.begin() + (frames.empty() ? 0 : 1), frames.end(),
                        [](const Walked& frame) { return is_procedure(frame.pc); });
  }

  void note(Verdict verdict, const Shadow& shadow, std::span<const Walked> found, const std::string& why) {
    ++(verdict == Verdict::wrong ? figures_.wrong : figures_.too_short);
    if (figures_.wrong + figures_.too_short > 1) return;
    std::printf("%s: %s\nfound:\n", verdict == Verdict::wrong ? "wrong" : "too short", why.c_str());
    for (const Walked& frame : found)
      std::printf("  %#lx sp %#lx%s\n", frame.pc, frame.sp, is_procedure(frame.pc) ? " (made at run time)" : "");
    std::printf("calls, the last first:\n");
    const auto calls = shadow.all();
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) std::printf("  %p sp %p\n", call->pc, call->sp);
  }

  pid_t process_;
  const Told& told_;
  std::optional<Target> target_;
  Figures figures_;
};

int prove(std::size_t walks) {
  Arena arena;
  arena_of_target = &arena;
  (void)kinds();
  void* const shared = ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  Told& told = *new (shared) Told;
  const pid_t target = ::fork();
  if (target == 0) be_the_target(arena, told);
  while (told.ready.load() != k_walkers) ::usleep(1000);
  const auto begin = std::chrono::steady_clock::now();
  Tracer tracer(target, told);
  tracer.run(walks);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  ::kill(target, SIGKILL);
  ::waitpid(target, nullptr, 0);
  const Figures& f = tracer.figures();
  std::printf(
      "%zu walks in %.1f s at %zu stops, %zu frames, %zu of procedures, %zu names compared; the target has "
      "replaced %zu procedures; %zu walks of lists that had changed since; %zu threads late; %zu wrong, %zu too "
      "short\n",
      f.walks, seconds.count(), f.stops, f.frames, f.procedures, f.names, told.replaced.load(), f.cut, f.late, f.wrong,
      f.too_short);
  const bool shows_something =
      f.procedures >= f.walks && f.names > 0 && told.replaced > f.stops && f.cut < f.walks / 2 && f.late < f.walks / 10;
  return f.wrong + f.too_short == 0 && f.walks >= walks && shows_something ? 0 : 1;
}

}  // namespace
}  // namespace jitunwind::storm

int main(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--walks") != 0) {
    std::fprintf(stderr, "usage: remote_storm --walks N\n");
    return 2;
  }
  return jitunwind::storm::prove(std::strtoul(argv[2], nullptr, 10));
}
