#include "jitunwind/unwind_core/targets/target_files_internal.h"

namespace jitunwind {

TargetFiles TargetFiles::none() {
  TargetFiles files;
  files.has_files_ = false;
  return files;
}

void TargetFiles::replace(std::string target_path, std::string host_path) {
  replaced_.insert_or_assign(std::move(target_path), std::move(host_path));
}

std::string TargetFiles::host_path(const Mapping& mapping) const {
  if (const auto replaced = replaced_.find(mapping.path); replaced != replaced_.end()) return replaced->second;
  // A relative path, or one of another mount namespace ("(unreachable)..."), is none that can be opened from here.
  if (!has_files_ || mapping.deleted || mapping.path.empty() || mapping.path.front() != '/') return {};
  std::string path = root_ + mapping.path;
  // To open a device may do something.
  return identify_file(path.c_str()) ? path : std::string();
}

Result<Mapped<ModuleFiles>> TargetFiles::open(const Mapping& mapping, const ElfImage* loaded) const {
  const std::string path = host_path(mapping);
  if (path.empty()) return Error{ErrorCode::io, mapping.range.begin, "file of a mapping"};
  if (root_.empty()) return ModuleFiles::open(path.c_str(), loaded);
  auto files = ModuleFiles::open(path.c_str(), loaded, (root_ + k_debug_root).c_str());
  return !files || (*files)->has_debug_file() ? std::move(files) : ModuleFiles::open(path.c_str(), loaded);
}

}  // namespace jitunwind
