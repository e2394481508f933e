#include "jitunwind/sdk/jitstack/stacks_p.h"

#include <signal.h>
#include <string.h>

#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind::jitstack {
namespace {

/// Code outside modules that has call frame information has it from its JIT.
bool is_jit(const Frame& frame, bool is_of_module) {
  const bool is_told = frame.origin() == RowOrigin::eh_frame || frame.origin() == RowOrigin::debug_frame;
  return is_registered(frame.origin()) || (is_told && !is_of_module);
}

SeenFrame see(const Target& target, const Frame& frame, Rows rows, Detail detail) {
  SeenFrame seen{.number = frame.depth(), .pc = frame.pc(), .sp = frame.sp(), .origin = frame.origin()};
  const Addr at = frame.address().lookup();
  if (const Mapping* const mapping = target.mappings().find(at)) seen.module = mapping->path;
  Module module;
  const bool is_of_module = target.space().modules.find(at, module);
  if (is_of_module && seen.module.empty())
    seen.module = module.path;  // the module's code was copied to anonymous memory
  seen.is_signal_frame = frame.is_signal_frame();
  seen.is_jit = is_jit(frame, is_of_module);
  if (detail == Detail::outline) return seen;
  seen.name = frame.name();
  if (!seen.name.empty()) seen.offset = frame.offset();
  if (const auto source = target.source_line(frame)) seen.source = source->file + ":" + std::to_string(source->line);
  FrameRow row;
  if (rows == Rows::yes && frame.row(row)) seen.row = to_text(row, target.arch());
  return seen;
}

}  // namespace

SeenStack see(const Target& target, const TargetThread& thread, Rows rows, Guesses guesses, std::size_t most_kept) {
  SeenStack stack{.thread = thread, .signal = signal_name(thread.signal, target.arch())};
  // A walk without registers would have one frame, which would not be a real one.
  if (const auto registers = target.registers(thread); !registers) {
    stack.stop = StopReason::no_info;
    stack.why = "no registers: " + registers.error().text();
    return stack;
  }
  Walk walk = target.walk(thread, guesses);
  bool is_deep = false;
  for (const Frame& frame : walk) {
    if (stack.frames.size() < most_kept)
      stack.frames.push_back(see(target, frame, rows, Detail::all));
    else
      is_deep = true;
  }
  stack.stop = walk.stop_reason();
  stack.why = walk.why();
  if (!is_deep) return stack;
  stack.frames = {};
  stack.walk_again = [&target, thread, rows, guesses](Detail detail, const FrameVisitor& visit) {
    for (const Frame& frame : target.walk(thread, guesses)) visit(see(target, frame, rows, detail));
  };
  return stack;
}

std::string signal_name(int signal, const Arch& arch) {
  if (signal == 0) return "";
  const auto number = static_cast<std::size_t>(signal);
  const char* name = ::sigabbrev_np(signal);
  if (number <= arch.signals.size()) name = arch.signals[number - 1];
  if (signal >= SIGRTMIN && signal <= SIGRTMAX) return "SIGRTMIN+" + std::to_string(signal - SIGRTMIN);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string short_module(const SeenFrame& frame) {
  if (frame.is_jit) return "JIT";
  if (frame.module.empty()) return "?";
  const std::size_t slash = frame.module.rfind('/');
  return frame.module.front() == '[' || slash == std::string::npos ? frame.module : frame.module.substr(slash + 1);
}

}  // namespace jitunwind::jitstack
