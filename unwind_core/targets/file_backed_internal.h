// Memory of a target that is not complete: a core file or a sample leaves out what a file has.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/targets/mapped_modules.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"

namespace jitunwind {

/// Another memory, completed by files. If the memory lacks bytes and the mapping is not writable, they come from the
/// mapped file, provided that may_be_loaded_from() accepts it for the object in that memory. Used by one thread at a
/// time. All arguments except `arch` must outlive this object.
class FileBackedMemory final : public Memory {
 public:
  FileBackedMemory(const Memory& memory, const Arch& arch, const Mappings& mappings, const TargetFiles& files) noexcept
      : memory_(memory), arch_(arch), mappings_(mappings), files_(files) {}
  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override;

  /// After the mappings have changed.
  void renew() noexcept { objects_.renew(); }

 private:
  static constexpr std::size_t k_most_open = 64;

  /// Null: there is no file, or it is another one.
  FileParts* file_of(const Mapping& mapping) const;

  const Memory& memory_;
  Arch arch_;
  const Mappings& mappings_;
  const TargetFiles& files_;
  MappedModules objects_{memory_, arch_, mappings_, files_};  // those that the memory has by itself
  /// A copy of all that a mapping says of its file, and the offset at which the object begins in it.
  template <class... Facts>
  static std::tuple<std::uint64_t, Facts...> key_of(const std::tuple<const Facts&...>& file, std::uint64_t begin) {
    return std::tuple_cat(std::tuple(begin), file);
  }
  using FileKey = decltype(key_of(Mapping().file(), 0));
  mutable std::map<FileKey, Mapped<FileParts>> open_;  // null: there is no such file of the target
};

/// Whether the object in memory can have been loaded from `file`; a null `object` is unknown. `build_id` comes from
/// another source, "": there is none. If nothing can be compared, the file is accepted.
bool may_be_loaded_from(FileParts& file, MappedObject* object, std::string_view build_id) noexcept;

}  // namespace jitunwind
