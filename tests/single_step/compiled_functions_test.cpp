// Compares every instruction of the compiler's own frames with the truth: the engine reads their .eh_frame.
#include <gtest/gtest.h>

#include <cstdint>

#include "jitunwind/adapters/testing/single_step_p.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/sources/sources.h"

using Helper = std::int64_t (*)(std::int64_t);

#define JUDGED(variant)                           \
  extern "C" std::int64_t run_##variant(Helper);  \
  extern "C" const std::byte __start_##variant[]; \
  extern "C" const std::byte __stop_##variant[];
#include "tests/single_step/compiled_functions.def"
#undef JUDGED

namespace jitunwind::test {
using namespace stepping;
namespace {

struct Variant {
  const char* name;
  std::int64_t (*run)(Helper);
  const std::byte* begin;
  const std::byte* end;
};

constexpr Variant k_variants[] = {
#define JUDGED(variant) {#variant, &run_##variant, __start_##variant, __stop_##variant},
#include "tests/single_step/compiled_functions.def"
#undef JUDGED
};

std::int64_t helper(std::int64_t x) { return x / 2 + 1; }

class CompiledFunctions : public testing::TestWithParam<Variant> {};

TEST_P(CompiledFunctions, AreRightAtEveryInstruction) {
  const Variant& variant = GetParam();
  const auto address = [](const std::byte* at) { return static_cast<Addr>(reinterpret_cast<std::uintptr_t>(at)); };
  const SteppedCode code{variant.name, {address(variant.begin), address(variant.end)}};
  const SingleStepJudge judge{"eh_frame", {&eh_frame_source()}};
  SingleStepOptions options;
  options.modules = &local_modules();
  const std::int64_t expected = k_variants[0].run(helper);
  const SingleStepRun run = single_step(
      std::span(&code, 1), [&] { return variant.run(helper) == expected ? 0 : 1; }, std::span(&judge, 1), options);
  EXPECT_TRUE(run.ok()) << run.text();
  EXPECT_GT(run.visited.size(), 200u);
  std::printf("%s: %s", variant.name, run.text().c_str());
}

INSTANTIATE_TEST_SUITE_P(Variants, CompiledFunctions, testing::ValuesIn(k_variants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace jitunwind::test
