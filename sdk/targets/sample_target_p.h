// A sample of a thread as a target.
#pragma once

#include "jitunwind/sdk/targets/target_impl_p.h"
#include "jitunwind/unwind_core/memory/bytes.h"
#include "jitunwind/unwind_core/targets/file_backed_internal.h"

namespace jitunwind {

class Target::OfSample final : public Target::Impl {
 public:
  static Result<Target, TargetError> make(Sample sample, const TargetFolders& folders);
  OfSample(Sample sample, const Arch& arch, const TargetFolders& folders);

  pid_t process() const noexcept override { return process_; }
  Result<RegisterFile> registers(const TargetThread&) const noexcept override { return registers_; }
  std::optional<TargetError> take_sample(Sample sample) override;

 private:
  void take_kernels_object();
  BytesMemory memory_of(const Sample& sample) const;

  pid_t process_;
  RegisterFile registers_;
  Mappings mappings_;
  TargetFiles files_;
  AddrRange stack_range_;
  std::string build_ids_;
  Mapping kernels_mapping_{};   // what the bytes are of
  std::string kernels_object_;  // as a file; "": nobody has it
  BytesMemory taken_;
  FileBackedMemory memory_;
};

}  // namespace jitunwind
