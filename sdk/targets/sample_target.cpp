#include "jitunwind/sdk/targets/sample_target_p.h"

#include <algorithm>

#include "jitunwind/sdk/targets/attach_error_p.h"

namespace jitunwind {
namespace {

AddrRange range_of(const Sample& sample) noexcept {
  const Addr begin = sample.stack_address;
  return {begin, begin + std::min<Addr>(sample.stack.size(), ~begin)};
}

}  // namespace

Result<Target, TargetError> Target::OfSample::make(Sample sample, const TargetFolders& folders) {
  const Arch* const arch = sample.arch ? sample.arch : host_arch();
  if (!arch) return no_table("The sample", 0, true);
  return Target(std::make_unique<OfSample>(std::move(sample), *arch, TargetFiles(folders.root)));
}

Target::OfSample::OfSample(Sample sample, const Arch& arch, TargetFiles files)
    : process_(sample.process),
      registers_(sample.registers),
      mappings_(std::move(sample.mappings)),
      files_(std::move(files)),
      stack_range_(range_of(sample)),
      stack_({{sample.stack_address, sample.stack}}) {
  space_.emplace(arch, memory_, mappings_, files_);
  threads_.push_back({sample.thread, "", 0, true});
}

std::optional<TargetError> Target::OfSample::take_sample(Sample sample) {
  process_ = sample.process;
  registers_ = sample.registers;
  threads_.front().id = sample.thread;
  const AddrRange before = stack_range_;
  stack_range_ = range_of(sample);
  stack_ = BytesMemory({{sample.stack_address, sample.stack}});
  Mappings mappings(std::move(sample.mappings));
  if (mappings == mappings_) {
    // A sample has none of the writable memory that lists are in.
    space_->forget_memory(before);
    space_->forget_memory(stack_range_);
    return std::nullopt;
  }
  mappings_ = mappings;
  space_->renew(std::move(mappings));
  return std::nullopt;
}

}  // namespace jitunwind
