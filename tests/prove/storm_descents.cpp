#include "tests/prove/storm_descents.h"

#include <libunwind.h>

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "tests/prove/storm_frames.h"
#include "tests/prove/storm_library.h"
#include "tests/prove/storm_threads.h"
#include "tests/support/failing_memory.h"

namespace jitunwind::storm {
namespace {

using test::FailingMemory;
using test::k_is_sanitized;

constexpr unsigned k_deepest = 18;
constexpr unsigned k_child_seconds = 60;

/// A call that is made, or is to be made.
struct Descent {
  Thread* self;
  unsigned left, level;
};

/// An exception for the call of that level.
struct Thrown {
  unsigned level;
};

// Code made at run time calls the first function, which pushes itself; all other calls call the second, which does not.
[[gnu::noinline]] void* arrive_from_procedure(void* descent);
[[gnu::noinline]] void* arrive(void* descent);

/// A function that calls through as code made at run time does.
[[gnu::noinline]] void* through_alloca(Callee function, void* argument, Shadow* shadow) {
  const Pushed pushed(*shadow);
  volatile char* const room = static_cast<char*>(alloca(16 + reinterpret_cast<std::uintptr_t>(shadow->top) % 512));
  room[0] = 0;
  return function(argument);
}
[[gnu::noinline]] void* through_many_registers(Callee function, void* argument, Shadow* shadow) {
  const Pushed pushed(*shadow);
  std::array<std::uintptr_t, 6> values;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = reinterpret_cast<std::uintptr_t>(shadow) * 3 + i;
  asm volatile("" : "+r"(values[0]), "+r"(values[1]), "+r"(values[2]), "+r"(values[3]), "+r"(values[4]));
  void* const result = function(argument);
  asm volatile("" : "+r"(values[0]), "+r"(values[1]), "+r"(values[2]), "+r"(values[3]), "+r"(values[4]));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != reinterpret_cast<std::uintptr_t>(shadow) * 3 + i)
      count_wrong("a preserved register is another one behind a throw");
  return result;
}

/// Calls the beginning of `next` through some code.
[[gnu::noinline]] void* call(Descent& next) {
  Thread& self = *next.self;
  const Pushed pushed(self.shadow);
  const unsigned which = static_cast<unsigned>(self.random() % 8);
  if (which < 4) {
    Slot& slot = self.world->arena.any(self.random);
    if (const User user(slot.gate()); user) return slot.code()(&arrive_from_procedure, &next, &self.shadow);
  } else if (which == 4) {
    Library& library = self.world->library;
    if (const User user(library.gate()); user)
      return library.call()(library.is_loaded() ? &arrive : &arrive_from_procedure, &next, &self.shadow);
  } else if (which == 5) {
    return through_alloca(&arrive, &next, &self.shadow);
  } else if (which == 6) {
    return through_realigned(&arrive, &next, &self.shadow);
  }
  return through_many_registers(&arrive, &next, &self.shadow);
}

/// Calls as above, and catches.
[[gnu::noinline]] void* call_and_catch(Descent& next) {
  Thread& self = *next.self;
  const Pushed pushed(self.shadow);
  const unsigned level = next.level;
  Call* const top = self.shadow.top;
  self.catchers[self.catcher_count++] = level;
  const unsigned catchers = self.catcher_count;
  void* result = &self;
  try {
    result = call(next);
  } catch (const Thrown& thrown) {
    self.shadow.top = top;
    in_order();
    self.shadow.certain = nullptr;
    if (thrown.level != level) {
      if (catchers == 1) count_wrong("nobody caught");  // nobody is further out
      self.catcher_count = catchers - 1;
      const Leaving leaving(self.shadow);
      throw;
    }
    ++counters().caught;
  }
  if (self.catcher_count != catchers) count_wrong("the catchers do not match");
  self.catcher_count = catchers - 1;
  return result;
}

[[noreturn, gnu::noinline]] void throw_to(Thread& self, unsigned level) {
  const Leaving leaving(self.shadow);
  throw Thrown{level};
}

[[noreturn, gnu::noinline]] void end_here(Thread& self) {
  const Leaving leaving(self.shadow);
  ::pthread_exit(PTHREAD_CANCELED);
}

[[noreturn, gnu::noinline]] void wait_for_cancel(Thread& self) {
  const Leaving leaving(self.shadow);
  for (;;) {
    // ThreadSanitizer believes that a thread which is cancelled within a call of its own stays there.
    if (!k_is_sanitized && self.random() % 2 == 0)
      ::pause();
    else
      ::pthread_testcancel();
  }
}

/// The child has the calling thread alone, and the work of the others is never finished. That includes an allocation in
/// a sanitizer that does not hold its locks across fork(), as libasan of gcc 12: a child that allocates would wait for
/// it.
[[gnu::noinline]] int be_a_child(Thread& self) {
  const Pushed pushed(self.shadow);
  ::alarm(k_child_seconds);
  const std::size_t before = counters().wrong + counters().too_short;
  const auto report = [&] {
    if (counters().wrong + counters().too_short == before) return 0;
    print_first_bad_walk();
    return 4;
  };
  for (int i = 0; i < 4; ++i) judge_own_walk(self);
  if (k_is_sanitized) return report();
  void* const code = map_code(nullptr, k_slot_size);
  if (code == nullptr) return 2;
  Slot slot(code);
  slot.fill(self.random);
  for (int i = 0; i < 8; ++i) slot.empty(self.random), slot.fill(self.random);
  // An exception that is thrown without memory comes from a pool of the C++ library, behind a lock that another thread
  // may have held.
  const FailingMemory none(0);
  const std::size_t caught = counters().caught;
  Call* const top = self.shadow.top;
  for (unsigned i = 0; i < 3; ++i) {
    self.catcher_count = 0;
    Descent descent{&self, 0, 1000 + i};
    try {
      slot.code()(
          [](void* d) -> void* {
            const Descent& given = *static_cast<const Descent*>(d);
            judge_own_walk(*given.self);
            throw_to(*given.self, given.level);
          },
          &descent, &self.shadow);
    } catch (const Thrown& thrown) {
      self.shadow.top = top;
      self.shadow.certain = nullptr;
      counters().caught += thrown.level == 1000 + i;
    }
  }
  slot.empty(self.random);
  return counters().caught == caught + 3 ? report() : 3;
}

[[gnu::noinline]] void fork_here(Thread& self) {
  const Pushed pushed(self.shadow);
  self.begin("fork");
  Call* const top = self.shadow.top;
  const pid_t child = ::fork();
  if (child == 0) {
    self.begin("what a forked child does");
    const int status = be_a_child(self);
    ::_exit(status);
  }
  if (self.shadow.top != top) count_wrong("the shadow stack is another one behind fork()");
  int status = -1;
  self.begin("waiting for a forked child");
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ++counters().forks;
  if (status != 0) ++counters().crashes;
}

[[gnu::noinline]] void vfork_here(Thread& self) {
  self.begin("vfork");
  const pid_t child = ::vfork();
  if (child == 0) {
    judge_own_walk(self);
    ::_exit(0);
  }
  int status = -1;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ++counters().vforks;
  if (status != 0) ++counters().crashes;
}

/// Acts at the bottom of a descent.
[[gnu::noinline]] void* act(Descent& here) {
  Thread& self = *here.self;
  const Pushed pushed(self.shadow);
  if (self.what_to_do == Thread::What::waits_for_cancel) wait_for_cancel(self);
  if (self.what_to_do == Thread::What::exits) end_here(self);
  const unsigned what = static_cast<unsigned>(self.random() % 1024);
  if (what < 2) {
    fork_here(self);
  } else if (what < 6 && !k_is_sanitized) {  // sanitizers have another vfork, which nothing describes
    vfork_here(self);
  } else if (what < 400) {
    ++counters().throws;
    throw_to(self, self.catchers[self.random() % self.catcher_count]);
  } else {
    judge_own_walk(self);
  }
  return &self;
}

[[gnu::always_inline]] inline void* go_on(void* descent) {
  Descent& here = *static_cast<Descent*>(descent);
  if (here.left == 0) return returned(act(here));
  Descent next{here.self, here.left - 1, here.level + 1};
  return returned(here.self->random() % 4 == 0 ? call_and_catch(next) : call(next));
}

[[gnu::noinline]] void* arrive_from_procedure(void* descent) { return go_on(descent); }
[[gnu::noinline]] void* arrive(void* descent) {
  const Pushed pushed(static_cast<const Descent*>(descent)->self->shadow);
  return go_on(descent);
}

[[gnu::noinline]] void descend_once(Thread& self) {
  const Pushed pushed(self.shadow);
  self.begin("descent");
  self.catcher_count = 0;
  Descent descent{&self, static_cast<unsigned>(self.random() % k_deepest), 0};
  const FailingMemory failing(self.random() % 2 == 0 ? 8 : 0);
  (void)call_and_catch(descent);
}

void nap(long ns) {
  const timespec time{0, ns};
  ::nanosleep(&time, nullptr);
}

}  // namespace

void descend_again_and_again(Thread& self) {
  const Pushed pushed(self.shadow);
  while (!self.world->is_over) descend_once(self);
}

void descend_to_be_cancelled(Thread& self) {
  const Pushed pushed(self.shadow);
  self.what_to_do = self.random() % 4 == 0 ? Thread::What::exits : Thread::What::waits_for_cancel;
  descend_once(self);
}

void replace_procedures(Thread& self) {
  const Pushed pushed(self.shadow);
  while (!self.world->is_over) {
    self.begin("replacing a procedure");
    counters().replaced += self.world->arena.replace_one(self.random);
    if (self.random() % 64 == 0) unw_flush_cache(unw_local_addr_space, 0, 0);
  }
}

void load_and_unload(Thread& self) {
  const Pushed pushed(self.shadow);
  while (!self.world->is_over) self.world->library.come_and_go(self);
}

void squat(Thread& self) {
  const Pushed pushed(self.shadow);
  while (!self.world->is_over) {
    self.begin("squatting");
    const Addr page = self.world->library.last_begin() + 4096 * (self.random() % 4);
    void* const code =
        page < 4 * 4096 ? nullptr : map_code(reinterpret_cast<void*>(static_cast<std::uintptr_t>(page)), 4096);
    if (code == nullptr) {
      nap(10'000);
      continue;
    }
    Slot slot(code);
    slot.fill(self.random);
    for (int i = 0; i < 4; ++i) {
      dl_find_object object;
      counters().while_unloading += ::_dl_find_object(code, &object) == 0;
      Descent descent{&self, 0, 0};
      (void)slot.code()(
          [](void* d) -> void* {
            Thread& thread = *static_cast<const Descent*>(d)->self;
            judge_own_walk(thread);
            return d;
          },
          &descent, &self.shadow);
    }
    slot.empty(self.random);
    unmap_code(code, 4096);
  }
}

void ask_names(Thread& self) {
  const Pushed pushed(self.shadow);
  while (!self.world->is_over) {
    self.begin("asking for names");
    const Addr at = any_walked_address(self.random);
    if (at == 0) continue;
    const FailingMemory failing(self.random() % 2 == 0 ? 8 : 0);
    std::array<char, 256> text;
    unw_word_t offset = 0;
    unw_proc_info_t info;
    text.fill('?');
    ++counters().asked;
    if (unw_get_proc_name_by_ip(unw_local_addr_space, at, text.data(), 200, &offset, nullptr) == 0) {
      ++counters().named;
      if (self.world->arena.contains(at) && std::strncmp(text.data(), "storm_", 6) != 0)
        count_wrong("code has the name of other code");
    }
    if (std::memchr(text.data(), '\0', 200) == nullptr || text[200] != '?') count_wrong("a name has no end");
    (void)unw_get_proc_info_by_ip(unw_local_addr_space, at, &info, nullptr);
    (void)unw_get_elf_filename_by_ip(unw_local_addr_space, at, text.data(), 200, &offset, nullptr);
  }
}

}  // namespace jitunwind::storm
