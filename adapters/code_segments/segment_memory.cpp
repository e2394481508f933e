// The file of a segment and its mappings.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <tuple>
#include <utility>

#include "jitunwind/adapters/code_segments/segment_p.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

/// Maps a file, or anonymous memory without one. `at` is 0 for any address.
void* map_file(int file, std::size_t bytes, int protection, int flags, Addr at = 0) noexcept {
  void* const place = pointer_to(at);
  if (at != 0) flags |= MAP_FIXED_NOREPLACE;
  if (file < 0) flags |= MAP_ANONYMOUS;
  void* const memory = ::mmap(place, bytes, protection, flags, file, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (at == 0 || memory == place) return memory;
  ::munmap(memory, bytes);  // kernels before 4.17 take the address as a wish
  return nullptr;
}

/// An unfinished file, and the path that nothing else in the folder has or gets as long as that is there.
Result<ReadableFile> make_new_file(const std::string& place, FilesAtEnd files, const char* prefix, std::string& path) {
  static std::atomic<unsigned> count{0};
  for (unsigned tries = 0; tries != CodeFolder::k_most_tries;) {
    const Result<CodeFolder> folder = CodeFolder::open(place, files);
    if (!folder) return folder.error();
    const int number = folder->file.number();
    const std::string name = prefix + std::to_string(count.fetch_add(1)) + ".so";
    ReadableFile file = new_file(number, (name + k_unfinished).c_str());
    path = folder->path + "/" + name;
    if (file.is_open() && ::faccessat(number, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) return file;
    if (file.is_open())
      ::unlinkat(number, (name + k_unfinished).c_str(), 0);
    else if (errno == ENOENT)
      ++tries;
    else if (errno != EEXIST)
      break;
  }
  return not_published("no file can be made in the folder");
}

}  // namespace

void SegmentMemory::swap(SegmentMemory& other) noexcept {
  constexpr auto all = [](SegmentMemory& it) {
    return std::tie(it.path_, it.files_, it.view_, it.bytes_, it.image_, it.image_bytes_, it.handle_, it.backed_,
                    it.has_all_pages_, it.lack_, it.is_sealed_, it.is_file_, it.has_first_);
  };
  auto own = all(*this), others = all(other);
  own.swap(others);
}

SegmentMemory::~SegmentMemory() {
  const ErrnoKeeper keep_errno;
  remove_file();
  if (view_ != nullptr) ::munmap(view_, bytes_);
  if (handle_ != nullptr)
    let_libraries_be_listed(), ::dlclose(handle_);
  else if (image_bytes_ != 0)
    ::munmap(pointer_to_image(0), image_bytes_);
}

void SegmentMemory::remove_file() noexcept {
  if (path_.empty() || files_ == FilesAtEnd::kept) return;
  ::unlink(path_.c_str());
  if (has_first_) ::unlink((path_ + k_first).c_str());
  path_.resize(path_.rfind('/'));
  ::rmdir(path_.c_str());  // fails if there are other files
  path_.clear();
}

void SegmentMemory::leave_to_parent(std::byte* copy, std::size_t text, std::size_t text_end) noexcept {
  path_.clear();
  view_ = nullptr;
  if (copy == nullptr) return;
  const auto move = [&](std::size_t from, std::size_t to, int protection) {
    void* const there = pointer_to_image(from);
    if (from == to || ::mprotect(copy + from, to - from, protection) != 0) return;
    (void)::mremap(copy + from, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, there);
  };
  move(0, text, PROT_READ);
  move(text, text_end, PROT_READ | PROT_EXEC);
}

bool SegmentMemory::map_view(int file, Addr at) noexcept {
  view_ = static_cast<std::byte*>(map_file(file, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, at));
  return view_ != nullptr && ::madvise(view_, bytes_, MADV_DONTFORK) == 0;
}

Status SegmentMemory::give_size(int file) const noexcept {
  if (bytes_ > largest_file()) return not_published("the process may make no file of that size (RLIMIT_FSIZE)");
  if (::ftruncate(file, static_cast<off_t>(bytes_)) != 0) return not_published("the file cannot have its size");
  return Done{};
}

Status SegmentMemory::back_all(int file) noexcept {
  has_all_pages_ = true;
  if (::syscall(SYS_fallocate, file, 0, 0L, static_cast<long>(bytes_)) == 0) return Done{};
  return not_published(errno == ENOSPC ? k_disk_full : "the folder's file system allocates no room ahead");
}

/// A page that the disk has no room for is SIGBUS when it is written to. The kernel says so instead if it is asked for
/// pages first (madvise(2), Linux 5.14).
bool SegmentMemory::back_pages(std::size_t from, std::size_t to) noexcept {
  constexpr int k_populate_write = 23;  // MADV_POPULATE_WRITE, which headers before 5.14 lack
  return ::madvise(view_ + from, std::min(to, bytes_) - from, k_populate_write) == 0;
}

/// An older kernel gives no single pages, and a filter of system calls that is newer than the segment may refuse them.
/// Precondition: back_pages() has failed, and errno is its own.
bool SegmentMemory::back_otherwise() noexcept {
  const Status all = errno == EFAULT ? Status(not_published(k_disk_full))
                                     : back_all(ReadableFile(path_.c_str(), O_RDWR | O_NOFOLLOW).number());
  lack_ = all ? nullptr : all.error().what;
  return has_all_pages_ = lack_ == nullptr;
}

bool SegmentMemory::back_more(Growing part, std::size_t begin, std::size_t end) noexcept {
  std::size_t& backed = backed_[static_cast<std::size_t>(part)];
  if (back_pages(std::max(backed, begin / k_unit * k_unit), up_to_unit(end)))
    return backed = up_to_unit(end), lack_ = nullptr, true;
  return back_otherwise();
}

/// The dynamic section does not grow.
Status SegmentMemory::back_begins(const SegmentLayout& layout) noexcept {
  has_all_pages_ = false;
  if (back(Growing::symbols, 0, layout.symbol(0)) && back(Growing::strings, layout.strings, layout.strings + 1) &&
      back(Growing::search_table, layout.search_table, layout.search_entry(0)) &&
      back(Growing::frames, layout.frames, layout.frames + k_frames_of_function + k_frames_end) &&
      (has_all_pages_ || back_pages(layout.dynamic, layout.end) || back_otherwise()))
    return Done{};
  return not_published(lack_);
}

Status SegmentMemory::map(int file, Addr at) noexcept {
  if (const Status sized = give_size(file); !sized) return sized;
  void* const trial = map_file(file, bytes_, PROT_READ | PROT_EXEC, MAP_PRIVATE, at);
  if (trial == nullptr)
    return not_published(errno == ENOMEM ? "the process has no more memory for mappings"
                                         : "files of the folder may not be executed (noexec)");
  ::munmap(trial, bytes_);
  if (!map_view(file, at)) return not_published("the file cannot be mapped");
  return Done{};
}

/// Readers take the lowest mapping of a file for its begin. The view is that if the kernel gives addresses from the
/// lowest one up, as it does beside an unlimited stack. perf is told of no move, and knows the view by its former name.
void SegmentMemory::lift_view() noexcept {
  constexpr Addr k_end = Addr{1} << 47;
  Addr step = (bytes_ + k_largest_page_size - 1) / k_largest_page_size * k_largest_page_size;
  for (Addr at = image_ + step; reinterpret_cast<std::uintptr_t>(view_) < image_ && at < k_end; at += step *= 2) {
    void* const place = map_file(-1, bytes_, PROT_NONE, MAP_PRIVATE, at);
    if (place == nullptr) continue;
    if (::mremap(view_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED)
      return (void)::munmap(place, bytes_);
    view_ = static_cast<std::byte*>(place);
  }
}

Status SegmentMemory::open() noexcept {
  let_libraries_be_listed();
  own_loads.fetch_add(1);
  handle_ = ::dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) return own_loads.fetch_sub(1), not_published("the dynamic linker does not open the file");
  link_map* map = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0)
    return not_published("the dynamic linker does not know its own library");
  image_ = map->l_addr;
  return Done{};
}

Result<SegmentMemory> SegmentMemory::make_file(const std::string& place, FilesAtEnd files, const char* prefix,
                                               SegmentLayout& layout, const Arch& arch, Addr view) {
  if (!SegmentLayout::can_be_written(arch))
    return Error{ErrorCode::invalid_argument, 0, "code of this CPU is not published"};
  SegmentMemory memory;
  memory.bytes_ = layout.end;
  std::string path;
  const Result<ReadableFile> made = make_new_file(place, files, prefix, path);
  if (!made) return made.error();
  const ReadableFile& file = *made;
  memory.path_ = path + k_unfinished;
  if (const Status mapped = memory.map(file.number(), view); !mapped) return mapped.error();
  const Status backed = layout.is_laid_over ? memory.back_all(file.number()) : memory.back_begins(layout);
  if (!backed) return backed.error();
  write_segment_file(layout, arch, {memory.view_, memory.bytes_});
  if (::renameat(AT_FDCWD, memory.path_.c_str(), AT_FDCWD, path.c_str()) != 0)
    return not_published("the file cannot have its name");
  memory.path_ = path;
  memory.is_file_ = true;
  if (!layout.is_laid_over) return memory;
  // perf takes the name that a file has when it is mapped.
  ::munmap(std::exchange(memory.view_, nullptr), memory.bytes_);
  if (!memory.map_view(file.number(), view)) return not_published("the file cannot be mapped");
  return memory;
}

Result<SegmentMemory> SegmentMemory::publish(const std::string& place, FilesAtEnd files, SegmentLayout& layout,
                                             const Arch& arch) {
  Result<SegmentMemory> memory = make_file(place, files, "code-", layout, arch, 0);
  if (!memory) return memory;
  if (const Status opened = memory->open(); !opened) return opened.error();
  memory->lift_view();
  memory->files_ = files;
  return memory;
}

Result<SegmentMemory> SegmentMemory::publish_pages(const std::string& place, FilesAtEnd files, SegmentLayout& layout,
                                                   const Arch& arch, Addr text, Addr tables) {
  layout.place_tables_behind(static_cast<std::size_t>(tables - text));
  Result<SegmentMemory> memory = make_file(place, files, k_pages_prefix, layout, arch, tables);
  if (!memory) return memory;
  memory->image_ = tables;
  memory->files_ = files;
  return memory;
}

Result<SegmentMemory> SegmentMemory::unnamed(SegmentLayout& layout) noexcept {
  layout.text = layout.text_address = 0;
  SegmentMemory memory;
  memory.bytes_ = memory.image_bytes_ = layout.text_bytes;
  // Pages that are shared have another address as well (mremap(2), old_size), and children have them by that one.
  void* const image = memory.map_view(-1, 0) ? ::mremap(memory.view_, 0, memory.bytes_, MREMAP_MAYMOVE) : MAP_FAILED;
  if (image != MAP_FAILED) memory.image_ = reinterpret_cast<std::uintptr_t>(image);
  if (image == MAP_FAILED || ::madvise(image, memory.bytes_, MADV_DOFORK) != 0 ||
      ::mprotect(image, memory.bytes_, PROT_READ | PROT_EXEC) != 0)
    return Error{ErrorCode::out_of_memory, 0, "no executable memory"};
  return memory;
}

}  // namespace jitunwind
