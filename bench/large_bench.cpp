// The cost of size: procedures of 10 to a million instructions are described, registered and thrown through.
// AsmjitRuntime is compared with asmjit's own runtime for such code.
//
//   PROGRAM large MAX-FUNCTIONS [--benchmark_...]
//
//   add_code/RUNTIME/KIND/N      written by an Assembler, added and released; an item is an instruction, a branch over
//                                one, a call site with two arguments on the stack, or an early return
//   add_function/RUNTIME/EMITTER a function of 42 instructions, written, added and released
//   compile_code/RUNTIME/N       a function with a loop of N instructions, compiled by a Compiler, added and released
//   build/jitunwind/N            an item is an instruction that changes SP: described, and built
//   own_description/HOW          a procedure like no other, of ten instructions with two returns: described, registered
//                                and cancelled; HOW is build, marks, or marks_in_c
//   own_look_up/HOW/first|next   a walk of two frames out of a function like no other: the first one and another
//   register_size/jitunwind/N    an item is a procedure of so many instructions that change SP: registered, cancelled
//   throw_by_rows/first|next/N   an item is a row of the procedure at whose end the exception passes
//   throw_everywhere/in_order|at_random/N   an item is a row; the first throws from every 514 bytes of the procedure
#include <benchmark/benchmark.h>
#include <jitunwind/c.h>
#include <jitunwind/jitunwind.h>
#ifdef JITUNWIND_BENCH_ASMJIT
#include <asmjit/x86.h>
#include <jitunwind/asmjit.h>
#endif

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/thread_time.h"
#ifdef JITUNWIND_BENCH_ASMJIT
#include "examples/asmjit_names.h"
#endif
#include "jitunwind/builders/registers_x86_64.h"

namespace {

using Calls = void (*)(void (*)());

constexpr std::array<std::size_t, 6> k_sizes{10, 100, 1000, 10'000, 100'000, 1'000'000};

/// Code that repeats push rax; pop rax and ends with call rdi; ret.
class LongCode {
 public:
  explicit LongCode(std::size_t instructions)
      : size_(instructions / 2 * 2 + 5),
        bytes_(mmap(nullptr, size_, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (bytes_ == MAP_FAILED) std::exit(1);
    auto* const code = static_cast<unsigned char*>(bytes_);
    for (std::size_t i = 0; i + 5 < size_; i += 2) std::memcpy(code + i, "\x50\x58", 2);
    std::memcpy(code + size_ - 5, "\x50\xff\xd7\x58\xc3", 5);
  }
  ~LongCode() { munmap(bytes_, size_); }
  LongCode(const LongCode&) = delete;
  LongCode& operator=(const LongCode&) = delete;

  jitunwind::Description describe() const {
    auto builder = jitunwind::x86_64::describe("long");
    const auto last = static_cast<std::int64_t>(size_) - 5;
    for (std::int64_t at = 0; at < last; at += 2) builder.push({at, at + 1}).pop({at + 1, at + 2});
    return builder.push({last, last + 1}).pop({last + 3, last + 4}).size(size_).build().value();
  }
  jitunwind::Registration registered(const jitunwind::Description& description) const {
    return jitunwind::register_code(description, bytes_, size_).value();
  }
  void call(void (*callee)()) const { reinterpret_cast<Calls>(bytes_)(callee); }

 private:
  std::size_t size_;
  void* bytes_;
};

template <class Action>
double seconds(Action action) {
  const double begin = bench::thread_seconds();
  action();
  return bench::thread_seconds() - begin;
}

void build(benchmark::State& state, std::size_t size) {
  const LongCode code(size);
  for (auto _ : state) benchmark::DoNotOptimize(code.describe());
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(size));
}

void register_size(benchmark::State& state, std::size_t size) {
  const LongCode code(size);
  const jitunwind::Description description = code.describe();
  for (auto _ : state) benchmark::DoNotOptimize(code.registered(description));
  state.SetItemsProcessed(state.iterations());
}

/// Ten instructions with two returns. No two numbers give the same shape.
template <class Recorder>
void say_own(Recorder& frame, std::int64_t number) {
  using namespace jitunwind::x86_64;
  const std::int64_t bytes = 8 * (number % 100'000 + 1), exit = 40 + number / 100'000 % 100;
  frame.push({0, 1}, rbp).push({1, 2}, rbx).allocate({2, 9}, bytes);
  frame.remember().deallocate({exit, exit + 7}, bytes).pop({exit + 7, exit + 8}, rbx).pop({exit + 8, exit + 9}, rbp);
  frame.restore({exit + 9, exit + 10}).deallocate({-10, -3}, bytes).pop({-3, -2}, rbx).pop({-2, -1}, rbp);
}

void own_description(benchmark::State& state, bool builds) {
  static std::array<unsigned char, 256> code;
  const jitunwind::Code place{.start = reinterpret_cast<std::uintptr_t>(code.data()), .size = code.size()};
  jitunwind::x86_64::Marks marks;
  std::int64_t number = 0;
  for (auto _ : state) {
    if (builds) {
      auto builder = jitunwind::x86_64::describe();
      say_own(builder, ++number);
      if (!jitunwind::register_code(builder.build().value(), place)) std::exit(3);
    } else {
      say_own(marks, ++number);
      if (!jitunwind::register_code(marks, place)) std::exit(3);
    }
  }
  state.SetItemsProcessed(state.iterations());
}

void say_own(ju_builder* frame, std::int64_t number) {
  const std::int64_t bytes = 8 * (number % 100'000 + 1), exit = 40 + number / 100'000 % 100;
  ju_push(frame, 0, 1, JU_X86_64_RBP), ju_push(frame, 1, 2, JU_X86_64_RBX), ju_allocate(frame, 2, 9, bytes);
  ju_remember(frame), ju_deallocate(frame, exit, exit + 7, bytes), ju_pop(frame, exit + 7, exit + 8, JU_X86_64_RBX);
  ju_pop(frame, exit + 8, exit + 9, JU_X86_64_RBP), ju_restore(frame, exit + 9, exit + 10);
  ju_deallocate(frame, -10, -3, bytes), ju_pop(frame, -3, -2, JU_X86_64_RBX), ju_pop(frame, -2, -1, JU_X86_64_RBP);
}

void own_description_in_c(benchmark::State& state) {
  static std::array<unsigned char, 256> code;
  ju_builder* marks = nullptr;
  ju_code place;
  ju_code_init(&place, code.data(), code.size());
  place.name = "own";
  if (ju_describe_marks(JU_CPU_X86_64, &marks, nullptr) != JU_OK) std::exit(3);
  std::int64_t number = 0;
  for (auto _ : state) {
    ju_registration* live = nullptr;
    say_own(marks, ++number);
    if (ju_register_marks(marks, &place, &live, nullptr) != JU_OK || ju_cancel(live, nullptr) != JU_OK) std::exit(3);
  }
  ju_builder_free(marks);
  state.SetItemsProcessed(state.iterations());
}

/// Functions that push rbp; push rbx; sub rsp,n; call rdi, each with another n, and return.
class OwnFunctions {
 public:
  OwnFunctions()
      : bytes_(mmap(nullptr, k_size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (bytes_ == MAP_FAILED) std::exit(1);
    for (std::size_t i = 0; i < k_count; ++i) {
      unsigned char* const code = at(i);
      std::memcpy(code, "\x55\x53\x48\x81\xec....\xff\xd7\x48\x81\xc4....\x5b\x5d\xc3", k_code);
      const std::int32_t bytes = frame(i);
      for (const std::size_t number_at : {5, 14}) std::memcpy(code + number_at, &bytes, sizeof bytes);
    }
  }
  ~OwnFunctions() { munmap(bytes_, k_size); }
  OwnFunctions(const OwnFunctions&) = delete;
  OwnFunctions& operator=(const OwnFunctions&) = delete;

  template <class Recorder>
  static void say(Recorder& f, std::size_t i) {
    using namespace jitunwind::x86_64;
    f.push({0, 1}, rbp).push({1, 2}, rbx).allocate({2, 9}, frame(i));
    f.deallocate({11, 18}, frame(i)).pop({18, 19}, rbx).pop({19, 20}, rbp);
  }
  jitunwind::RegistrationBatch registered(bool builds) const {
    jitunwind::RegistrationBatch all;
    jitunwind::x86_64::Marks marks;
    for (std::size_t i = 0; i < k_count; ++i) {
      const jitunwind::Code place{.start = reinterpret_cast<std::uintptr_t>(at(i)), .size = k_code};
      auto builder = jitunwind::x86_64::describe();
      builds ? say(builder, i) : say(marks, i);
      auto one =
          builds ? jitunwind::register_code(builder.build().value(), place) : jitunwind::register_code(marks, place);
      if (!one || !all.add(std::move(*one))) std::exit(3);
    }
    return all;
  }
  void call_all(void (*callee)()) const {
    for (std::size_t i = 0; i < k_count; ++i) reinterpret_cast<Calls>(at(i))(callee);
  }
  static constexpr std::size_t k_count = 1000;

 private:
  static constexpr std::size_t k_code = 21, k_step = 32, k_size = k_count * k_step;
  static std::int32_t frame(std::size_t i) { return static_cast<std::int32_t>(16 * i + 8); }
  unsigned char* at(std::size_t i) const { return static_cast<unsigned char*>(bytes_) + i * k_step; }

  void* bytes_;
};

/// The time of walks out of functions.
struct LookUps {
  double first = 0, next = 0;  // in seconds, with the reading of the clock
} look_ups;

void look_up_twice() {
  std::array<void*, 2> addresses;
  for (double* sum : {&look_ups.first, &look_ups.next})
    *sum += seconds([&] {
      if (jitunwind::backtrace(addresses) != addresses.size()) std::exit(4);
    });
}

void own_look_up(benchmark::State& state, bool builds, bool first) {
  const OwnFunctions functions;
  for (auto _ : state) {
    const jitunwind::RegistrationBatch live = functions.registered(builds);
    look_ups = {};
    functions.call_all(look_up_twice);
    state.SetIterationTime(first ? look_ups.first : look_ups.next);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(OwnFunctions::k_count));
}

void throw_int() { throw 1; }

bool throws_through(const LongCode& code) {
  try {
    code.call(throw_int);
  } catch (int) {
    return true;
  }
  return false;
}

void throw_by_rows(benchmark::State& state, std::size_t size, bool first) {
  const LongCode code(size);
  const jitunwind::Description description = code.describe();
  {
    const LongCode other(10);  // does first what a process does once
    const jitunwind::Registration live = other.registered(other.describe());
    (void)throws_through(other);
  }
  for (auto _ : state) {
    const jitunwind::Registration live = code.registered(description);
    bool caught = true;
    if (!first) caught = throws_through(code);
    state.SetIterationTime(seconds([&] { caught &= throws_through(code); }));
    if (!caught) state.SkipWithError("not caught");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(size));
}

/// Code of equal pieces, repeated up to its length, and a ret at the end. A piece repeats push rax; pop rax and ends
/// with push rax; call rdi; pop rax. The code can be entered in front of each call.
class CodeOfPieces {
 public:
  explicit CodeOfPieces(std::size_t rows)
      : pieces_(std::max<std::size_t>(1, rows / k_rows)), size_(pieces_ * k_piece + 1) {
    bytes_ = static_cast<unsigned char*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (bytes_ == MAP_FAILED) std::exit(1);
    for (std::size_t i = 0; i < pieces_; ++i) {
      unsigned char* const piece = bytes_ + i * k_piece;
      for (std::size_t at = 0; at < k_call; at += 2) std::memcpy(piece + at, "\x50\x58", 2);
      std::memcpy(piece + k_call, "\x50\xff\xd7\x58", 4);
    }
    bytes_[size_ - 1] = 0xc3;
  }
  ~CodeOfPieces() { munmap(bytes_, size_); }
  CodeOfPieces(const CodeOfPieces&) = delete;
  CodeOfPieces& operator=(const CodeOfPieces&) = delete;

  std::size_t pieces() const { return pieces_; }
  std::size_t rows() const { return pieces_ * k_rows; }
  jitunwind::Description describe() const {
    auto builder = jitunwind::x86_64::describe("pieces");
    for (std::int64_t at = 0; at + 1 < static_cast<std::int64_t>(size_);) {
      const std::int64_t pop = at % k_piece == k_call ? at + 3 : at + 1;
      builder.push({at, at + 1}).pop({pop, pop + 1});
      at = pop + 1;
    }
    return builder.size(size_).build().value();
  }
  jitunwind::Registration registered(const jitunwind::Description& description) const {
    return jitunwind::register_code(description, bytes_, size_).value();
  }
  bool throws_through(std::size_t piece) const {
    try {
      reinterpret_cast<Calls>(bytes_ + piece * k_piece + k_call)(throw_int);
    } catch (int) {
      return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t k_call = 510, k_piece = k_call + 4, k_rows = k_call + 2;
  std::size_t pieces_, size_;
  unsigned char* bytes_;
};

void throw_everywhere(benchmark::State& state, std::size_t rows, bool in_order) {
  const CodeOfPieces code(rows);
  const jitunwind::Description description = code.describe();
  std::vector<std::size_t> places(code.pieces());
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (!in_order) std::shuffle(places.begin(), places.end(), std::mt19937(1));
  for (auto _ : state) {
    const jitunwind::Registration live = code.registered(description);
    bool caught = true;
    state.SetIterationTime(seconds([&] {
      for (const std::size_t piece : places) caught &= code.throws_through(piece);
    }));
    if (!caught) state.SkipWithError("not caught");
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(code.rows()));
}

#ifdef JITUNWIND_BENCH_ASMJIT

using asmjit::x86::Assembler;
using examples::new_label;

void write_plain(Assembler& a) { a.add(asmjit::x86::rax, asmjit::x86::rcx); }
void write_branch(Assembler& a) {
  using namespace asmjit::x86;
  const asmjit::Label behind = new_label(a);
  a.cmp(rax, rbx);
  a.je(behind);
  a.add(rax, 1);
  a.bind(behind);
}
void write_call(Assembler& a) {
  using namespace asmjit::x86;
  a.push(1);
  a.push(2);
  a.call(rax);
  a.add(rsp, 16);
}
void write_exit(Assembler& a) {
  using namespace asmjit::x86;
  const asmjit::Label behind = new_label(a);
  a.test(rax, rax);
  a.je(behind);
  a.pop(rbx);
  a.ret();
  a.bind(behind);
}
/// The kinds of code between push rbx and pop rbx; ret.
struct Kind {
  const char* name;
  void (*write_one)(Assembler&);
};
constexpr std::array<Kind, 4> k_kinds{
    Kind{"plain", write_plain}, {"branches", write_branch}, {"calls", write_call}, {"exits", write_exit}};

/// Emitters and runtimes come in pairs.
template <class Emitter, class Runtime>
void add_once(const Kind& kind, std::size_t size, Runtime& runtime) {
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  Emitter emitter(&code);
  emitter.push(asmjit::x86::rbx);
  for (std::size_t i = 0; i < size; ++i) kind.write_one(emitter);
  emitter.pop(asmjit::x86::rbx);
  emitter.ret();
  void* start = nullptr;
  if (runtime.add(&start, &code) != asmjit::kErrorOk) std::exit(3);
  runtime.release(start);
}

template <class Emitter, class Runtime>
void add_code(benchmark::State& state, const Kind& kind, std::size_t size) {
  Runtime runtime;
  for (auto _ : state) add_once<Emitter>(kind, size, runtime);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(size));
}

/// A function of 42 instructions, as it is written by hand: five pushes, a loop with two calls, an early return.
template <class Emitter>
void write_function(Emitter& a) {
  using namespace asmjit::x86;
  const asmjit::Label again = new_label(a), exit = new_label(a);
  const auto leave = [&] {
    a.add(rsp, 40);
    for (const Gp& reg : {r14, r13, r12, rbx, rbp}) a.pop(reg);
    a.ret();
  };
  a.push(rbp), a.mov(rbp, rsp);
  for (const Gp& reg : {rbx, r12, r13, r14}) a.push(reg);
  a.sub(rsp, 40);
  a.mov(rbx, rdi), a.test(rbx, rbx), a.jz(exit);
  a.bind(again);
  for (int i = 0; i < 2; ++i) {
    a.mov(rdi, rbx), a.mov(eax, dword_ptr(rbx, 16)), a.add(eax, 300), a.imul(eax, ecx);
    a.mov(dword_ptr(rbx, 8), eax), a.mov(ptr(rsp, 8), rax), a.call(rax);
  }
  a.dec(r12), a.jnz(again);
  leave();
  a.bind(exit);
  a.mov(eax, 1), a.xor_(edx, edx);
  leave();
}

template <class Emitter, class Runtime>
void add_function(benchmark::State& state) {
  Runtime runtime;
  for (auto _ : state) {
    asmjit::CodeHolder code;
    code.init(runtime.environment());
    Emitter emitter(&code);
    write_function(emitter);
    void* start = nullptr;
    if (emitter.finalize() != asmjit::kErrorOk || runtime.add(&start, &code) != asmjit::kErrorOk) std::exit(3);
    runtime.release(start);
  }
  state.SetItemsProcessed(state.iterations());
}

/// A function of a Compiler: a loop over `size` instructions that work on ten values, and a call.
template <class Runtime>
void compile_once(std::size_t size, std::int32_t number, Runtime& runtime) {
  using examples::new_gp32;
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  asmjit::x86::Compiler compiler(&code);
  asmjit::FuncNode* const function = examples::add_func(compiler, examples::signature<void, int>());
  const asmjit::x86::Gp rounds = new_gp32(compiler);
  examples::set_arg(*function, 0, rounds);
  std::array<asmjit::x86::Gp, 10> values;
  for (asmjit::x86::Gp& value : values) compiler.mov(value = new_gp32(compiler), number++);
  const asmjit::Label again = new_label(compiler);
  compiler.bind(again);
  for (std::size_t i = 0; i < size; ++i) compiler.xor_(values[i % 10], values[(i + 3) % 10]);
  compiler.dec(rounds);
  compiler.jnz(again);
  const auto callee = reinterpret_cast<std::uintptr_t>(throw_int);
  examples::set_arg(*examples::invoke(compiler, asmjit::Imm(callee), examples::signature<void, int>()), 0, values[0]);
  examples::end_func(compiler);
  void* start = nullptr;
  if (compiler.finalize() != asmjit::kErrorOk || runtime.add(&start, &code) != asmjit::kErrorOk) std::exit(3);
  runtime.release(start);
}

template <class Runtime>
void compile_code(benchmark::State& state, std::size_t size) {
  Runtime runtime;
  std::int32_t number = 0;
  for (auto _ : state) compile_once(size, ++number, runtime);
  state.SetItemsProcessed(state.iterations());
}

void add_asmjit_benchmarks() {
  using jitunwind::AsmjitAssembler, jitunwind::AsmjitRuntime, asmjit::x86::Builder, asmjit::JitRuntime;
  const auto add = [](const char* row, auto measure) { benchmark::RegisterBenchmark(row, measure); };
  add("add_function/asmjit/assembler", add_function<Assembler, JitRuntime>);
  add("add_function/AsmjitRuntime/assembler", add_function<AsmjitAssembler, AsmjitRuntime>);
  add("add_function/asmjit/builder", add_function<Builder, JitRuntime>);
  add("add_function/AsmjitRuntime/builder", add_function<Builder, AsmjitRuntime>);
  for (const std::size_t size : {10, 100}) {
    const std::string number = std::to_string(size);
    benchmark::RegisterBenchmark(("compile_code/asmjit/" + number).c_str(),
                                 [=](auto& state) { compile_code<asmjit::JitRuntime>(state, size); });
    benchmark::RegisterBenchmark(("compile_code/AsmjitRuntime/" + number).c_str(),
                                 [=](auto& state) { compile_code<jitunwind::AsmjitRuntime>(state, size); });
  }
  for (const Kind& kind : k_kinds) {
    for (const std::size_t size : k_sizes) {
      const std::string row = "/" + std::string(kind.name) + "/" + std::to_string(size);
      benchmark::RegisterBenchmark(("add_code/asmjit" + row).c_str(),
                                   [=](auto& state) { add_code<Assembler, asmjit::JitRuntime>(state, kind, size); });
      benchmark::RegisterBenchmark(("add_code/AsmjitRuntime" + row).c_str(), [=](auto& state) {
        add_code<jitunwind::AsmjitAssembler, jitunwind::AsmjitRuntime>(state, kind, size);
      });
    }
  }
}
#endif

void add_benchmarks() {
  for (const bool builds : {true, false})
    benchmark::RegisterBenchmark(builds ? "own_description/build" : "own_description/marks",
                                 [=](auto& state) { own_description(state, builds); });
  benchmark::RegisterBenchmark("own_description/marks_in_c", own_description_in_c);
  for (const bool builds : {true, false})
    for (const bool first : {true, false})
      benchmark::RegisterBenchmark(
          (std::string("own_look_up/") + (builds ? "build/" : "marks/") + (first ? "first" : "next")).c_str(),
          [=](auto& state) { own_look_up(state, builds, first); })
          ->UseManualTime();
  for (const std::size_t size : k_sizes) {
    const std::string number = std::to_string(size);
    benchmark::RegisterBenchmark(("build/jitunwind/" + number).c_str(), [=](auto& state) { build(state, size); });
    benchmark::RegisterBenchmark(("register_size/jitunwind/" + number).c_str(),
                                 [=](auto& state) { register_size(state, size); });
    for (const bool first : {true, false})
      benchmark::RegisterBenchmark(((first ? "throw_by_rows/first/" : "throw_by_rows/next/") + number).c_str(),
                                   [=](auto& state) { throw_by_rows(state, size, first); })
          ->UseManualTime();
    if (size < 1000) continue;  // such code has only a few pieces
    for (const bool in_order : {true, false})
      benchmark::RegisterBenchmark(
          ((in_order ? "throw_everywhere/in_order/" : "throw_everywhere/at_random/") + number).c_str(),
          [=](auto& state) { throw_everywhere(state, size, in_order); })
          ->UseManualTime();
  }
#ifdef JITUNWIND_BENCH_ASMJIT
  add_asmjit_benchmarks();
#endif
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  add_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
}
