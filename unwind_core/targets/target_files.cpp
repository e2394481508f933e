#include "jitunwind/unwind_core/targets/target_files_internal.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <new>
#include <utility>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/targets/mapped_object_internal.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace jitunwind {
namespace {

HostPath if_file(HostPath file) { return identify_file(file) ? std::move(file) : HostPath(); }

}  // namespace

TargetFiles TargetFiles::none() {
  TargetFiles files;
  files.has_files_ = false;
  return files;
}

TargetFiles TargetFiles::of_process(const ProcessFolder& process) {
  TargetFiles files;
  files.unasked_ = &process;
  files.process_ = process.path();
  return files;
}

const std::string& TargetFiles::root() const {
  if (const ProcessFolder* const process = std::exchange(unasked_, nullptr)) {
    root_ = process->root();
    if (!root_.empty()) shown_root_ = process->link("root");
    if (shown_root_ == "/") shown_root_.clear();
  }
  return root_;
}

void TargetFiles::replace(std::string target_path, std::string host_path) {
  replaced_.insert_or_assign(std::move(target_path), std::move(host_path));
}

/// The name below the target's root. The kernel gives names relative to the reader's root, or else from the root of the
/// mount namespace on; files and the process's root folder are alike in this: d_path() of fs/d_path.c. The suffix of a
/// deleted file's name may also be the end of a name: a file with such a name counts if it is the loaded one.
HostPath TargetFiles::named_path(const Mapping& mapping) const {
  // A relative path, or one of another mount namespace ("(unreachable)..."), cannot be opened from here.
  const std::string shown = mapping.shown_path();
  const std::string& root = this->root();
  if (!shown.starts_with(shown_root_ + "/")) return {};
  return {shown.substr(shown_root_.size()), root.c_str()};
}

/// The kernel's link to the mapped file, whatever its name, for users who are allowed to read it:
/// proc_pid_map_files(5).
std::string TargetFiles::mapped_path(const Mapping& mapping) const {
  if (process_.empty() || !mapping.is_of_file()) return {};
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "/map_files/%" PRIx64 "-%" PRIx64, mapping.range.begin, mapping.range.end);
  return process_ + name.data();
}

/// The names tell it, since both are of the same kind.
bool TargetFiles::is_program(const Mapping& mapping) const {
  if (process_.empty() || !mapping.is_of_file()) return false;
  Mapping program;
  program.set_shown_path(link_target(AT_FDCWD, (process_ + "/exe").c_str()));
  return program.path == mapping.path && program.deleted == mapping.deleted;
}

HostPath TargetFiles::host_path(const Mapping& mapping) const {
  if (const auto replaced = replaced_.find(mapping.path); replaced != replaced_.end()) return {replaced->second};
  if (!has_files_) return {};
  HostPath file = if_file(named_path(mapping));
  return file.empty() ? if_file({mapped_path(mapping)}) : file;
}

Result<Mapped<ModuleFiles>> TargetFiles::open_at(const FilePath& file, const ElfImage* loaded,
                                                 std::uint64_t begin) const {
  auto files = ModuleFiles::open(file, loaded, {k_debug_root, root().c_str()}, begin);
  const bool has_looked_everywhere = root().empty() || !files || (*files)->has_debug_file();
  return has_looked_everywhere ? std::move(files) : ModuleFiles::open(file, loaded, k_debug_root, begin);
}

/// The files of a program that has changed its root since it was loaded are outside of that root. They may have the
/// same names for this process.
Result<Mapped<ModuleFiles>> TargetFiles::open(const Mapping& mapping, const ElfImage* loaded) const {
  Result<Mapped<ModuleFiles>> files = Error{ErrorCode::io, mapping.range.begin, "file of a mapping"};
  const auto opens = [&](const HostPath& file) {
    if (!file.empty()) files = open_at(file, loaded, mapping.offset);
    return files.has_value();
  };
  if (const auto replaced = replaced_.find(mapping.path); replaced != replaced_.end()) {
    (void)opens({replaced->second});
  } else if (has_files_ && !opens(named_path(mapping)) && !process_.empty()) {
    const bool has_name_here = !root().empty() && mapping.path.starts_with('/');
    (void)((is_program(mapping) && opens({process_ + "/exe"})) || opens({mapped_path(mapping)}) ||
           (has_name_here && opens({mapping.shown_path()})));
  }
  return files;
}

bool may_be_loaded_from(FileParts& file, MappedObject* object, std::string_view build_id) noexcept {
  const auto image = ElfImage::parse(file);
  if (!image) return build_id.empty() && !object;  // data, and nothing contradicts it
  if (!build_id.empty()) return std::ranges::equal(image->build_id(), std::as_bytes(std::span(build_id)));
  const ElfImage* const loaded = object ? object->image() : nullptr;
  return loaded ? is_same_object(*image, *loaded) : !object;
}

FileParts* FileBackedMemory::file_of(const Mapping& mapping) const {
  MappedObject* const object = objects_.find_object(mapping.range.begin);
  const std::uint64_t begin = object ? object->first().offset : 0;
  const FileKey key = key_of(mapping.file(), begin);
  const auto known = open_.find(key);
  if (known != open_.end()) return known->second.get();
  if (open_.size() >= k_most_open) open_.clear();
  const HostPath path = files_.host_path(mapping);
  Mapped<FileParts> file = path.empty() ? nullptr : make_mapped<FileParts>(path, std::span<char>{}, begin);
  if (file && (!file->is_open() || !may_be_loaded_from(*file, object, mapping.build_id))) file.reset();
  return open_.emplace(key, std::move(file)).first->second.get();
}

std::size_t FileBackedMemory::read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept try {
  std::size_t done = 0;
  while (done < into.size()) {
    const Addr next = at + done;
    if (next < at) break;
    const std::size_t got = memory_.read(next, into.subspan(done), window);
    done += got;
    if (done == into.size()) break;
    const Addr missing = at + done;
    const Mapping* const mapping = mappings_.find(missing);
    if (!mapping || mapping->writable || !mapping->is_of_file()) break;
    FileParts* const file = file_of(*mapping);
    if (!file) break;
    // The file is read by pages: the other memory may have the bytes after a page again.
    const std::uint64_t on_page = page_of(missing) + k_page_size - missing;
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>({into.size() - done, on_page, mapping->range.end - missing}));
    const std::size_t copied =
        file->copy(mapping->offset - file->begin() + (missing - mapping->range.begin), into.subspan(done, size));
    done += copied;
    if (copied < size) break;
  }
  return done;
} catch (const std::bad_alloc&) {
  return 0;
}

}  // namespace jitunwind
