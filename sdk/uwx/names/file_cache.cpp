#include "jitunwind/sdk/uwx/names/file_cache_p.h"

#include <sys/stat.h>

#include <cstring>
#include <new>

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

}  // namespace jitunwind::uwx
