#include <algorithm>
#include <array>
#include <new>

#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/targets/file_backed_internal.h"

namespace jitunwind {

bool may_be_loaded_from(FileParts& file, std::span<const std::byte> head, std::string_view build_id) noexcept {
  const auto image = ElfImage::parse(file);
  const auto loaded = ElfImage::parse_loaded(head, head.size());
  if (!image) return build_id.empty() && !loaded;  // data, and nobody says otherwise
  const auto ours = image->build_id();
  if (!build_id.empty()) return std::ranges::equal(ours, std::as_bytes(std::span(build_id)));
  if (!loaded) return true;
  const auto theirs = loaded->build_id();
  if (!ours.empty() && !theirs.empty()) return std::ranges::equal(ours, theirs);
  return std::ranges::equal(image->header_bytes(), loaded->header_bytes());
}

/// The mapping of the file's first page that is nearest below.
Mapping FileBackedMemory::first_of(const Mapping& mapping) const {
  std::size_t index = mappings_.index_of(mapping.range.begin);
  for (std::size_t i = index; i != Mappings::k_none && index - i < 64; --i) {
    const Mapping& earlier = mappings_.all()[i];
    if (earlier.same_file(mapping) && earlier.offset == 0) return earlier;
  }
  return mapping;
}

bool FileBackedMemory::is_of_target(const Mapping& mapping, FileParts& file) const {
  const Mapping first = first_of(mapping);
  std::array<std::byte, k_page_size> head;
  MemoryWindow window;
  const std::size_t got = first.offset == 0 ? memory_.read(first.range.begin, head, window) : 0;
  return may_be_loaded_from(file, std::span(head).first(got), first.build_id);
}

FileParts* FileBackedMemory::file_of(const Mapping& mapping) const {
  const auto known = open_.find(mapping.path);
  if (known != open_.end()) return known->second.get();
  if (open_.size() >= k_most_open) open_.clear();
  const std::string path = files_.host_path(mapping);
  Mapped<FileParts> file = path.empty() ? nullptr : make_mapped<FileParts>(path.c_str());
  if (file && (!file->is_open() || !is_of_target(mapping, *file))) file.reset();
  return open_.emplace(mapping.path, std::move(file)).first->second.get();
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
    // By pages: what is behind them may be in the other memory again.
    const std::uint64_t on_page = page_of(missing) + k_page_size - missing;
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>({into.size() - done, on_page, mapping->range.end - missing}));
    const std::size_t copied = file->copy(mapping->offset + (missing - mapping->range.begin), into.subspan(done, size));
    done += copied;
    if (copied < size) break;
  }
  return done;
} catch (const std::bad_alloc&) {
  return 0;
}

}  // namespace jitunwind
