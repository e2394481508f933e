// Memory of a target that is not all there: what a core file or a sample leaves out because a file has it.
#pragma once

#include <map>
#include <string>

#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/memory/memory.h"
#include "jitunwind/unwind_core/targets/mappings.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"

namespace jitunwind {

/// Another memory; where that has nothing, and the mapping cannot be written to, the file that is mapped there. A file
/// that has another build id than the object in memory, or than the mapping says, is not looked at; where neither
/// tells, it is believed. Used by one thread at a time. All must outlive this.
class FileBackedMemory final : public Memory {
 public:
  FileBackedMemory(const Memory& memory, const Mappings& mappings, const TargetFiles& files) noexcept
      : memory_(memory), mappings_(mappings), files_(files) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;

 private:
  static constexpr std::size_t k_most_open = 64;

  /// Null: there is none, or it is another.
  FileParts* file_of(const Mapping& mapping) const;
  bool is_of_target(const Mapping& mapping, FileParts& file) const;
  Mapping first_of(const Mapping& mapping) const;

  const Memory& memory_;
  const Mappings& mappings_;
  const TargetFiles& files_;
  mutable std::map<std::string, Mapped<FileParts>> open_;  // by the target's path; null: none that is the target's
};

/// Whether `file` can be what an object in memory was loaded from. `head`: its first page in memory, or what is there
/// of it; `build_id` is what somebody else says of it, "" nothing. Where nothing can be told it is believed.
bool may_be_loaded_from(FileParts& file, std::span<const std::byte> head, std::string_view build_id) noexcept;

}  // namespace jitunwind
