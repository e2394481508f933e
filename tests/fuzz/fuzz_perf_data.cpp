// Input: a file of perf's.
#include "jitunwind/sdk/jitstack/perf/perf_data_p.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;
using namespace jitunwind::jitstack;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = PerfData::parse(std::as_bytes(std::span(data, size)), "input");
  if (!parsed) {
    fuzz::check(!parsed.error().what.empty(), "an error says what");
    return 0;
  }
  fuzz::check(parsed->size() <= size / 8, "a record has a head");
  fuzz::check(parsed->samples() <= parsed->size(), "a sample is a record");
  // No file of this machine has those names.
  PerfProcesses processes(parsed->arch(), {"/nowhere", ""});
  std::size_t walked = 0;
  for (std::size_t i = 0; i < parsed->size(); ++i) {
    const auto event = parsed->event(i);
    if (!event) {
      fuzz::check(*event.error().what != 0 && event.error().at <= size, "an error says what and where");
      continue;
    }
    const auto* const sample = std::get_if<PerfSample>(&*event);
    if (!sample) {
      processes.take(*event);
      continue;
    }
    fuzz::check(sample->stack.size() <= size, "the stack is of the file");
    if (!sample->has_registers || ++walked > 4) continue;
    const auto target = processes.target_of(*sample);
    if (!target) continue;
    std::size_t frames = 0;
    for (const Frame& frame : (*target)->walk((*target)->threads().front())) frames += frame.depth() >= frames;
    fuzz::check(frames >= 1, "a walk has a frame");
  }
  return 0;
}
