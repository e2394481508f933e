// One stack: C++, code made at run time without a frame pointer, C++, code made at run time that uses rbp for something
// else, C++. It is walked by this library, by glibc's backtrace() and by libunwind, side by side; then from signal
// handlers that interrupt such code.
#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>
#include <jitunwind/jitunwind.h>

#include <signal.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "examples/asmjit_names.h"
#include "examples/other_unwinders.h"

namespace {

using namespace asmjit;
using jitunwind::Frame;
using jitunwind::Walk;

struct Listed {
  jitunwind::AddrRange code;  // of the procedure
  std::string name;
  std::string row_from;
  bool jit;
};

struct Listing {
  std::vector<Listed> frames;
  std::string why;
};

std::string shown_name(const Frame& frame) {
  if (frame.is_signal_frame()) return "<signal frame>";
  std::string name = frame.name();
  if (constexpr std::string_view local = "(anonymous namespace)::"; name.starts_with(local))
    name.erase(0, local.size());
  if (name.size() > 34) name = name.substr(0, 31) + "...";
  return name.empty() ? "?" : name;
}

Listing list(Walk walk) {
  Listing listing;
  for (const Frame& frame : walk) {
    const auto procedure = frame.procedure();
    const auto origin = frame.origin();
    const bool jit = jitunwind::is_registered(origin);
    listing.frames.push_back({procedure ? procedure->range : jitunwind::AddrRange{frame.pc(), frame.pc() + 1},
                              shown_name(frame),
                              std::string(jitunwind::origin_name(origin)) + (frame.is_guess() ? " (guess)" : ""), jit});
  }
  listing.why = walk.why();
  return listing;
}

bool sees(const examples::OtherWalk& other, const Listed& frame) {
  return std::ranges::any_of(other.pcs, [&](jitunwind::Addr pc) { return frame.code.contains(pc - 1); });
}

void print(const Listing& ours, const std::vector<examples::OtherWalk>& others) {
  std::printf("     %-4s %-34s %-15s", "", "jitunwind", "row from");
  for (const auto& other : others) std::printf("  %-13s", other.name.c_str());
  std::printf("\n");
  for (std::size_t i = 0; i < ours.frames.size(); ++i) {
    const Listed& frame = ours.frames[i];
    std::printf("  %2zu %-4s %-34s %-15s", i, frame.jit ? "JIT" : "", frame.name.c_str(), frame.row_from.c_str());
    for (const auto& other : others) std::printf("  %-13s", !other.present ? "" : sees(other, frame) ? "yes" : "-");
    std::printf("\n");
  }
  std::printf("\n     jitunwind: %zu frames, %s\n", ours.frames.size(), ours.why.c_str());
  for (const auto& other : others) std::printf("     %s: %s\n", other.name.c_str(), other.said.c_str());
}

// The functions below the code made at run time.

using Callback = int (*)(int);
Callback g_rbp_as_counter = nullptr;
std::vector<examples::OtherWalk> g_others;
Listing g_ours;

int innermost(int value) {
  g_others = examples::walk_with_others();
  g_ours = list(jitunwind::walk_here());
  return value + 1;
}

int between(int value) { return g_rbp_as_counter(value + 1) + 1; }

// The code made at run time.

/// int sum_without_frame_pointer(int v): calls between(v), with two callee-saved registers pushed and no rbp.
Error make_sum(jitunwind::AsmjitRuntime& runtime, Callback* out) {
  CodeHolder code;
  code.init(runtime.environment());
  x86::Compiler compiler(&code);
  FuncNode* const function = examples::add_func(compiler, examples::signature<int, int>());
  x86::Gp value = examples::new_gp32(compiler);
  x86::Gp result = examples::new_gp32(compiler);
  examples::set_arg(*function, 0, value);
  InvokeNode* const call = examples::invoke(compiler, imm(&between), examples::signature<int, int>());
  examples::set_arg(*call, 0, value);
  examples::set_ret(*call, 0, result);
  compiler.add(result, value);  // lives across the call, so in a callee-saved register
  compiler.ret(result);
  examples::end_func(compiler);
  compiler.finalize();
  return runtime.add(out, &code, "sum_without_frame_pointer");
}

/// int rbp_as_counter(int v): counts down in rbp while it calls innermost().
Error make_counter(jitunwind::AsmjitRuntime& runtime, Callback* out) {
  CodeHolder code;
  code.init(runtime.environment());
  jitunwind::AsmjitAssembler a(&code);
  Label again = examples::new_label(a);
  a.push(x86::rbp);
  a.push(x86::rbx);
  a.sub(x86::rsp, 8);
  a.mov(x86::ebx, x86::edi);
  a.mov(x86::ebp, 3);
  a.bind(again);
  a.mov(x86::edi, x86::ebx);
  a.call(imm(&innermost));
  a.dec(x86::ebp);
  a.jnz(again);
  a.add(x86::rsp, 8);
  a.pop(x86::rbx);
  a.pop(x86::rbp);
  a.ret();
  return runtime.add(out, &code, "rbp_as_counter");
}

/// int load(const int* p, volatile int* stop): spins until *stop, then loads *p. It has neither a frame pointer nor
/// pushes.
using Load = int (*)(const int*, const volatile int*);
Error make_load(jitunwind::AsmjitRuntime& runtime, Load* out) {
  CodeHolder code;
  code.init(runtime.environment());
  jitunwind::AsmjitAssembler a(&code);
  Label spin = examples::new_label(a);
  a.push(x86::r15);
  a.mov(x86::r15, x86::rdi);
  a.bind(spin);
  a.cmp(x86::dword_ptr(x86::rsi), 0);
  a.je(spin);
  a.mov(x86::eax, x86::dword_ptr(x86::r15));
  a.pop(x86::r15);
  a.ret();
  return runtime.add(out, &code, "spin_then_load");
}

// Signal handlers. A real one would only store addresses; this one may allocate because the code it interrupts never
// does.

volatile int g_stop = 0;
Listing g_profiled, g_faulted;
const int g_good = 42;

void on_profile(int, siginfo_t*, void* context) {
  g_profiled = list(jitunwind::walk_interrupted(context));
  g_stop = 1;
}

void on_fault(int, siginfo_t*, void* context) {
  g_faulted = list(jitunwind::walk_here());  // over the kernel's signal frame
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_R15] = reinterpret_cast<greg_t>(&g_good);
}

int under_signals(Load load) {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = on_profile;
  sigaction(SIGPROF, &action, nullptr);
  action.sa_sigaction = on_fault;
  sigaction(SIGSEGV, &action, nullptr);
  timer_t timer{};
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGPROF;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return -1;
  const itimerspec soon{{0, 0}, {0, 2'000'000}};
  timer_settime(timer, 0, &soon, nullptr);
  const int loaded = load(reinterpret_cast<const int*>(8), &g_stop);
  timer_delete(timer);
  return loaded;
}

/// The cost of one registration: the same description, many times.
void time_registration() {
  using namespace jitunwind;
  const auto description = x86_64::describe("timed")
                               .push({0, 1}, x86_64::rbp)
                               .push({1, 2}, x86_64::rbx)
                               .allocate({2, 6}, 8)
                               .deallocate({-7, -3}, 8)
                               .pop({-3, -2}, x86_64::rbx)
                               .pop({-2, -1}, x86_64::rbp)
                               .build();
  if (!description) return;
  constexpr std::size_t count = 100'000, size = 64;
  static std::array<std::byte, count * size> arena;
  std::vector<Registration> live;
  live.reserve(count);
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < count; ++i) live.push_back(*register_code(*description, &arena[i * size], size));
  const auto end = std::chrono::steady_clock::now();
  live.clear();
  const auto cancelled = std::chrono::steady_clock::now();
  const auto each = [&](auto from, auto to) {
    return std::chrono::duration<double, std::nano>(to - from).count() / count;
  };
  std::printf("Registering %zu procedures of one shape: %.0f ns each; cancelling them: %.0f ns each.\n", count,
              each(begin, end), each(end, cancelled));
}

bool complete(const Listing& listing) { return listing.why == "complete"; }

}  // namespace

int main() {
  jitunwind::AsmjitRuntime runtime;
  Callback sum = nullptr;
  Load load = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  if (make_sum(runtime, &sum) != kErrorOk || make_counter(runtime, &g_rbp_as_counter) != kErrorOk ||
      make_load(runtime, &load) != kErrorOk) {
    std::fprintf(stderr, "asmjit refused the code\n");
    return 1;
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;

  std::printf("1. C++ calls JIT code calls C++ calls JIT code calls C++; no frame pointers in the JIT code\n\n");
  sum(1);
  print(g_ours, g_others);

  const int loaded = under_signals(load);
  std::printf("\n2. SIGPROF while JIT code spins, seen by a profiler's signal handler\n\n");
  print(g_profiled, {});
  std::printf("\n3. SIGSEGV in JIT code, seen from inside the handler, over the kernel's signal frame\n\n");
  print(g_faulted, {});

  std::printf("\nEmitting, describing and registering 3 JIT functions took %.0f us in all.\n", took.count());
  time_registration();
  runtime.release(sum);
  runtime.release(g_rbp_as_counter);
  runtime.release(load);
  return loaded == g_good && complete(g_ours) && complete(g_profiled) && complete(g_faulted) ? 0 : 1;
}
