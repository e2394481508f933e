// The price of publishing: what it adds to registering, what a segment costs, pages that are laid over code, and code
// on small pages.
//
//   publish/WAY/N         an item is one of N functions of four shapes. Ways: allocate (a room, and the bytes in it),
//                         commit, register_code of other functions just afterwards, and the difference of these two.
//                         handlers/N: with a personality routine and data; marks/N: described by marks
//   open_segment/4096     an item is a function of a segment: the file, and the dynamic linker, in any thread
//   lay_over/WAY/N        64 KiB of code with N functions: its file is made; the file is laid over it. An item is a
//   file spread_calls/WAY/N    calls of N functions, each on a page of its own, in a random order. Ways are the memory:
//                         anonymous, anonymous with huge pages, segments
#include <benchmark/benchmark.h>
#include <jitunwind/code_segments.h>
#include <jitunwind/jitunwind.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/describe.h"
#include "bench/jit_arena.h"
#include "bench/thread_time.h"
#include "jitunwind/sdk/published_pages_internal.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace {

using namespace jitunwind;
using bench::thread_seconds;

constexpr std::size_t k_functions_of_segment = CodeSegmentsOptions().functions;

enum class Kind { described, handlers, marks };
constexpr std::array<const char*, 3> k_kinds{"", "/handlers", "/marks"};

const Description& description_of(const bench::JitFunction& function, Kind kind = Kind::described) {
  constexpr Addr k_personality = 0x1000;  // nobody calls it
  static std::map<std::pair<std::size_t, Kind>, Description> known;
  const std::pair key{function.locals, kind};
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  const Addr personality = kind == Kind::handlers ? k_personality : 0;
  return known.emplace(key, bench::describe(function, "jit", personality)).first->second;
}

enum class Part { allocate, commit, register_code, difference };
constexpr std::array<const char*, 4> k_parts{"allocate", "commit", "register_code", "difference"};

void publish(benchmark::State& state, Kind kind, Part part, std::size_t count) {
  const bench::JitArena arena(count, 32);
  std::vector<CodeRoom> rooms(count);
  std::vector<Registration> registered(count);
  x86_64::Marks marks;
  // Passes what describes the function on, and the code.
  const auto tell = [&](const bench::JitFunction& function, Addr start, auto put) {
    const Addr lsda = kind == Kind::handlers ? start : 0;
    const Code code{.start = start, .size = function.size, .name = "jit", .lsda = lsda};
    if (kind != Kind::marks) return put(description_of(function, kind), code);
    bench::record(function, marks);
    put(marks, code);
  };
  for (auto _ : state) {
    CodeSegments segments;
    std::array<double, 4> at{thread_seconds()};
    for (std::size_t i = 0; i < count; ++i) {
      const bench::JitFunction& function = arena.functions()[i];
      rooms[i] = segments.allocate(function.size).value();
      std::memcpy(rooms[i].writable.data(), function.code, function.size);
    }
    at[1] = thread_seconds();
    for (std::size_t i = 0; i < count; ++i)
      tell(arena.functions()[i], rooms[i].start,
           [&](auto& what, const Code& code) { segments.commit(what, code).value(); });
    at[2] = thread_seconds();
    for (std::size_t i = 0; i < count; ++i) {
      const bench::JitFunction& function = arena.functions()[i];
      tell(function, reinterpret_cast<std::uintptr_t>(function.code),
           [&](auto& what, const Code& code) { registered[i] = register_code(what, code).value(); });
    }
    at[3] = thread_seconds();
    const std::array<double, 3> took{at[1] - at[0], at[2] - at[1], at[3] - at[2]};
    state.SetIterationTime(part == Part::difference ? std::max(took[1] - took[2], 1e-12)
                                                    : took[static_cast<std::size_t>(part)]);
    if (segments.status().published != count) state.SkipWithError("not all functions are published");
    for (Registration& one : registered) (void)one.cancel();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

double process_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void open_segment(benchmark::State& state) {
  for (auto _ : state) {
    CodeSegments segments;
    const double begin = process_seconds();
    benchmark::DoNotOptimize(segments.allocate(16).value());
    state.SetIterationTime(process_seconds() - begin);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(k_functions_of_segment));
}

/// Memory that is code from a certain moment on.
class CodePages {
 public:
  explicit CodePages(std::size_t bytes, bool is_huge = false) : bytes_(bytes) {
    memory_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes + k_huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const auto at = reinterpret_cast<std::uintptr_t>(memory_);
    begin_ = memory_ + ((at + k_huge - 1) / k_huge * k_huge - at);
    (void)::madvise(begin_, bytes, is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }
  ~CodePages() { ::munmap(memory_, bytes_ + k_huge); }
  CodePages(const CodePages&) = delete;
  CodePages& operator=(const CodePages&) = delete;

  std::byte* begin() const { return begin_; }
  AddrRange range() const {
    const auto at = reinterpret_cast<std::uintptr_t>(begin_);
    return {at, at + bytes_};
  }
  void make_executable() { (void)::mprotect(begin_, bytes_, PROT_READ | PROT_EXEC); }

 private:
  static constexpr std::size_t k_huge = std::size_t{2} << 20;
  std::size_t bytes_;
  std::byte *memory_, *begin_;
};

enum class Step { make, replace };

void lay_over(benchmark::State& state, Step step, std::size_t count) {
  constexpr std::size_t k_bytes = 65536;
  const bench::JitArena arena(count, 32);
  CodePages pages(k_bytes);
  std::vector<Registration> registered;
  std::vector<AddrRange> procedures;
  for (std::size_t i = 0; i < count; ++i) {
    const bench::JitFunction& function = arena.functions()[i];
    std::byte* const at = pages.begin() + i * (k_bytes / count);
    std::memcpy(at, function.code, function.size);
    registered.push_back(register_code(description_of(function), at, function.size).value());
    procedures.push_back({registered.back().info()->start_ip, registered.back().info()->end_ip});
  }
  pages.make_executable();
  const Mappings mappings = Mappings::parse(ProcessFolder(::getpid()).read("maps").value_or(""));
  for (auto _ : state) {
    const double begin = thread_seconds();
    auto made = PublishedPages::make(pages.range(), procedures, mappings);
    const double middle = thread_seconds();
    if (!made || !made->lay_over({})) return state.SkipWithError("the pages are not laid over");
    state.SetIterationTime(step == Step::make ? middle - begin : thread_seconds() - middle);
  }
  state.SetItemsProcessed(state.iterations());
}

enum class Memory { anonymous, huge, segments };
constexpr std::array<const char*, 3> k_memories{"anonymous", "anonymous, huge pages", "segments"};

/// The functions return at once. They are in different lines of the instruction cache.
void spread_calls(benchmark::State& state, Memory memory, std::size_t count) {
  constexpr std::size_t k_page = 4096, k_line = 64;
  constexpr std::byte k_ret{0xc3};
  std::vector<void (*)()> functions;
  CodePages pages(memory == Memory::segments ? k_page : count * k_page, memory == Memory::huge);
  CodeSegments segments;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i % (k_page / k_line) * k_line;
    Addr start = pages.range().begin + i * k_page;
    if (memory == Memory::segments) {
      const CodeRoom room = segments.allocate(k_page, 0, k_page).value();
      room.writable[at] = k_ret;
      start = room.start;
    } else {
      pages.begin()[i * k_page + at] = k_ret;
    }
    functions.push_back(reinterpret_cast<void (*)()>(static_cast<std::uintptr_t>(start + at)));
  }
  pages.make_executable();
  std::shuffle(functions.begin(), functions.end(), std::mt19937(1));
  for (auto* const function : functions) function();
  for (auto _ : state)
    for (auto* const function : functions) function();
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

template <class Run>
benchmark::internal::Benchmark* add(const std::string& row, const std::string& way, std::size_t count, Run run) {
  const std::string name = row + "/" + way + "/" + std::to_string(count);
  return benchmark::RegisterBenchmark(name.c_str(), run);
}

void add_benchmarks(std::size_t most) {
  for (const std::size_t count : {std::size_t{1000}, k_functions_of_segment, std::size_t{100'000}}) {
    if (count > most) continue;
    for (const Kind kind : {Kind::described, Kind::handlers, Kind::marks}) {
      if (kind != Kind::described && count != k_functions_of_segment) continue;
      for (const Part part : {Part::allocate, Part::commit, Part::register_code, Part::difference})
        add("publish", (std::string(k_parts[static_cast<std::size_t>(part)]) + k_kinds[static_cast<std::size_t>(kind)]),
            count, [=](auto& state) { publish(state, kind, part, count); })
            ->UseManualTime()
            ->Iterations(static_cast<std::int64_t>(std::max(std::size_t{20'000} / count, std::size_t{1})));
    }
  }
  add("open_segment", "a function's share", k_functions_of_segment, open_segment)->UseManualTime()->Iterations(20);
  for (const std::size_t count : {std::size_t{16}, std::size_t{1024}})
    for (const Step step : {Step::make, Step::replace})
      add("lay_over", step == Step::make ? "make" : "replace", count,
          [=](auto& state) { lay_over(state, step, count); })
          ->UseManualTime()
          ->Iterations(50);
  for (const std::size_t count : {std::size_t{64}, std::size_t{1024}, std::size_t{8192}})
    for (const Memory memory : {Memory::anonymous, Memory::huge, Memory::segments})
      add("spread_calls", k_memories[static_cast<std::size_t>(memory)], count,
          [=](auto& state) { spread_calls(state, memory, count); });
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s large MAX-FUNCTIONS [--benchmark_...]\n", argv[0]);
    return 2;
  }
  add_benchmarks(std::strtoul(argv[2], nullptr, 10));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
