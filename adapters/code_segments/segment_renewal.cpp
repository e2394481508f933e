// The content of a segment becomes a new file, in place of the former one, while its code runs and is read.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "jitunwind/adapters/code_segments/segment_p.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

/// Gives `file` the name `path`, and the former file of that name the name `file`. False: it has no name any more,
/// since the file system exchanges none.
Result<bool> swap_names(const std::string& file, const std::string& path, bool must) noexcept {
  if (::syscall(SYS_renameat2, AT_FDCWD, file.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (!must && ::rename(file.c_str(), path.c_str()) == 0) return false;
  return not_published("the file cannot have the name of the former one");
}

}  // namespace

void SegmentMemory::stamp() const noexcept { (void)::utimensat(AT_FDCWD, path_.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

/// One call maps tables and text, so that their pages are of one file at all times. The dynamic linker may have written
/// to the dynamic section, whose page is therefore copied. The copy is not of the file: perf, which is not told when a
/// mapping moves, takes the lowest one of a file for its begin, and would look for call frame information elsewhere.
Status SegmentMemory::map_anew(int file, const SegmentLayout& layout, bool seals) noexcept {
  const std::size_t dynamic_bytes = layout.end - layout.dynamic;
  void* const dynamic = ::mmap(nullptr, dynamic_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (dynamic == MAP_FAILED) return not_published("there is no memory for a copy of the dynamic section");
  std::memcpy(dynamic, pointer_to_image(layout.dynamic), dynamic_bytes);
  // Sanitizers take mmap() for a store to all that it maps. The bytes are the same here, and other threads read them.
  if (::syscall(SYS_mmap, pointer_to_image(0), layout.dynamic, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file,
                0L) == -1) {
    ::munmap(dynamic, dynamic_bytes);
    return not_published("the new file cannot be mapped over the former one");
  }
  const int protection = seals ? PROT_READ | PROT_WRITE : PROT_READ;
  is_sealed_ = ::mprotect(pointer_to_image(0), layout.text, protection) == 0 && seals;
  (void)::mremap(dynamic, dynamic_bytes, dynamic_bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                 pointer_to_image(layout.dynamic));
  const void* const view = ::mmap(view_, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  // The former view may be there or not, if there was no memory for the new one. The segment can then only be read.
  if (view == MAP_FAILED) ::munmap(std::exchange(view_, nullptr), bytes_);
  if (view_ != nullptr) (void)::madvise(view_, bytes_, MADV_DONTFORK);
  return Done{};
}

Result<std::string> SegmentMemory::renew(std::span<const FilePart> parts, const SegmentLayout& layout, bool seals) {
  const ErrnoKeeper keep_errno;
  // The dynamic linker takes files of one inode for one library, so that of its own file must not serve another. Those
  // who have opened it when it was the only one read it for as long as they like.
  const bool is_first = !std::exchange(has_first_, true);
  const std::string whole = path_ + (is_first ? k_first : ".new");
  std::string name = path_ + k_unfinished;
  const ReadableFile file = new_file(AT_FDCWD, name.c_str());
  if (!file.is_open()) return not_published("no new file can be made in the folder");
  const auto give_up = [&](const Error& why) {
    ::unlink(name.c_str());
    if (is_first) has_first_ = false;
    return why;
  };
  Status sized = give_size(file.number());
  if (sized && has_all_pages_ && !seals) sized = back_all(file.number());
  if (!sized) return give_up(sized.error());
  if (!std::all_of(parts.begin(), parts.end(),
                   [&](const FilePart& part) { return write_whole(file.number(), part.bytes, part.at); }))
    return give_up(not_published(errno == ENOSPC ? k_disk_full : "the new file cannot be written"));
  if (::rename(name.c_str(), whole.c_str()) != 0)
    return give_up(not_published("the new file cannot have a name of its own"));
  name = whole;
  const Result<bool> has_name = swap_names(name, path_, is_first);
  if (!has_name) return give_up(has_name.error());
  if (const Status mapped = map_anew(file.number(), layout, seals); !mapped) {
    if (!*has_name) return mapped.error();
    (void)swap_names(name, path_, is_first);
    return give_up(mapped.error());
  }
  return *has_name && !is_first ? name : std::string();
}

Segment::Parts Segment::parts() const noexcept {
  const auto part = [](const std::byte* from, std::size_t at, std::size_t size) {
    return FilePart{at, {from + at, size}};
  };
  const FilePart text = part(memory_.writable(), layout_.text, text_end_);
  if (!is_published()) return {text};
  const std::byte* const tables = memory_.tables();
  return {part(tables, 0, layout_.symbols + layout_.symbols_bytes(functions_.size())),
          part(tables, layout_.strings, strings_end_),
          part(tables, layout_.search_table, layout_.search_entry(functions_.size()) - layout_.search_table),
          part(tables, layout_.frames, frames_end_ - layout_.frames), text};
}

Result<std::string> Segment::renew(bool seals) {
  const std::byte* const image = memory_.image_bytes();
  if (std::memcmp(image + layout_.text, memory_.writable() + layout_.text, text_end_) != 0)
    return not_published("somebody wrote to the code's own pages: its file stays as it was");
  note_change();
  const Parts used = parts();
  std::vector<std::byte> headers(memory_.tables(), memory_.tables() + layout_.hash);
  std::vector<FilePart> all(used.begin(), used.end());
  all.push_back({layout_.dynamic, {memory_.writable() + layout_.dynamic, layout_.end - layout_.dynamic}});
  set_build_id(layout_, seals, headers);
  all.push_back({0, headers});
  Result<std::string> renewed = memory_.renew(all, layout_, seals);
  if (renewed)
    for (std::size_t i = 0; i < used.size(); ++i)
      memory_.backed_until(static_cast<Growing>(i), used[i].at + used[i].bytes.size());
  return renewed;
}

}  // namespace jitunwind
