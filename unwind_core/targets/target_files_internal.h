// The files that a target's mappings name, as far as this process can open them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "jitunwind/unwind_core/image/copied_parts_p.h"
#include "jitunwind/unwind_core/image/module_files_internal.h"
#include "jitunwind/unwind_core/targets/mapped_modules.h"
#include "jitunwind/unwind_core/targets/mappings.h"

namespace jitunwind {

class ProcessFolder;

/// A file of a target as this process names it. `root` is that of the TargetFiles.
struct HostPath {
  std::string path{};
  const char* root = "";
  bool empty() const noexcept { return path.empty(); }
  operator FilePath() const noexcept { return {path.c_str(), root}; }
};

/// The places of files. Immutable while it is used; used by one thread at a time.
class TargetFiles {
 public:
  /// `root` is a folder with a copy of another machine's files, at the target's paths; "": those of this process.
  explicit TargetFiles(std::string root = {}) : root_(std::move(root)) {}
  /// The files of another process, or of its mappings. `process` must outlive this object. The place of its root folder
  /// is read when it is first needed.
  static TargetFiles of_process(const ProcessFolder& process);
  /// No file of the target can be opened: all data must come from its memory.
  static TargetFiles none();

  /// Takes `host_path` for the file at `target_path`, whatever other file has that name.
  void replace(std::string target_path, std::string host_path);

  /// Empty: it cannot be opened. A deleted file has no name; the file that has it now is another one.
  HostPath host_path(const Mapping& mapping) const;
  /// The root of paths of the target that are not mapped; "": this process's own.
  const std::string& root() const;

  /// `mapping`: that of the object's first page. Errors are those of ModuleFiles::open() for the last place in which
  /// the file may be. The first file counts that fits the loaded object. Debug files are searched for below the root,
  /// then in this machine's places.
  Result<Mapped<ModuleFiles>> open(const Mapping& mapping, const ElfImage* loaded) const;

 private:
  HostPath named_path(const Mapping& mapping) const;
  std::string mapped_path(const Mapping& mapping) const;
  bool is_program(const Mapping& mapping) const;
  Result<Mapped<ModuleFiles>> open_at(const FilePath& file, const ElfImage* loaded, std::uint64_t begin) const;

  mutable std::string root_;
  mutable std::string shown_root_;                  // the kernel's prefix of paths below the root; "": none
  mutable const ProcessFolder* unasked_ = nullptr;  // not null: the process whose two values above are not read yet
  std::string process_;                             // the folder of a live process; "": there is none
  std::map<std::string, std::string> replaced_;
  bool has_files_ = true;
};

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
