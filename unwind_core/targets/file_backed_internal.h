// Memory of a target that is not all there: what a core file or a sample leaves out because a file has it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/targets/mapped_modules.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"

namespace jitunwind {

/// Another memory; where that has nothing, and the mapping cannot be written to, the file that is mapped there, if
/// may_be_loaded_from() of what is in the other memory. Used by one thread at a time. All but `arch` must outlive this.
class FileBackedMemory final : public Memory {
 public:
  FileBackedMemory(const Memory& memory, const Arch& arch, const Mappings& mappings, const TargetFiles& files) noexcept
      : memory_(memory), arch_(arch), mappings_(mappings), files_(files) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;

  /// After the mappings have changed.
  void renew() noexcept { objects_.renew(); }

 private:
  static constexpr std::size_t k_most_open = 64;

  /// Null: there is none, or it is another.
  FileParts* file_of(const Mapping& mapping) const;

  const Memory& memory_;
  Arch arch_;
  const Mappings& mappings_;
  const TargetFiles& files_;
  MappedModules objects_{memory_, arch_, mappings_, files_};  // of what the memory has by itself
  // By the target's path, and where in that file the object begins; null: there is none that is the target's.
  mutable std::map<std::pair<std::string, std::uint64_t>, Mapped<FileParts>> open_;
};

/// Whether `file` can be what an object in memory was loaded from, null: nobody knows of one. `build_id` is what
/// somebody else says of it, "" nothing. Where nothing can be told it is believed.
bool may_be_loaded_from(FileParts& file, MappedObject* object, std::string_view build_id) noexcept;

}  // namespace jitunwind
