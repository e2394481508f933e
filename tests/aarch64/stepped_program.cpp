// The program that step_by_step.py runs one instruction at a time: compiled functions and described ones.
//
//   stepped_program ROWS SEED COUNT [LIE]
//
// The program writes to the file ROWS the ranges of the code, "begin end", and the library's row for each instruction,
// "address row". It stops at a breakpoint instruction, runs everything once, and stops again. COUNT is the number of
// described functions, which SEED makes at random. LIE is the number of a statement about the first function that is
// made wrong. A refusal of it is as good as a finding, and gives the exit status 3; 4: there is no such number.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "tests/aarch64/described_frames.h"

using Helper = std::int64_t (*)(std::int64_t);

#define JUDGED(variant)                           \
  extern "C" std::int64_t run_##variant(Helper);  \
  extern "C" const std::byte __start_##variant[]; \
  extern "C" const std::byte __stop_##variant[];
#include "compiled_variants.def"
#undef JUDGED

namespace jitunwind::test {
namespace {

struct Compiled {
  std::int64_t (*run)(Helper);
  const std::byte* begin;
  const std::byte* end;
};
constexpr Compiled k_compiled[] = {
#define JUDGED(variant) {&run_##variant, __start_##variant, __stop_##variant},
#include "compiled_variants.def"
#undef JUDGED
};

struct Described {
  std::int64_t (*run)(Helper, std::int64_t);
  int early_returns;
  std::size_t bytes;
  Registration registration;
};

std::int64_t help(std::int64_t x) { return x / 2 + 1; }

Addr address(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

void write_rows(std::FILE* file, AddrRange code) {
  const AddressSpace& space = local_space();
  for (Addr at = code.begin; at < code.end; at += space.arch.unit) {
    MemoryWindow window;
    Lookup lookup(space, CodeAddress::interrupted(at), window);
    FrameRow row;
    const Found found = space.find_row(lookup, row);
    const std::string text = !found ? found.error().what : *found ? to_text(row, space.arch) : "none";
    std::fprintf(file, "%" PRIx64 " %s\n", at, text.c_str());
  }
}

std::vector<Described> described_functions(CodePages& pages, std::mt19937_64& random, int count, int lie) {
  std::vector<Described> all;
  for (int i = 0; i < count; ++i) {
    const RandomFrame frame = random_frame(random, i == 0 ? lie : -1);
    if (i == 0 && lie >= frame.said) std::exit(4);
    if (i == 0 && lie >= 0 && !frame.description) std::exit(3);
    if (!frame.description) throw std::runtime_error(frame.description.error().text());
    void* const at = pages.add(frame.code);
    const std::size_t bytes = frame.code.size() * sizeof frame.code[0];
    all.push_back({reinterpret_cast<std::int64_t (*)(Helper, std::int64_t)>(at), frame.early_returns, bytes,
                   register_code(*frame.description, at, bytes).value()});
  }
  return all;
}

int run(const char* path, std::uint64_t seed, int count, int lie) {
  std::mt19937_64 random(seed);
  CodePages pages(4 << 20);
  const std::vector<Described> described = described_functions(pages, random, count, lie);
  std::vector<AddrRange> ranges;
  if (lie < 0)
    for (const Compiled& c : k_compiled) ranges.push_back({address(c.begin), address(c.end)});
  for (const Described& d : described) {
    const Addr begin = address(reinterpret_cast<const void*>(d.run));
    ranges.push_back({begin, begin + d.bytes});
  }
  std::FILE* const file = std::fopen(path, "w");
  if (!file) return 2;
  for (const AddrRange& range : ranges) std::fprintf(file, "%" PRIx64 " %" PRIx64 "\n", range.begin, range.end);
  std::fprintf(file, "\n");
  for (const AddrRange& range : ranges) write_rows(file, range);
  std::fclose(file);

  const std::int64_t expected = k_compiled[0].run(&help);
  asm volatile("brk #0" ::: "memory");
  int wrong = 0;
  if (lie < 0)
    for (const Compiled& c : k_compiled) wrong += c.run(&help) != expected;
  for (const Described& d : described)
    for (std::int64_t n = 1; n <= d.early_returns + 1; ++n) wrong += d.run(&help, n) != k_frame_result;
  asm volatile("brk #1" ::: "memory");
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace jitunwind::test

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int lie = argc > 4 ? std::atoi(argv[4]) : -1;
  return jitunwind::test::run(argv[1], std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]), lie);
}
