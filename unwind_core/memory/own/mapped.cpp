#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

std::uint64_t nanoseconds(const timespec& t) noexcept {
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

FileIdentity identity_of(const struct stat& s) noexcept {
  return {s.st_dev, s.st_ino, static_cast<std::uint64_t>(s.st_size), nanoseconds(s.st_mtim), nanoseconds(s.st_ctim)};
}

void read_real_path(int number, std::span<char> into) noexcept {
  if (into.empty()) return;
  const ssize_t length = ::readlink(link_of(number).data(), into.data(), into.size());
  const bool whole = length > 0 && static_cast<std::size_t>(length) < into.size();
  into[whole ? static_cast<std::size_t>(length) : 0] = '\0';
}

[[gnu::hot]] void* map_pages(std::size_t size, int flags) noexcept {
  const ErrnoKeeper keeper;
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

[[gnu::hot]] void* map_memory(std::size_t size) noexcept { return map_pages(size, 0); }
void* map_memory_at_once(std::size_t size) noexcept { return map_pages(size, MAP_POPULATE); }

void unmap_memory(void* memory, std::size_t size) noexcept {
  const ErrnoKeeper keeper;
  ::munmap(memory, size);
}

constinit std::atomic<std::uint64_t> KeptBlock::held_{0};

bool Block::resize(std::size_t size) noexcept {
  const ErrnoKeeper keeper;
  void* const memory = ::mremap(memory_, size_, size, MREMAP_MAYMOVE);
  if (memory == MAP_FAILED) return false;
  memory_ = memory;
  size_ = size;
  return true;
}

Result<FileIdentity> identify_file(const FilePath& file) noexcept {
  const ErrnoKeeper keeper;
  if (file.has_root()) return identify_file(ReadableFile::find(file).number(), {});
  struct stat s;
  if (::stat(file.path, &s) != 0 || !S_ISREG(s.st_mode)) return Error{ErrorCode::io, 0, "file"};
  return identity_of(s);
}

Result<FileIdentity> identify_file(int number, std::span<char> real_path) noexcept {
  const ErrnoKeeper keeper;
  struct stat s;
  if (::fstat(number, &s) != 0 || !S_ISREG(s.st_mode)) return Error{ErrorCode::io, 0, "file"};
  read_real_path(number, real_path);
  return identity_of(s);
}

}  // namespace jitunwind
