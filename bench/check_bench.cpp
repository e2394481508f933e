// The check of descriptions: the FDEs of a library that this process has loaded, and a shape that is registered.
//
//   check_fdes/compared     every FDE of the C++ library is checked, in the order of its .eh_frame; an item is an FDE
//   check_fdes/read         its rows and its instructions are read, and nothing else
//   check_shape/compared    a registered procedure of seven instructions
//   check_shape/unchecked   it is registered and cancelled
//   check_shape/registered  the same with JITUNWIND_CHECK; its code is new each time
//   check_shape/again       the same code each time
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "jitunwind/dyn_info/check_procedure.h"
#include "jitunwind/dyn_info/registry/registration_checks_internal.h"
#include "jitunwind/jitunwind.h"
#include "jitunwind/unwind_core/arch/instruction.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"

namespace {

using namespace jitunwind;

template <class Look>
void visit_fdes(benchmark::State& state, Look look) {
  const LocalMemory memory;
  Module module;
  const CfiContext context{*host_arch()};
  if (!local_modules().find(reinterpret_cast<std::uintptr_t>(&std::terminate), module))
    return state.SkipWithError("no module");
  const Result<EhFrameHdr> table = parse_eh_frame_hdr(module.eh_frame_hdr, *host_arch());
  if (!table) return state.SkipWithError("no table");
  constexpr Addr k_most = Addr{64} << 20;  // a terminator ends the section
  std::int64_t fdes = 0;
  for (auto _ : state) {
    MemoryWindow window;
    MemoryView view(memory, window, {});
    FdeScan scan(view, context, {table->eh_frame, table->eh_frame + k_most});
    Fde fde;
    for (Result<bool> more = scan.next(fde); more && *more; more = scan.next(fde), ++fdes) look(fde, context, memory);
  }
  state.SetItemsProcessed(fdes);
}

void check_fdes(benchmark::State& state) {
  visit_fdes(state, [](const Fde& fde, const CfiContext& context, const Memory& memory) {
    benchmark::DoNotOptimize(check(fde, context, memory).agreed);
  });
}

void read_fdes(benchmark::State& state) {
  visit_fdes(state, [](const Fde& fde, const CfiContext& context, const Memory& memory) {
    FrameRow row;
    row.range.end = fde.range.begin;
    FdeRows rows(fde, context, row);
    while (const Result<bool> more = rows.next_behind(row.range.end)) {
      if (!*more) break;
    }
    MemoryWindow window;
    const auto size = static_cast<std::size_t>(fde.range.end - fde.range.begin);
    const std::byte* const code = memory.view(fde.range.begin, size, window);
    if (code == nullptr) return;
    for (std::size_t at = 0; at < size;) {
      const auto bytes = std::span(code, size).subspan(at);
      const std::size_t length = context.arch.read_instruction(bytes, fde.range.begin + at).length;
      at += length == 0 ? 1 : length;
    }
    benchmark::DoNotOptimize(row);
  });
}

/// push rbx; sub rsp,16; mov eax,number; call rdi; add rsp,16; pop rbx; ret
struct SevenInstructions {
  explicit SevenInstructions(std::uint32_t number) { std::memcpy(&bytes[6], &number, sizeof number); }
  unsigned char bytes[18] = {0x53, 0x48, 0x83, 0xec, 0x10, 0xb8, 0,    0,    0,
                             0,    0xff, 0xd7, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};
};
Description description_of_seven() {
  using namespace jitunwind::x86_64;
  return *describe("call").push({0, 1}, rbx).allocate({1, 5}, 16).deallocate({-6, -2}, 16).pop({-2, -1}, rbx).build();
}

void check_shape(benchmark::State& state) {
  const SevenInstructions code(0);
  const auto live = register_code(description_of_seven(), code.bytes, sizeof code.bytes);
  for (auto _ : state) {
    const CheckReport report = check(*live->info());
    if (report.verdict != Verdict::agrees) return state.SkipWithError("it disagrees");
  }
  state.SetItemsProcessed(state.iterations());
}

/// `step`: of the number in the code, which no registration before had, if it is not 0.
void register_shape(benchmark::State& state, std::uint32_t words, std::uint32_t step) {
  static std::uint32_t number = 0;
  add_to_log_words(words);
  const Description description = description_of_seven();
  for (auto _ : state) {
    const SevenInstructions code(number += step);
    const auto live = register_code(description, code.bytes, sizeof code.bytes);
    if (!live) return state.SkipWithError("it is refused");
  }
  __atomic_fetch_and(&log_topics, ~words, __ATOMIC_RELAXED);
  state.SetItemsProcessed(state.iterations());
}
}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RegisterBenchmark("check_fdes/compared", check_fdes);
  benchmark::RegisterBenchmark("check_fdes/read", read_fdes);
  benchmark::RegisterBenchmark("check_shape/compared", check_shape);
  benchmark::RegisterBenchmark("check_shape/unchecked", [](auto& state) { register_shape(state, 0, 0); });
  benchmark::RegisterBenchmark("check_shape/registered",
                               [](auto& state) { register_shape(state, k_check_refuses, 1); });
  benchmark::RegisterBenchmark("check_shape/again", [](auto& state) { register_shape(state, k_check_refuses, 0); });
  benchmark::RunSpecifiedBenchmarks();
}
