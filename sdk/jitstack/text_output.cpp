// Writes stacks for people, a table for each thread; profiles; and checks for people.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "jitunwind/sdk/jitstack/check/check_output_p.h"
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

std::string folded_name(const std::string& name) {
  std::string text = escaped(name);
  std::ranges::replace(text, ';', ':');
  return text;
}

std::string folded_name(const SeenFrame& frame) {
  const std::string name = folded_name(frame.name.empty() ? "[" + short_module(frame) + "]" : frame.name);
  return frame.is_jit ? name + "_[j]" : name;
}

/// Writes a new file, which gets the name when it is whole. A link that somebody else has put there, to a file of this
/// user's, is therefore not followed.
bool write_file(const std::string& path, const std::string& text) {
  const std::string unfinished = path + ".part";
  const bool is_free = ::unlink(unfinished.c_str()) == 0 || errno == ENOENT;
  FILE* const file = is_free ? std::fopen(unfinished.c_str(), "wx") : nullptr;
  const bool is_written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = file && std::fclose(file) == 0;
  if (is_written && is_closed && std::rename(unfinished.c_str(), path.c_str()) == 0) return true;
  std::fprintf(stderr, "jitstack: cannot write '%s': %s\n", escaped(path).c_str(), std::strerror(errno));
  if (file) ::unlink(unfinished.c_str());
  return false;
}

}  // namespace

std::unique_ptr<Output> text_output(const Options& options, const Colours& colours) {
  return std::make_unique<TextOutput>(options, colours);
}

void Profile::add(const SeenStack& stack) {
  ++stacks_;
  std::string line = folded_name(stack.thread.name);
  if (!stack.is_whole()) {
    ++cut_short_;
    line += ";[cut short]";
  }
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend(); ++frame) line += ";" + folded_name(*frame);
  ++counts_[line];
}

std::string Profile::folded() const {
  std::string text;
  for (const auto& [line, count] : counts_) text += line + " " + std::to_string(count) + "\n";
  return text;
}

ExitStatus Profile::write(const std::string& name, const std::string& said) const {
  if (!write_file(name + ".folded", folded())) return ExitStatus::not_written;
  std::printf("%s\n%s.folded\n", said.c_str(), escaped(name).c_str());
  if (std::fflush(stdout) != 0) return ExitStatus::not_written;
  return cut_short_ == 0 ? ExitStatus::whole : ExitStatus::cut_short;
}

namespace {

class TextCheckOutput final : public CheckOutput {
 public:
  TextCheckOutput(const Colours& colours, bool shows_all) : colours_(colours), shows_all_(shows_all) {}

  void begin_target(const CheckedTarget& target, const Arch& arch) override {
    arch_ = &arch;
    end_target();
    text_ += is_first_ ? "" : "\n";
    is_first_ = false;
    has_nothing_ = true;
    text_ += !target.file.empty()   ? "file " + escaped(target.file)
             : !target.core.empty() ? "core file " + escaped(target.core)
                                    : "process " + std::to_string(target.process);
    text_ += std::string(", ") + arch.name + "\n";
    write();
  }

  void begin_module(const std::string& path) override {
    has_nothing_ = false;
    text_ += std::string("\n") + colours_.strong + (path.empty() ? "JIT" : escaped(path)) + colours_.off + "\n";
    write();
  }

  void procedure(const SeenProcedure& procedure) override {
    constexpr std::size_t k_most = 3;
    text_ += "  " + hex(procedure.code.begin) + "  " +
             (procedure.verdict == Verdict::disagrees ? std::string(colours_.bad) + "disagrees" : "undecided") +
             colours_.off + "  " + (procedure.name.empty() ? "?" : escaped(procedure.name)) + "\n";
    // Rows that one instruction has made wrong in the same way are one mistake.
    std::set<std::pair<RegNum, std::optional<Addr>>> mistakes;
    std::size_t left = 0;
    for (const SeenFinding& seen : procedure.findings) {
      const bool is_new = mistakes.size() < k_most && mistakes.emplace(seen.finding.reg, seen.finding.cause).second;
      if (is_new || shows_all_)
        show(seen);
      else
        ++left;
    }
    if (left != 0) text_ += "    and " + std::to_string(left) + " more, --why shows all\n";
    if (procedure.has_more_findings) text_ += "    and more\n";
    write();
  }

  void end_module(const Tally& tally) override {
    text_ += "  " + std::to_string(tally.all()) + (tally.all() == 1 ? " description: " : " descriptions: ") +
             std::to_string(tally.agree) + " agree, " + std::to_string(tally.disagree) + " disagree, " +
             std::to_string(tally.undecided) + " undecided\n";
    char line[160];
    for_each_reason(tally, [&](const char* reason, std::uint64_t count) {
      std::snprintf(line, sizeof line, "  %8" PRIu64 " undecided: %s\n", count, reason);
      text_ += line;
    });
    std::snprintf(line, sizeof line, "  %8" PRIu64 " places where a row was taken at its word\n", tally.assumed);
    if (tally.assumed != 0) text_ += line;
    write();
  }

  // The caller writes errors to stderr.
  void failed(const CheckedTarget&, const TargetError&) override {}
  bool end() override {
    end_target();
    write();
    return std::fflush(stdout) == 0 && is_written_;
  }

 private:
  void end_target() {
    if (std::exchange(has_nothing_, false)) text_ += "  no call frame information\n";
  }
  void show(const SeenFinding& seen) {
    text_ += "    " + text(seen.finding, *arch_);
    if (!seen.instruction.empty()) text_ += std::string(colours_.dim) + "  " + seen.instruction + colours_.off;
    text_ += "\n";
    if (!seen.run) return;
    switch (seen.run->result) {
      case ForcedRun::Result::wrong:
        text_ += "      run: the row is wrong: " + seen.run->why + "\n";
        break;
      case ForcedRun::Result::right:
        text_ += "      run: the row is right\n";
        break;
      case ForcedRun::Result::not_run:
        text_ += "      not run: " + seen.run->why + "\n";
    }
  }
  void write() {
    is_written_ = std::fwrite(text_.data(), 1, text_.size(), stdout) == text_.size() && is_written_;
    text_.clear();
  }

  Colours colours_;
  bool shows_all_;
  const Arch* arch_ = nullptr;
  std::string text_;
  bool is_first_ = true;
  bool has_nothing_ = false;  // of the last target
  bool is_written_ = true;
};

}  // namespace

std::unique_ptr<CheckOutput> check_text_output(const Colours& colours, bool shows_all) {
  return std::make_unique<TextCheckOutput>(colours, shows_all);
}

}  // namespace jitunwind::jitstack
