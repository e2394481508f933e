// A core file as a target.
#pragma once

#include "jitunwind/sdk/targets/target_impl_p.h"
#include "jitunwind/unwind_core/targets/core_file_internal.h"
#include "jitunwind/unwind_core/targets/file_backed_internal.h"

namespace jitunwind {

class Target::Core final : public Target::Impl {
 public:
  static Result<Target, TargetError> make(const std::string& path, const TargetFolders& folders);
  Core(std::unique_ptr<CoreFile> core, const Arch& arch, TargetFiles files);

  pid_t process() const noexcept override { return core_->process(); }
  Result<RegisterFile> registers(const TargetThread& thread) const noexcept override;

 private:
  std::unique_ptr<CoreFile> core_;
  TargetFiles files_;
  FileBackedMemory memory_;
};

}  // namespace jitunwind
