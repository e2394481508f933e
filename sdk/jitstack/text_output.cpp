// Writes stacks for people: a table for each thread.
#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "jitunwind/sdk/jitstack/output_p.h"
#include "jitunwind/sdk/jitstack/terminal_p.h"

namespace jitunwind::jitstack {
namespace {

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string told_origin(const SeenFrame& frame) {
  std::string text = origin_name(frame.origin);
  if (is_guess(frame.origin)) text += " guess";
  if (frame.is_signal_frame && frame.origin != RowOrigin::signal_frame) text += " signal";
  return text;
}

class TextOutput final : public Output {
 public:
  TextOutput(const Options& options, const Colours& colours) : options_(options), colours_(colours) {}

  void begin_target(const std::string& core, pid_t process, std::size_t threads) override {
    text_ += is_first_ ? "" : "\n";
    is_first_ = false;
    if (!core.empty()) text_ += "core file " + escaped(core) + " of ";
    text_ += "process " + std::to_string(process) + ", " + std::to_string(threads) +
             (threads == 1 ? " thread\n" : " threads\n");
    write();
  }

  void begin_samples(const std::string& file, std::size_t samples) override {
    text_ += "file " + escaped(file) + ", " + std::to_string(samples) + (samples == 1 ? " sample\n" : " samples\n");
    write();
  }

  void stack(const SeenStack& stack) override {
    text_ += std::string("\n") + colours_.strong + "thread " + std::to_string(stack.thread.id);
    if (!stack.thread.name.empty()) text_ += " " + escaped(stack.thread.name);
    text_ += colours_.off;
    if (stack.moment) {
      char moment[80];
      std::snprintf(moment, sizeof moment, " of process %d, at %" PRIu64 ".%09" PRIu64 " s", stack.moment->process,
                    stack.moment->time / 1'000'000'000, stack.moment->time % 1'000'000'000);
      text_ += moment;
    }
    if (!stack.signal.empty()) text_ += ", " + stack.signal;
    if (stack.thread.fault_address) text_ += " at " + hex(*stack.thread.fault_address);
    text_ += "\n";
    std::size_t origins = 0, modules = 0;
    stack.for_each(Detail::outline, [&](const SeenFrame& frame) {
      origins = std::max(origins, told_origin(frame).size());
      modules = std::max(modules, std::min<std::size_t>(escaped(short_module(frame)).size(), 28));
    });
    stack.for_each(Detail::all, [&](const SeenFrame& frame) { line(frame, origins, modules); });
    if (options_.why)
      text_ += std::string("  ") + (stack.is_whole() ? "" : colours_.bad) + escaped(stack.why) + colours_.off +
               hint(stack) + "\n";
    else if (!stack.is_whole())
      text_ += std::string("  ") + colours_.bad + "cut short (" + stop_reason_name(stack.stop) + ")" + colours_.off +
               ", --why tells more" + hint(stack) + "\n";
    write();
  }

  // main writes errors to stderr.
  void failed(const std::string&, pid_t, const TargetError&) override {}
  bool end() override { return std::fflush(stdout) == 0 && is_written_; }

 private:
  /// A frame record may lead out of code that is not known, but nothing confirms it.
  const char* hint(const SeenStack& stack) const {
    return stack.stop == StopReason::no_info && !options_.bold ? ", --bold goes on by frame pointers" : "";
  }

  void line(const SeenFrame& frame, std::size_t origins, std::size_t modules) {
    const bool guessed = is_guess(frame.origin);
    text_ += "  " + padded("#" + std::to_string(frame.number), 4) + " " + colours_.dim + hex(frame.pc, 16) +
             colours_.off + "  " + (guessed ? colours_.guess : "") + padded(told_origin(frame), origins) +
             (guessed ? colours_.off : "") + "  " + padded(escaped(short_module(frame)), modules) + "  " +
             (frame.is_jit ? colours_.jit : "");
    text_ += frame.name.empty() ? "?" : escaped(frame.name) + "+" + hex(frame.offset);
    if (!frame.source.empty()) text_ += " at " + escaped(frame.source);
    text_ += std::string(frame.is_jit ? colours_.off : "") + "\n";
    if (options_.rows)
      text_ += std::string("       ") + colours_.dim + (frame.row.empty() ? "no row" : frame.row) + colours_.off + "\n";
    write();
  }

  void write() {
    is_written_ = std::fwrite(text_.data(), 1, text_.size(), stdout) == text_.size() && is_written_;
    text_.clear();
  }

  const Options& options_;
  Colours colours_;
  std::string text_;
  bool is_first_ = true;
  bool is_written_ = true;
};

}  // namespace

std::unique_ptr<Output> text_output(const Options& options, const Colours& colours) {
  return std::make_unique<TextOutput>(options, colours);
}

}  // namespace jitunwind::jitstack
