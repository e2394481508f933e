#include "jitunwind/adapters/testing/check_by_stepping.h"

#include <Zydis/Zydis.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <vector>

#include "jitunwind/adapters/testing/single_step_p.h"
#include "jitunwind/c_testing.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/sdk/local_space.h"

namespace jitunwind {
namespace {

/// The registered name, or the address of code without a name.
std::string name_of(AddrRange range) {
  std::array<char, 256> name;
  ProcedureName found;
  if (find_local_name(CodeAddress::interrupted(range.begin), name, found)) return name.data();
  return "code at " + stepping::hex(range.begin);
}

void report_run(const stepping::SingleStepRun& run, std::span<const AddrRange> code, SteppingReport& out) {
  const stepping::SingleStepReport& judged = run.reports.front();
  out.failure = run.failure;
  out.activations = run.activations;
  out.by_entry_row = run.built_before;
  out.instructions = judged.instructions;
  out.calls = judged.after_calls;
  out.wrong = judged.mismatches;
  for (const std::string& text : judged.texts) out.mismatches += text + "\n";
  for (const AddrRange& range : code) {
    const auto* const begin = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(range.begin));
    for (const Addr at : run.missed(begin, range.size())) out.not_run.push_back(at);
  }
}

}  // namespace

std::string SteppingReport::text() const {
  std::string text = std::to_string(instructions) + " instructions and " + std::to_string(calls) + " calls of " +
                     std::to_string(activations) + " activations compared, " + std::to_string(wrong) + " wrong, " +
                     std::to_string(not_run.size()) + " instructions never run\n";
  if (by_entry_row != 0)
    text += std::to_string(by_entry_row) + " activations were entered by a jump, with the frame of the row there\n";
  if (!failure.empty()) text += "failed: " + failure + "\n";
  return text + mismatches;
}

SteppingReport check_by_stepping(std::span<const AddrRange> code, const std::function<int()>& run,
                                 std::uint64_t max_steps) {
  SteppingReport out;
  std::vector<stepping::SteppedCode> judged;
  for (const AddrRange& range : code) {
    if (range.size() == 0) {
      out.failure = "an empty range: nothing is registered there";
      return out;
    }
    judged.push_back({name_of(range), range});
  }
  if (judged.empty()) {
    out.failure = "no code";
    return out;
  }
  const stepping::SingleStepJudge judge{"registered", {&dyn_row_source()}};
  stepping::SingleStepOptions options;
  options.max_steps = max_steps;
  try {
    report_run(stepping::single_step(judged, run, std::span(&judge, 1), options), code, out);
  } catch (const std::exception& error) {
    out.failure = error.what();
  }
  return out;
}

SteppingReport check_by_stepping(const Registration& procedure, const std::function<int()>& run,
                                 std::uint64_t max_steps) {
  const AddrRange range = procedure.range();
  return check_by_stepping(std::span(&range, 1), run, max_steps);
}

}  // namespace jitunwind

// The check in the C interface; <jitunwind/c_testing.h>.

ju_status ju_check_by_stepping(const ju_range* code, size_t count, int (*run)(void* data), void* data, char* into,
                               size_t room, size_t* not_run) {
  if ((code == nullptr && count != 0) || run == nullptr || (into == nullptr && room != 0)) return JU_NULL_POINTER;
  try {
    std::vector<jitunwind::AddrRange> ranges;
    for (size_t i = 0; i < count; ++i) ranges.push_back({code[i].begin, code[i].end});
    const jitunwind::SteppingReport report = jitunwind::check_by_stepping(ranges, [=] { return run(data); });
    if (not_run != nullptr) *not_run = report.not_run.size();
    const std::string text = report.text();
    if (room != 0) into[text.copy(into, room - 1)] = '\0';
    if (report.wrong != 0) return JU_BAD_FRAME;
    return report ? JU_OK : JU_INVALID_ARGUMENT;
  } catch (const std::bad_alloc&) {
    return JU_OUT_OF_MEMORY;
  }
}

namespace jitunwind::stepping {
namespace {

const ZydisDecoder& decoder() {
  static const ZydisDecoder instance = [] {
    ZydisDecoder d;
    ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return d;
  }();
  return instance;
}

MachineInstruction::Flow flow_of(ZydisInstructionCategory category) {
  switch (category) {
    case ZYDIS_CATEGORY_CALL:
      return MachineInstruction::Flow::call;
    case ZYDIS_CATEGORY_RET:
      return MachineInstruction::Flow::ret;
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
      return MachineInstruction::Flow::jump;
    default:
      return MachineInstruction::Flow::next;
  }
}

}  // namespace

std::optional<MachineInstruction> decode_instruction(std::span<const std::byte> bytes) {
  ZydisDecodedInstruction decoded;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder(), nullptr, bytes.data(), bytes.size(), &decoded)))
    return std::nullopt;
  return MachineInstruction{decoded.length, flow_of(decoded.meta.category)};
}

std::string instruction_text(std::span<const std::byte> bytes, Addr at) {
  ZydisDisassembledInstruction decoded;
  const bool known =
      ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, at, bytes.data(), bytes.size(), &decoded));
  std::string text;
  for (const std::byte b : bytes.first(known ? decoded.info.length : bytes.size())) {
    std::array<char, 4> hex;
    std::snprintf(hex.data(), hex.size(), "%02x ", std::to_integer<unsigned>(b));
    text += hex.data();
  }
  return text + " " + (known ? decoded.text : "(not an instruction)");
}

std::vector<Addr> instruction_starts(const void* code, std::size_t size) {
  std::vector<Addr> starts;
  const std::span bytes(static_cast<const std::byte*>(code), size);
  for (std::size_t at = 0; at < size;) {
    const auto instruction = decode_instruction(bytes.subspan(at));
    if (!instruction) break;
    starts.push_back(reinterpret_cast<std::uintptr_t>(code) + at);
    at += instruction->length;
  }
  return starts;
}

}  // namespace jitunwind::stepping
