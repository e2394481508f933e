#include "jitunwind/sdk/jitstack/perf/perf_processes_p.h"

#include <algorithm>

namespace jitunwind::jitstack {

void PerfProcesses::take(const PerfEvent& event) {
  if (const auto* const mapped = std::get_if<PerfMapped>(&event)) {
    // The process -1 is the kernel.
    if (mapped->process >= 0) map(all_[mapped->process], mapped->mapping);
  } else if (const auto* const named = std::get_if<PerfNamed>(&event)) {
    Process& process = all_[named->process];
    if (named->is_new_program) forget_mappings(process);
    process.names[named->thread] = named->name;
  } else if (const auto* const forked = std::get_if<PerfForked>(&event)) {
    fork(*forked);
  } else if (const auto* const ended = std::get_if<PerfEnded>(&event)) {
    const auto process = all_.find(ended->process);
    if (process == all_.end()) return;
    process->second.names.erase(ended->thread);
    if (ended->thread != ended->process) return;
    forget_mappings(process->second);
    all_.erase(process);
  }
}

/// A mapping replaces what was mapped in its range, as mmap(2) with MAP_FIXED does.
void PerfProcesses::map(Process& process, const Mapping& mapping) {
  if (mapping.range.begin >= mapping.range.end) return;
  unmap(process, mapping.range);
  if (mappings_ >= k_most_mappings) {
    has_left_out_ = true;
    return;
  }
  mappings_ += process.mapped.insert_or_assign(mapping.range.begin, mapping).second;
}

void PerfProcesses::unmap(Process& process, AddrRange range) {
  process.is_mapped_as_before = false;
  auto at = process.mapped.lower_bound(range.begin);
  if (at != process.mapped.begin() && std::prev(at)->second.range.end > range.begin) --at;
  while (at != process.mapped.end() && at->first < range.end) {
    Mapping old = std::move(at->second);
    at = process.mapped.erase(at);
    --mappings_;
    if (old.range.begin < range.begin) {
      Mapping before = old;
      before.range.end = range.begin;
      mappings_ += process.mapped.insert_or_assign(before.range.begin, before).second;
    }
    if (old.range.end > range.end) {
      old.offset += range.end - old.range.begin;
      old.range.begin = range.end;
      mappings_ += process.mapped.insert_or_assign(old.range.begin, old).second;
    }
  }
}

void PerfProcesses::forget_mappings(Process& process) {
  mappings_ -= process.mapped.size();
  process.mapped.clear();
  process.target.reset();
  process.is_mapped_as_before = false;
}

void PerfProcesses::fork(const PerfForked& forked) {
  const auto parent = all_.find(forked.parent);
  if (parent == all_.end()) return;
  const auto name = parent->second.names.find(forked.parent_thread);
  std::string inherited = name == parent->second.names.end() ? "" : name->second;
  if (forked.process == forked.parent) {
    parent->second.names[forked.thread] = std::move(inherited);
    return;
  }
  Process& child = all_[forked.process];
  forget_mappings(child);
  child.names[forked.thread] = std::move(inherited);
  if (parent->second.mapped.size() > k_most_mappings - mappings_) {
    has_left_out_ = true;
    return;
  }
  child.mapped = parent->second.mapped;
  mappings_ += child.mapped.size();
}

Result<const Target*, TargetError> PerfProcesses::target_of(const PerfSample& taken) {
  Process& process = all_[taken.process];
  Sample sample{.arch = &arch_,
                .registers = taken.registers,
                .stack = taken.stack,
                .process = taken.process,
                .thread = taken.thread};
  sample.stack_address = taken.registers.get(arch_.column(arch_.sp)).value_or(0);
  if (process.mapped.empty()) process.target.reset();  // without mappings renew() would keep the earlier ones
  if (!process.target || !process.is_mapped_as_before) {
    sample.mappings.reserve(process.mapped.size());
    for (const auto& [begin, mapping] : process.mapped) sample.mappings.push_back(mapping);
  }
  process.is_mapped_as_before = true;
  if (process.target) {
    if (auto renewed = process.target->renew(std::move(sample)); !renewed) return TargetError(renewed.error());
  } else {
    auto target = Target::from_sample(std::move(sample), folders_);
    if (!target) return TargetError(target.error());
    process.target.emplace(std::move(*target));
  }
  return &*process.target;
}

std::string PerfProcesses::name_of(const PerfSample& sample) const {
  const auto process = all_.find(sample.process);
  if (process == all_.end()) return "";
  const auto name = process->second.names.find(sample.thread);
  return name == process->second.names.end() ? "" : name->second;
}

}  // namespace jitunwind::jitstack
