// The program that debuggers are tried on: main -> C++ -> JIT -> C++ -> JIT -> C++. The last function stops, and all
// preserved registers have values that the test knows. program SHAPE WHAT: see main().
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "jitunwind/adapters/gdb_jit/gdb_jit.h"
#include "tests/debuggers/jit_code.h"

using namespace jitunwind;
using debuggers_test::JitCode;

extern "C" {
void jitunwind_marked_call(void (*target)());

// The test sets breakpoints on these functions.
[[gnu::noinline]] void prepared() { asm volatile(""); }
bool crashes = false;
[[gnu::noinline]] void stop_here() {
  asm volatile("");
  if (crashes) __builtin_trap();
}
[[gnu::noinline]] void all_cancelled() { asm volatile(""); }

void (*inner)() = nullptr;
[[gnu::noinline]] void middle() {
  inner();
  asm volatile("");  // no tail call
}
}

namespace {

std::string other(const std::string& shape) {
  const std::size_t by = shape.find('_') + 1;
  if (shape == "frame_pointer" || shape == "rows" || shape == "alias") return "registers";
  if (shape == "registers") return "frame_pointer";
  return shape.substr(0, by) + (shape.substr(by) == "registers" ? "frame_pointer" : "registers");
}

/// Each code has its own page, which its replacement uses again.
void run(const std::string& shape, const std::string& what) {
  JitCode outer(shape, "jit_outer", middle);
  JitCode called(shape, "jit_inner", stop_here);
  inner = called.entry();
  std::printf("inner %#lx\n%s", called.start(), called.rows().c_str());
  std::fflush(stdout);
  if (what == "late") (void)std::getchar();
  prepared();
  jitunwind_marked_call(outer.entry());
  // The code at this address has another frame now.
  called.replace(other(shape), "jit_reused", stop_here);
  inner = called.entry();
  jitunwind_marked_call(outer.entry());
  if (what == "names") {
    called.replace(shape, "odd \xff\x01 \"name\" %s @@x {(<", stop_here);
    jitunwind_marked_call(outer.entry());
    called.replace(shape, "", stop_here);
    jitunwind_marked_call(outer.entry());
    called.replace(shape, "two\nlines 'q' \"d\" \\ \x7f\x1b[1m" + std::string(100'000, 'x'), stop_here);
    jitunwind_marked_call(outer.entry());
  }
}

void run_in_child(const std::string& shape) {
  JitCode outer(shape, "jit_parent", middle);
  const pid_t child = ::fork();
  if (child != 0) {
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) std::exit(1);
    inner = stop_here;
    jitunwind_marked_call(outer.entry());
    return;
  }
  JitCode called(shape, "jit_child", stop_here);
  inner = called.entry();
  jitunwind_marked_call(outer.entry());
  called.cancel();
  std::_Exit(0);
}

/// The library that registers the inner function has a copy of ours.
void run_copies(const std::string& shape) {
  void* const plugin = ::dlopen(DEBUGGED_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  using Make = void (*(*)(const char*, const char*, void (*)()))();
  const auto make = reinterpret_cast<Make>(plugin == nullptr ? nullptr : ::dlsym(plugin, "plugin_code"));
  if (make == nullptr) std::exit(1);
  JitCode outer(shape, "jit_outer", middle);
  inner = make(shape.c_str(), "jit_plugin", stop_here);
  jitunwind_marked_call(outer.entry());
}

/// The inner function is interrupted, at an instruction that is no call.
void run_signal(const std::string& shape) {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    stop_here();
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;
  };
  ::sigaction(SIGILL, &action, nullptr);
  JitCode outer(shape, "jit_outer", middle);
  JitCode trap("trap", "jit_trap", nullptr);
  inner = trap.entry();
  jitunwind_marked_call(outer.entry());
}

/// There are so many procedures that files are merged and written anew.
void run_many(const std::string& shape, unsigned count) {
  std::vector<std::unique_ptr<JitCode>> all;
  for (unsigned i = 0; i < count; ++i)
    all.push_back(std::make_unique<JitCode>(shape, "jit_many_" + std::to_string(i), stop_here));
  for (unsigned i = 0; i < count; i += 3) all[i].reset();
  JitCode outer(shape, "jit_outer", middle);
  if (!flush_gdb()) std::exit(1);
  for (unsigned i = 1; i < count; i += count / 4) {
    if (all[i] == nullptr) continue;
    inner = all[i]->entry();
    jitunwind_marked_call(outer.entry());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string shape = argv[1], what = argv[2];
  crashes = what == "crash";
  if (what == "run" || what == "names" || what == "late" || crashes) run(shape, what);
  if (what == "fork") run_in_child(shape);
  if (what == "copies") run_copies(shape);
  if (what == "signal") run_signal(shape);
  if (what == "many") run_many(shape, 1000);
  all_cancelled();
  std::puts("done");
}
