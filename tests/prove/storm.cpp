// A storm of threads, signals, throws, forks, code that comes and goes, libraries in its place, cancelled threads,
// names and failing memory: each walk is judged by the thread's own record of its calls.
//   storm [--seconds N] [--seed N]
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/prove/storm_code.h"
#include "tests/prove/storm_descents.h"
#include "tests/prove/storm_libgcc.h"
#include "tests/prove/storm_library.h"
#include "tests/prove/storm_threads.h"
#include "tests/support/failing_memory.h"

namespace jitunwind::storm {
namespace {

using test::failed_requests;
using test::k_is_sanitized;

constexpr unsigned k_patience = 60;  // seconds in which a thread must have begun something else
constexpr unsigned k_report_every = 10;
#ifdef __SANITIZE_THREAD__  // it runs handlers later, where it has a function of its own
constexpr bool k_signals_are_at_once = false;
#else
constexpr bool k_signals_are_at_once = true;
#endif

struct Role {
  const char* name;
  void (*body)(Thread&);
  bool has_a_handler_stack;
};
constexpr std::array k_roles{Role{"worker 1", &descend_again_and_again, false},
                             Role{"worker 2", &descend_again_and_again, true},
                             Role{"replacer 1", &replace_procedures, false},
                             Role{"replacer 2", &replace_procedures, true},
                             Role{"loader", &load_and_unload, false},
                             Role{"squatter", &squat, true},
                             Role{"namer", &ask_names, false}};

/// The thread is cancelled, or ends itself, again and again.
void* be_cancelled(void* thread) {
  Thread& self = *static_cast<Thread*>(thread);
  run(self, &descend_to_be_cancelled, self.random() % 2 == 0);
  return nullptr;
}

void cancel_one(Thread& cancelled, Thread& self) {
  pthread_t thread;
  cancelled.begin("being cancelled");
  if (::pthread_create(&thread, nullptr, &be_cancelled, &cancelled) != 0) std::abort();
  const timespec time{0, static_cast<long>(self.random() % 1'000'000)};
  ::nanosleep(&time, nullptr);
  ::pthread_cancel(thread);
  void* result = nullptr;
  ::pthread_join(thread, &result);
  if (result != PTHREAD_CANCELED) count_wrong("a cancelled thread ended otherwise");
  ++counters().cancelled;
}

void* end_at_once(void* /*nothing*/) { ::pthread_exit(nullptr); }

/// The C library loads libgcc_s for the first thread that is cancelled or ends itself, and ends the program if memory
/// fails meanwhile, as it does in descents.
void let_libgcc_be_loaded() {
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, &end_at_once, nullptr) != 0) std::abort();
  ::pthread_join(thread, nullptr);
}

void cancel_again_and_again(Thread& cancelled, Thread& self) {
  while (!self.world->is_over) {
    self.begin("cancelling a thread");
    cancel_one(cancelled, self);
  }
}

void print_figures(unsigned seconds) {
  const Counters& c = counters();
  std::printf(
      "%4u s: %zu walks of %zu frames, %zu throws, %zu caught, %zu forks, %zu vforks, %zu threads cancelled; "
      "%zu registered, %zu replaced, refused for memory %zu of %zu failures; %zu loads, %zu where code was, %zu "
      "times code where a library was, %zu while it was unloaded; %zu names of %zu; wrong %zu, short %zu, "
      "crashes %zu; where libgcc_s lands %zu\n",
      seconds, c.walks.load(), c.frames.load(), c.throws.load(), c.caught.load(), c.forks.load(), c.vforks.load(),
      c.cancelled.load(), c.registered.load(), c.replaced.load(), c.refused.load(), failed_requests(), c.loads.load(),
      c.loads_where_code_was.load(), c.code_where_library_was.load(), c.while_unloading.load(), c.named.load(),
      c.asked.load(), c.wrong.load(), c.too_short.load(), c.crashes.load(), c.where_libgcc_lands.load());
  std::fflush(stdout);
}

/// Ends the process if a thread makes no progress.
class Watch {
 public:
  explicit Watch(const std::vector<std::unique_ptr<Thread>>& threads) : threads_(threads), seen_(threads.size()) {}

  void look() {
    bool is_stuck = false;
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      const unsigned beats = threads_[i]->beats;
      seen_[i].seconds = beats != seen_[i].beats ? 0 : seen_[i].seconds + 1;
      seen_[i].beats = beats;
      is_stuck = is_stuck || seen_[i].seconds > k_patience;
    }
    if (!is_stuck) return;
    for (const auto& thread : threads_) print_stuck(*thread);
    ::_exit(3);
  }

 private:
  struct Seen {
    unsigned beats = 0, seconds = 0;
  };
  const std::vector<std::unique_ptr<Thread>>& threads_;
  std::vector<Seen> seen_;
};

/// Checks that nothing is wrong, and that everything to be tested has happened.
int verdict() {
  const Counters& c = counters();
  bool is_good = c.wrong == 0 && c.too_short == 0 && c.crashes == 0;
  if (c.throws != c.caught) std::printf("%zu throws, %zu caught\n", c.throws.load(), c.caught.load()), is_good = false;
  struct Happened {
    std::size_t count;
    const char* what;
  };
  const Happened always[] = {{c.walks, "walks"},
                             {c.throws, "throws"},
                             {c.forks, "forks"},
                             {c.cancelled, "cancelled threads"},
                             {c.replaced, "replaced procedures"},
                             {c.named, "names"},
                             {c.loads_where_code_was, "libraries where code was"},
                             {c.code_where_library_was, "code where a library was"}};
  const Happened without_sanitizer[] = {
      {failed_requests(), "failed requests"}, {c.refused, "refusals"}, {c.vforks, "vforks"}};
  const auto expect = [&is_good](const Happened& of) {
    if (of.count == 0) std::printf("nothing was tested: no %s\n", of.what), is_good = false;
  };
  std::ranges::for_each(always, expect);
  if (!k_is_sanitized) std::ranges::for_each(without_sanitizer, expect);
  print_first_bad_walk();
  return is_good ? 0 : 1;
}

int storm(unsigned seconds, unsigned seed) {
  std::mt19937 random(seed);
  Arena arena;
  Library library;
  World world{arena, library};
  (void)kinds();
  install_handlers(seed, arena);
  arena.fill_all(random);
  std::vector<std::unique_ptr<Thread>> threads;
  const auto add = [&](const char* name) -> Thread& {
    Thread& thread = *threads.emplace_back(std::make_unique<Thread>());
    thread.world = &world;
    thread.random.seed(static_cast<unsigned>(random()));
    thread.name = name;
    return thread;
  };
  std::vector<std::thread> running;
  Thread& canceller = add("canceller");
  Thread& cancelled = add("cancelled");
  let_libgcc_be_loaded();
  if (k_signals_are_at_once) find_where_libgcc_lands();
  running.emplace_back([&] { cancel_again_and_again(cancelled, canceller); });
  for (const Role& role : k_roles) {
    Thread& thread = add(role.name);
    running.emplace_back([&thread, &role] { run(thread, role.body, role.has_a_handler_stack); });
  }
  Watch watch(threads);
  for (unsigned second = 1; second <= seconds; ++second) {
    ::sleep(1);
    watch.look();
    if (second % k_report_every == 0 && second != seconds) print_figures(second);
  }
  world.is_over = true;
  std::thread watching([&] {
    for (;;) {
      ::sleep(1);
      watch.look();
    }
  });
  watching.detach();
  for (std::thread& thread : running) thread.join();
  print_figures(seconds);
  const int status = verdict();
  std::fflush(stdout);
  ::_exit(status);  // the watch may be looking still
}

}  // namespace
}  // namespace jitunwind::storm

int main(int argc, char** argv) {
  unsigned seconds = 60, seed = std::random_device()();
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    if (std::strcmp(argv[i], "--seed") == 0) seed = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
  }
  std::printf("storm --seconds %u --seed %u\n", seconds, seed);
  std::fflush(stdout);
  return jitunwind::storm::storm(seconds, seed);
}
