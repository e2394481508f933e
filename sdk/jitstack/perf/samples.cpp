
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "jitunwind/sdk/jitstack/options_p.h"
#include "jitunwind/sdk/jitstack/output_p.h"
#include "jitunwind/sdk/jitstack/perf/perf_data_p.h"
#include "jitunwind/sdk/jitstack/terminal_p.h"

namespace jitunwind::jitstack {
namespace {

Result<std::vector<std::byte>, TargetError> contents_of(const std::string& path) {
  const auto failed = [&] {
    return TargetError{TargetError::Reason::no_such_file,
                       "'" + path + "' cannot be read: " + std::strerror(errno) + ".", ""};
  };
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
  if (!file) return failed();
  std::vector<std::byte> bytes;
  constexpr std::size_t k_piece = std::size_t{1} << 20;
  for (std::size_t got = k_piece; got == k_piece;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + k_piece);
    got = std::fread(bytes.data() + before, 1, k_piece, file.get());
    bytes.resize(before + got);
  }
  if (std::ferror(file.get()) != 0) return failed();
  return bytes;
}

/// Finds the folder with perf's copies of recorded files: perf-buildid-cache(1).
std::string build_id_cache() {
  if (const char* const folder = std::getenv("PERF_BUILDID_DIR")) return folder;
  const char* const home = std::getenv("HOME");
  return home ? std::string(home) + "/.debug" : "";
}

class Samples {
 public:
  explicit Samples(const Options& options)
      : options_(options), output_(options.json ? json_output() : text_output(options, Colours(1))) {}

  ExitStatus show() {
    const auto bytes = contents_of(options_.perf);
    if (!bytes) return failed(bytes.error());
    const auto data = PerfData::parse(*bytes, options_.perf);
    if (!data) return failed(data.error());
    if (options_.output.empty()) output_->begin_samples(options_.perf, data->samples());
    walk_all(*data);
    progress_.clear();
    if (data->end_reason()) progress_.say(std::string(data->end_reason()) + "; what comes behind is not shown");
    if (broken_ != 0) progress_.say(std::to_string(broken_) + " records are broken, the first at " + first_broken_);
    if (options_.output.empty()) return end();
    if (profile_.stacks() == 0) return progress_.say("No sample is of user code."), ExitStatus::no_target;
    const auto cut_short = std::to_string(profile_.cut_short());
    return profile_.write(options_.output,
                          std::to_string(profile_.stacks()) + " samples, " + cut_short + " stacks cut short");
  }

 private:
  void walk_all(const PerfData& data) {
    PerfProcesses processes(data.arch(), {.root = options_.root, .build_ids = build_id_cache()});
    for (std::size_t i = 0; i < data.size(); ++i) {
      progress_.show("record " + std::to_string(i) + " of " + std::to_string(data.size()));
      const auto event = data.event(i);
      if (!event) {
        if (broken_++ == 0) first_broken_ = event.error().text();
        continue;
      }
      if (const auto* const sample = std::get_if<PerfSample>(&*event))
        walk(processes, *sample);
      else
        processes.take(*event);
    }
    if (processes.has_left_out()) progress_.say("the file has too many mappings; some are left out");
  }

  void walk(PerfProcesses& processes, const PerfSample& sample) {
    const bool is_asked_for = options_.threads.empty() || std::ranges::count(options_.threads, sample.thread) != 0;
    if (!sample.has_registers || !is_asked_for) return;
    const auto target = processes.target_of(sample);
    if (!target) return;
    const Rows rows = options_.rows ? Rows::yes : Rows::no;
    // A profile takes whole stacks, an output those of any depth.
    const std::size_t most_kept = options_.output.empty() ? k_most_kept : ~std::size_t{0};
    SeenStack stack = see(**target, (*target)->threads().front(), rows, options_.guesses(), most_kept);
    stack.thread.name = processes.name_of(sample);
    stack.moment = {sample.process, sample.time};
    if (!stack.is_whole()) status_ = std::max(status_, ExitStatus::cut_short);
    if (!options_.output.empty()) return profile_.add(stack);
    progress_.clear();
    output_->stack(stack);
  }

  ExitStatus failed(const TargetError& error) {
    progress_.say(error.text());
    status_ = ExitStatus::no_target;
    if (!options_.output.empty()) return status_;
    output_->failed("", 0, error);
    return end();
  }

  ExitStatus end() {
    if (output_->end()) return status_;
    std::perror("jitstack: cannot write");
    return ExitStatus::not_written;
  }

  const Options& options_;
  std::unique_ptr<Output> output_;
  Profile profile_;
  Progress progress_;
  std::size_t broken_ = 0;
  std::string first_broken_;
  ExitStatus status_ = ExitStatus::whole;
};

}  // namespace

ExitStatus show_samples(const Options& options) { return Samples(options).show(); }

}  // namespace jitunwind::jitstack
