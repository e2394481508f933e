// The files that a target's mappings name, as this process can open them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "jitunwind/unwind_core/image/module_files_internal.h"
#include "jitunwind/unwind_core/targets/mappings.h"

namespace jitunwind {

class ProcessFolder;

/// Where files are. Immutable while anything uses it; used by one thread at a time.
class TargetFiles {
 public:
  /// `root` goes in front of the target's paths: a folder with a copy of another machine's files, "" for this process's
  /// own.
  explicit TargetFiles(std::string root = {}) : root_(std::move(root)) {}
  /// Those of another process, or its mappings' own. `process` must outlive this. Where its root folder is is asked
  /// when it is first needed.
  static TargetFiles of_process(const ProcessFolder& process);
  /// No file of the target can be opened: everything is to be had from its memory.
  static TargetFiles none();

  /// The file at `target_path` is here, whatever else has that name.
  void replace(std::string target_path, std::string host_path);

  /// "": it cannot be opened. A deleted file has no name; the one which has it now is another.
  std::string host_path(const Mapping& mapping) const;
  /// Goes in front of paths of the target that nothing is mapped of.
  const std::string& root() const;

  /// `mapping`: of the object's first page. Error as of ModuleFiles::open(), of the last place where the file may be:
  /// the first counts that has what is loaded. Debug files are looked for below the root, then where this machine has
  /// them.
  Result<Mapped<ModuleFiles>> open(const Mapping& mapping, const ElfImage* loaded) const;

 private:
  std::string named_path(const Mapping& mapping) const;
  std::string mapped_path(const Mapping& mapping) const;
  bool is_program(const Mapping& mapping) const;
  Result<Mapped<ModuleFiles>> open_at(const std::string& path, const ElfImage* loaded, std::uint64_t begin) const;

  mutable std::string root_;
  mutable std::string shown_root_;  // what the kernel writes in front of paths below the root; "": nothing
  mutable const ProcessFolder* unasked_ = nullptr;  // not null: it has not told these two yet
  std::string process_;                             // the folder of a live process; "": there is none
  std::map<std::string, std::string> replaced_;
  bool has_files_ = true;
};

}  // namespace jitunwind
