// Programs that are seen by a tool at the end of the known stack: from outside while they wait, work or call, by their
// core file, or by what a library prints that is asked for the stack. seen_program WAY FRAME PLACE WHAT.
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string_view>

#include "tests/tools/known_stack.h"

#ifdef HAS_ABSL
#include <absl/debugging/stacktrace.h>
#include <absl/debugging/symbolize.h>
#endif
#ifdef HAS_BACKWARD
#define BACKWARD_HAS_DW 1
#include <backward.hpp>
#endif
#ifdef HAS_BOOST
#include <boost/stacktrace.hpp>
#endif
#ifdef HAS_CPPTRACE
#include <cpptrace/cpptrace.hpp>
#endif
#ifdef HAS_GLOG
#include <glog/logging.h>
#endif

namespace {

void (*action)();

void wait() {
  std::puts("waits");
  std::fflush(stdout);
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
}

/// Calls no library in most samples.
void work_for(std::clock_t seconds) {
  std::puts("works");
  std::fflush(stdout);
  while (std::clock() < seconds * CLOCKS_PER_SEC)
    for (unsigned i = 0; i < 10'000'000; ++i) asm volatile("");
}

void die() { *static_cast<volatile int*>(nullptr) = 1; }

void allocate() {
  for (int i = 0; i < 1000; ++i) static_cast<volatile char*>(std::malloc(20'000))[0] = 1;
}

void read_past_the_end() {
  auto* const bytes = static_cast<volatile char*>(std::calloc(16, 1));
  std::size_t end = 16;
  asm volatile("" : "+r"(end));  // the compiler knows nothing of it
  [[maybe_unused]] const char byte = bytes[end];
  std::free(const_cast<char*>(bytes));
}

void print_symbols() {
  void* stack[64];
  ::backtrace_symbols_fd(stack, ::backtrace(stack, 64), 1);
}

void print_names() {
  const auto print = [](_Unwind_Context* context, void*) {
    Dl_info info{};
    const bool is_known = ::dladdr(reinterpret_cast<void*>(_Unwind_GetIP(context) - 1), &info) != 0;
    std::printf("name %s\n", is_known && info.dli_sname != nullptr ? info.dli_sname : "");
    return _URC_NO_REASON;
  };
  _Unwind_Backtrace(print, nullptr);
}

struct Action {
  std::string_view name;
  void (*run)();
};
// Those of libraries print the stack as users of the library ask for it.
constexpr Action k_actions[] = {
    {"wait", wait},
    {"work", [] { work_for(1); }},
    {"work_on", [] { work_for(60); }},
    {"call", [] { (void)::getppid(); }},
    {"die", die},
    {"allocate", allocate},
    {"read_past_the_end", read_past_the_end},
    {"backtrace_symbols", print_symbols},
    {"dladdr", print_names},
#ifdef HAS_ABSL
    {"absl",
     [] {
       absl::InitializeSymbolizer("/proc/self/exe");
       void* stack[64];
       const int depth = absl::GetStackTrace(stack, 64, 0);
       for (int i = 0; i < depth; ++i) {
         char name[256];
         const char* const caller = static_cast<const char*>(stack[i]) - 1;
         std::printf("name %s\n", absl::Symbolize(caller, name, sizeof name) ? name : "");
       }
     }},
#endif
#ifdef HAS_BACKWARD
    {"backward",
     [] {
       backward::StackTrace stack;
       stack.load_here(64);
       backward::Printer printer;
       printer.snippet = false;
       printer.print(stack, stdout);
     }},
#endif
#ifdef HAS_BOOST
    {"boost", [] { std::cout << boost::stacktrace::stacktrace(); }},
#endif
#ifdef HAS_CPPTRACE
    {"cpptrace", [] { cpptrace::generate_trace().print(std::cout, false); }},
#endif
#ifdef HAS_GLOG
    {"glog",
     [] {
       google::InitGoogleLogging("seen_program");
       google::InstallFailureSignalHandler();
       __builtin_trap();
     }},
#endif
};

}  // namespace

extern "C" [[gnu::noinline]] void* look(void* argument) {
  action();
  asm volatile("");  // this frame stays
  return argument;
}

int main(int argc, char** argv) {
  if (argc != 5) return std::fputs("usage: seen_program WAY held|overwritten segments|registered WHAT\n", stderr), 2;
  for (const Action& each : k_actions)
    if (each.name == std::string_view(argv[4])) action = each.run;
  if (action == nullptr) return std::fprintf(stderr, "not built for this: %s\n", argv[4]), 77;
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  return make_known_stack(argv + 1, argv) != nullptr ? 0 : 1;
}
