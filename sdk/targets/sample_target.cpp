#include "jitunwind/sdk/targets/attach_error_p.h"
#include "jitunwind/sdk/targets/sample_target_p.h"

namespace jitunwind {

Result<Target, TargetError> Target::OfSample::make(Sample sample, const TargetFolders& folders) {
  const Arch* const arch = sample.arch ? sample.arch : host_arch();
  if (!arch) return other_architecture("The sample", 0, true);
  return Target(std::make_unique<OfSample>(std::move(sample), *arch, TargetFiles(folders.root)));
}

Target::OfSample::OfSample(Sample sample, const Arch& arch, TargetFiles files)
    : process_(sample.process),
      registers_(sample.registers),
      mappings_(std::move(sample.mappings)),
      files_(std::move(files)),
      stack_({{sample.stack_address, sample.stack}}) {
  space_.emplace(arch, memory_, mappings_, files_);
  threads_.push_back({sample.thread, "", 0, true});
}

}  // namespace jitunwind
