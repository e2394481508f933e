// A C++ program that checks its own exceptions. It is built for both C++ run-time libraries and linked with the runtime
// in every way. Frames made at run time stand between all throws and handlers.
//
//   cpp_program            prints one line per check; the exit status is the number of failed ones
//   cpp_program --runtime  prints the file that _Unwind_GetCFA is bound to
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "tests/exceptions/runtime/c_jit_frame.h"
#include "tests/resume/magic_frame.h"
#include "tests/support/allowed_calls.h"

namespace {

using jitunwind::test::CJitFrame;

int failures = 0;
void check(bool good, const char* what) {
  std::printf("%s %s\n", good ? "ok  " : "FAIL", what);
  std::fflush(stdout);
  if (!good) ++failures;
}

std::atomic<int> alive{0}, destroyed{0};
struct Counted {
  Counted() { ++alive; }
  Counted(const Counted&) = delete;
  ~Counted() { --alive, ++destroyed; }
};

struct Odd : std::runtime_error {
  explicit Odd(int n) : std::runtime_error("odd"), number(n) {}
  int number;
};

CJitFrame* frames;  // two of them

/// Frames of every kind between here and `innermost`: made at run time, with destructors, on a realigned stack, with
/// memory of variable size, none of it with a frame pointer that has to be followed.
struct Path {
  int depth;
  void (*innermost)();
};

void* next_frame(void* argument);

[[gnu::noinline]] void* with_destructor(Path* path) {
  const Counted counted;
  return next_frame(path);
}
[[gnu::noinline]] void* realigned(Path* path) {
  alignas(64) volatile char line[64];
  line[0] = 1;
  const Counted counted;
  void* const result = next_frame(path);
  return line[0] == 1 ? result : nullptr;
}
[[gnu::noinline]] void* with_alloca(Path* path) {
  auto* const memory = static_cast<volatile char*>(alloca(static_cast<std::size_t>(100 + path->depth)));
  memory[0] = 1;
  const Counted counted;
  void* const result = next_frame(path);
  return memory[0] == 1 ? result : nullptr;
}
[[gnu::noinline]] void* without_destructor(Path* path) {
  void* const result = next_frame(path);
  asm volatile("" ::: "rbx", "r12", "r13", "r14", "r15");
  return result;
}

void* next_frame(void* argument) {
  auto* path = static_cast<Path*>(argument);
  if (path->depth == 0) {
    path->innermost();
    return path;
  }
  switch (path->depth-- % 5) {
    case 0:
      return frames[0](next_frame, path);
    case 1:
      return with_destructor(path);
    case 2:
      return realigned(path);
    case 3:
      return with_alloca(path);
    default:
      return frames[1]([](void* p) { return without_destructor(static_cast<Path*>(p)); }, path);
  }
}

constexpr int k_depth = 20;
constexpr int k_counted = 12;  // of the frames above have a destructor

void go(void (*innermost)()) {
  Path path{k_depth, innermost};
  (void)next_frame(&path);
}

void throw_int() { throw 42; }
void throw_odd() { throw Odd(7); }
void throw_string() { throw std::string("a text that is too long for the small buffer"); }

/// Runs `body` in a frame whose preserved registers are known, and checks them and the destructors afterwards.
void checked(const char* what, void (*body)(), int expected_destroyed) {
  destroyed = 0;
  Arrival arrival{};
  magic_frame([](void* f) { reinterpret_cast<void (*)()>(f)(); }, reinterpret_cast<void*>(body), &arrival);
  check(jitunwind::test::preserved_are_magic(arrival), what);
  if (alive != 0 || destroyed != expected_destroyed) {
    std::printf("alive %d destroyed %d, not %d\n", alive.load(), destroyed.load(), expected_destroyed);
    check(false, "destructors");
  }
}

int seen;

void catches() {
  checked(
      "int caught",
      [] {
        try {
          go(throw_int);
        } catch (int n) {
          seen = n;
        }
      },
      k_counted);
  check(seen == 42, "its value");
  checked(
      "class caught as its base",
      [] {
        try {
          go(throw_odd);
        } catch (const std::exception& e) {
          seen = std::strcmp(e.what(), "odd");
        }
      },
      k_counted);
  check(seen == 0, "its text");
  checked(
      "second handler of one try block",
      [] {
        seen = 0;
        try {
          go(throw_string);
        } catch (int) {
          seen = 1;
        } catch (const std::string& s) {
          seen = static_cast<int>(s.size());
        }
      },
      k_counted);
  check(seen == 44, "its length");
  checked(
      "anything caught",
      [] {
        try {
          go(throw_odd);
        } catch (...) {
          seen = 3;
        }
      },
      k_counted);
}

void rethrows() {
  checked(
      "rethrown through the frames again",
      [] {
        try {
          go([] {
            try {
              go(throw_odd);
            } catch (...) {
              throw;
            }
          });
        } catch (const Odd& odd) {
          seen = odd.number;
        }
      },
      2 * k_counted);
  check(seen == 7, "the same object");
  checked(
      "another exception thrown while one is handled",
      [] {
        try {
          try {
            go(throw_int);
          } catch (int) {
            go(throw_odd);
          }
        } catch (const Odd&) {
          seen = 5;
        }
      },
      2 * k_counted);
  checked(
      "exceptions inside a destructor that unwinding runs",
      [] {
        struct Noisy {
          ~Noisy() {
            try {
              go(throw_int);
            } catch (int n) {
              seen += n;
            }
          }
        };
        seen = 0;
        try {
          const Noisy one, two;
          go(throw_odd);
        } catch (const Odd&) {
          ++seen;
        }
      },
      3 * k_counted);
  check(seen == 85, "all of them");
}

void exception_pointers() {
  checked(
      "carried by an exception_ptr",
      [] {
        std::exception_ptr carried;
        try {
          go(throw_odd);
        } catch (...) {
          carried = std::current_exception();
        }
        static std::exception_ptr* rethrown;
        rethrown = &carried;
        try {
          go([] { std::rethrow_exception(*rethrown); });
        } catch (const Odd& odd) {
          seen = odd.number + 1;
        }
      },
      2 * k_counted);
  check(seen == 8, "its value");
}

void many_times() {
  checked(
      "thrown a thousand times",
      [] {
        for (int i = 0; i < 1000; ++i) try {
            go(throw_int);
          } catch (int) {
          }
      },
      1000 * k_counted);
}

/// The exit status of a child process that runs `body`; -1: a signal has ended it.
template <class Body>
int status_in_child(Body body) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void expect_terminate(const char* what, void (*body)()) {
  const int status = status_in_child([=] {
    std::set_terminate([] { ::_exit(42); });
    body();
  });
  check(status == 42, what);
}

/// Each kind has functions of its own, each of these a cleanup. Compilers fold functions that are equal.
template <int k_kind, int k_depth>
[[gnu::noinline]] void throw_below() {
  char room[256];
  asm volatile("" ::"r"(room), "i"(k_kind) : "memory");
  const Counted counted;
  if constexpr (k_depth == 0)
    throw 1;
  else
    throw_below<k_kind, k_depth - 1>();
  asm volatile("" ::"r"(room) : "memory");
}

/// The function has its own frame, so that it is not part of one that aligns its stack: rows with expressions are not
/// kept.
template <int k_kind>
[[gnu::noinline]] void catch_from_below() {
  asm volatile("" ::"i"(k_kind));
  try {
    throw_below<k_kind, 60>();
  } catch (int) {
  }
}

/// The stack is not probed page by page by each throw, and not by each cleanup that ends in _Unwind_Resume().
void system_calls() {
  const int status = status_in_child([] {
    for (int i = 0; i < 100; ++i) {
#ifndef WITH_A_SANITIZER  // which makes some of its own
      if (i == 2 && !jitunwind::test::allow_only({SYS_exit_group})) ::_exit(8);
#endif
      catch_from_below<0>();
    }
    ::_exit(0);
  });
  check(status == 0, "no system calls");
}

volatile int stacks_asked_for = 0;

/// The answer of a thread without a signal stack. Any other call ends the process.
[[maybe_unused]] void answer_call(int, siginfo_t* info, void* context) {
  if (info->si_syscall != SYS_sigaltstack) ::_exit(7);
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  *reinterpret_cast<stack_t*>(registers[REG_RSI]) = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  registers[REG_RAX] = 0;
  stacks_asked_for = stacks_asked_for + 1;
}

/// Cleanups of new code end in _Unwind_Resume(), each of which begins a walk: they do not ask the kernel anew. Neither
/// does the next throw from the same place.
void system_calls_of_new_code() {
  const int status = status_in_child([] {
    catch_from_below<0>();
#ifndef WITH_A_SANITIZER
    struct sigaction action {};
    action.sa_sigaction = &answer_call;
    action.sa_flags = SA_SIGINFO;
    constexpr unsigned k_allowed[] = {SYS_exit_group, SYS_rt_sigreturn};
    auto program = jitunwind::test::answers(k_allowed, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP);
    if (::sigaction(SIGSYS, &action, nullptr) != 0 || !jitunwind::test::install(program)) ::_exit(8);
#endif
    catch_from_below<1>();
    const int asked = stacks_asked_for;
    catch_from_below<2>();
    ::_exit(asked <= 1 && stacks_asked_for == asked ? 0 : 9);
  });
  check(status == 0, "one system call through new code");
}

void terminations() {
  expect_terminate("nobody catches", [] { go(throw_odd); });
  expect_terminate("noexcept", [] {
    const auto closed = []() noexcept { go(throw_odd); };
    try {
      closed();
    } catch (...) {
      ::_exit(2);
    }
  });
  expect_terminate("an exception leaves a destructor during unwinding", [] {
    struct Throws {
      ~Throws() noexcept(false) { throw 1; }
    };
    try {
      const Throws throws;
      go(throw_odd);
    } catch (...) {
      ::_exit(2);
    }
  });
}

/// A foreign exception is caught by catch (...) and deleted there.
_Unwind_Exception foreign;
std::atomic<int> foreign_deleted{0};
void foreign_exception() {
  checked(
      "foreign exception caught",
      [] {
        std::memset(&foreign, 0, sizeof foreign);
        std::memcpy(&foreign.exception_class, "JITUTEST", 8);
        foreign.exception_cleanup = [](_Unwind_Reason_Code code, _Unwind_Exception*) {
          foreign_deleted += code == _URC_FOREIGN_EXCEPTION_CAUGHT;
        };
        try {
          go([] { _Unwind_RaiseException(&foreign); });
        } catch (...) {
          seen = 11;
        }
      },
      k_counted);
  check(seen == 11 && foreign_deleted == 1, "and deleted");
}

/// libgcc raises the exception. Its cleanups end in the _Unwind_Resume that this program is linked with.
void raised_by_libgcc() {
  static _Unwind_Reason_Code (*raise)(_Unwind_Exception*);
  void* const libgcc = ::dlopen("libgcc_s.so.1", RTLD_LAZY);
  raise = reinterpret_cast<decltype(raise)>(::dlsym(libgcc, "_Unwind_RaiseException"));
  foreign_deleted = 0;
  checked(
      "exception that libgcc_s raised",
      [] {
        try {
          go([] { raise(&foreign); });
        } catch (...) {
          seen = 15;
        }
      },
      k_counted);
  check(seen == 15 && foreign_deleted == 1, "and deleted");
}

jmp_buf outside;
void jump() {
  // A jump past frames with destructors is undefined behaviour, but common in C code: no destructor runs.
  Path path{1, nullptr};
  path.innermost = [] { longjmp(outside, 1); };
  path.depth = 0;
  frames[0]([](void* p) { return frames[1](next_frame, p); }, &path);
}
void jumps() {
  checked(
      "longjmp past frames made at run time",
      [] {
        if (setjmp(outside) == 0) jump();
        try {
          go(throw_int);
        } catch (int) {
          seen = 12;
        }
      },
      k_counted);
}

void* exits(void*) {
  const Counted counted;
  go([] { pthread_exit(reinterpret_cast<void*>(5)); });
  return nullptr;
}
std::atomic<bool> waiting{false};
void wait_for_cancellation() {
  waiting = true;
  for (;;) ::pause();
}
void* is_cancelled(void*) {
  const Counted counted;
#ifdef _LIBCPP_VERSION
  // libc++abi rethrows foreign exceptions by raising them anew, which ends the program: __cxa_rethrow.
  seen = 14;
  go(wait_for_cancellation);
#else
  try {
    go(wait_for_cancellation);
  } catch (...) {
    seen = 14;
    throw;
  }
#endif
  return nullptr;
}
void threads() {
  checked(
      "pthread_exit",
      [] {
        pthread_t thread;
        void* result = nullptr;
        ::pthread_create(&thread, nullptr, exits, nullptr);
        ::pthread_join(thread, &result);
        seen = static_cast<int>(reinterpret_cast<std::intptr_t>(result));
      },
      k_counted + 1);
  check(seen == 5, "its result");
  checked(
      "pthread_cancel through a catch-all that rethrows",
      [] {
        pthread_t thread;
        void* result = nullptr;
        ::pthread_create(&thread, nullptr, is_cancelled, nullptr);
        while (!waiting) ::usleep(100);
        ::pthread_cancel(thread);
        ::pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED) seen = 0;
      },
      k_counted + 1);
  check(seen == 14, "was seen by it");
}

constexpr std::uintptr_t k_gp = 0x1234'5678;
struct Asked {
  const CJitFrame* frame;
  int times, right;
};
_Unwind_Reason_Code ask(_Unwind_Context* context, void* asked_by) {
  auto& asked = *static_cast<Asked*>(asked_by);
  if (_Unwind_GetIP(context) != asked.frame->return_address()) return _URC_NO_REASON;
  ++asked.times;
  asked.right += _Unwind_GetRegionStart(context) == asked.frame->start() && _Unwind_GetDataRelBase(context) == k_gp &&
                 _Unwind_GetTextRelBase(context) == 0 && _Unwind_GetLanguageSpecificData(context) == nullptr;
  return _URC_NO_REASON;
}
/// The data-relative base is the registered global pointer, even if the frame's row is already kept.
void facts() {
  const CJitFrame frame(k_gp);
  Asked asked{&frame, 0, 0};
  for (int i = 0; i < 4; ++i) frame([](void* by) -> void* { return _Unwind_Backtrace(ask, by), by; }, &asked);
  check(asked.times == 4 && asked.right == 4, "what a frame made at run time answers");
  const auto enclosing = [](unw_word_t pc) { return _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(pc)); };
  const auto start = reinterpret_cast<void*>(frame.start());
  check(enclosing(frame.start() + 1) == start && enclosing(frame.return_address()) == start, "the function around it");
  check(enclosing(frame.start()) == nullptr, "which does not begin behind its first call");
}

std::atomic<bool> stop_churning{false};
void* throws_often(void*) {
  std::intptr_t caught = 0;
  for (int i = 0; i < 500; ++i) try {
      go(throw_int);
    } catch (int) {
      ++caught;
    }
  return reinterpret_cast<void*>(caught);
}
void* churns(void*) {
  while (!stop_churning) {
    const CJitFrame frame;
    frame(
        [](void* p) -> void* {
          try {
            throw 1;
          } catch (int) {
          }
          return p;
        },
        nullptr);
  }
  return nullptr;
}
void contention() {
  checked(
      "two threads throw while another registers and cancels",
      [] {
        pthread_t throwing[2], churning;
        ::pthread_create(&churning, nullptr, churns, nullptr);
        for (auto& thread : throwing) ::pthread_create(&thread, nullptr, throws_often, nullptr);
        std::intptr_t caught = 0;
        for (const auto& thread : throwing) {
          void* result = nullptr;
          ::pthread_join(thread, &result);
          caught += reinterpret_cast<std::intptr_t>(result);
        }
        stop_churning = true;
        ::pthread_join(churning, nullptr);
        seen = static_cast<int>(caught);
      },
      1000 * k_counted);
  check(seen == 1000, "all caught");
}

}  // namespace

int main(int, char** argv) {
  if (argv[1] && std::strcmp(argv[1], "--runtime") == 0) {
    Dl_info info;
    void* const bound = ::dlsym(RTLD_DEFAULT, "_Unwind_GetCFA");
    return std::puts(bound && ::dladdr(bound, &info) ? info.dli_fname : "none"), 0;
  }
  CJitFrame two[2];
  frames = two;
  catches();
  rethrows();
  exception_pointers();
  many_times();
  system_calls();
  system_calls_of_new_code();
  terminations();
  foreign_exception();
  raised_by_libgcc();
  jumps();
  threads();
  facts();
  contention();
  std::printf("%d failed\n", failures);
  return failures;
}
