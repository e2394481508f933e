#include <algorithm>
#include <new>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/targets/file_backed_internal.h"
#include "jitunwind/unwind_core/targets/mapped_object_internal.h"

namespace jitunwind {

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
