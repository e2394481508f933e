#include "jitunwind/sdk/uwx/names/file_cache_p.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "jitunwind/unwind_core/memory/local.h"

namespace jitunwind::uwx {

FileCache::~FileCache() {
  while (first_) {
    File* const next = first_->next;
    first_->~File();
    allocator_.release(first_);
    first_ = next;
  }
}

Result<FileCache::File*> FileCache::find(const char* path) noexcept {
  struct stat status;
  if (!path || ::stat(path, &status) != 0) return Error{ErrorCode::io, 0, "file"};
  const File::Identity identity{status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
                                status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  for (File* file = first_; file; file = file->next)
    if (file->identity == identity && std::strcmp(file->path, path) == 0) return file;
  auto symbols = SymbolFile::open(path);
  if (!symbols) return symbols.error();
  File* const added = add(path, identity, std::move(*symbols));
  if (!added) return Error{ErrorCode::out_of_memory, 0, "file"};
  return added;
}

FileCache::File* FileCache::add(const char* path, const File::Identity& identity, SymbolFile symbols) noexcept {
  const std::size_t length = std::strlen(path) + 1;
  void* const memory = allocator_.allocate(sizeof(File) + length);
  if (!memory) return nullptr;
  File* const file = new (memory) File;
  char* const copy = reinterpret_cast<char*>(file + 1);
  std::memcpy(copy, path, length);
  file->symbols = std::move(symbols);
  file->identity = identity;
  file->path = copy;
  file->next = first_;
  return first_ = file;
}

std::span<char> StringPool::room(std::size_t size) noexcept {
  if (size <= first_.size() - used_) {
    const auto found = std::span(first_).subspan(used_, size);
    used_ += size;
    return found;
  }
  void* const memory = allocator_.allocate(sizeof(Block) + size);
  if (!memory) return {};
  more_ = new (memory) Block{more_};
  return {reinterpret_cast<char*>(more_ + 1), size};
}

char* StringPool::keep(std::string_view text) noexcept {
  const auto into = room(text.size() + 1);
  if (into.empty()) return nullptr;
  *std::ranges::copy(text, into.begin()).out = '\0';
  return into.data();
}

char* StringPool::keep(const void* text) noexcept {
  constexpr std::size_t k_most = 1u << 16;
  const Addr begin = reinterpret_cast<std::uintptr_t>(text);
  const LocalMemory memory;
  MemoryWindow window;
  std::array<char, 256> piece;
  std::size_t length = 0;
  for (bool ended = false; !ended && length < k_most;) {
    const std::size_t size = memory.read(begin + length, std::as_writable_bytes(std::span(piece)), window);
    const std::size_t found = std::string_view(piece.data(), size).find('\0');
    ended = size < piece.size() || found != std::string_view::npos;
    length += std::min(size, found);
  }
  const auto into = room(length + 1);
  if (into.empty()) return nullptr;
  const std::size_t size = memory.read(begin, std::as_writable_bytes(into.first(length)), window);
  into[size] = '\0';
  return into.data();
}

void StringPool::clear() noexcept {
  while (more_) {
    Block* const next = more_->next;
    allocator_.release(more_);
    more_ = next;
  }
  used_ = 0;
}

}  // namespace jitunwind::uwx
