#include "tests/asmjit/written_code.h"

#include "jitunwind/adapters/testing/single_step_p.h"
#include "jitunwind/dyn_info/directives/directives.h"

extern "C" void jitunwind_marked_call(void (*target)());

namespace jitunwind::test {
using namespace stepping;

void call_marked(std::uintptr_t procedure) { jitunwind_marked_call(reinterpret_cast<void (*)()>(procedure)); }

void WrittenCode::expect_right() {
  expect_right([](std::uintptr_t start) { return call_marked(start), 0; });
}

void WrittenCode::expect_right(const std::function<int(std::uintptr_t)>& body) {
  if (code.flatten() != asmjit::kErrorOk) return ADD_FAILURE() << "flatten";
  const AsmjitDescription description = describe_asmjit(code);
  std::uint8_t* start = nullptr;
  ASSERT_EQ(runtime.add(&start, &code), asmjit::kErrorOk) << description.text();
  const auto base = reinterpret_cast<std::uintptr_t>(start);
  std::vector<SteppedCode> stepped;
  for (const AsmjitProcedure& p : description.procedures)
    stepped.push_back({p.name.empty() ? "code" : p.name, {base + p.begin, base + p.end}});
  const SingleStepJudge judge{"registry", {&dyn_row_source()}};
  SingleStepOptions options;
  for (const std::uint64_t offset : pc_pushes) options.pc_pushes.insert(base + offset);
  const SingleStepRun run = single_step(
      stepped, [&] { return body(base); }, std::span(&judge, 1), options);
  EXPECT_TRUE(run.ok()) << run.text() << rows();
  for (const SteppedCode& s : stepped) {
    EXPECT_TRUE(run.missed(reinterpret_cast<void*>(s.range.begin), 1).empty()) << s.name << " never ran";
  }
}

}  // namespace jitunwind::test
