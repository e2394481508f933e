// The check of descriptions: the FDEs of a library that this process has loaded, and a shape that is registered.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "jitunwind/dyn_info/check_procedure.h"
#include "jitunwind/jitunwind.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"

namespace {

using namespace jitunwind;

/// Every FDE of the C++ library, by the table of its .eh_frame_hdr. Items are FDEs.
void check_fdes(benchmark::State& state) {
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
    for (Result<bool> more = scan.next(fde); more && *more; more = scan.next(fde), ++fdes)
      benchmark::DoNotOptimize(check(fde, context, memory).agreed);
  }
  state.SetItemsProcessed(fdes);
}
BENCHMARK(check_fdes)->Unit(benchmark::kMillisecond);

/// push rbx; sub rsp,16; call rdi; add rsp,16; pop rbx; ret
void check_shape(benchmark::State& state) {
  using namespace jitunwind::x86_64;
  static constexpr unsigned char k_code[] = {0x53, 0x48, 0x83, 0xec, 0x10, 0xff, 0xd7,
                                             0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3};
  const auto description =
      describe("call").push({0, 1}, rbx).allocate({1, 5}, 16).deallocate({-6, -2}, 16).pop({-2, -1}, rbx).build();
  const auto live = register_code(*description, k_code, sizeof k_code);
  for (auto _ : state) {
    const CheckReport report = check(*live->info());
    if (report.verdict != Verdict::agrees) return state.SkipWithError("it disagrees");
  }
}
BENCHMARK(check_shape)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
