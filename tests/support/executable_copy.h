// Memory for code made at run time.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace jitunwind::test {

/// Maps one page or more; at `place`, unless that is null.
inline void* map_anew(void* place, std::size_t size, int protection) {
  const int fixed = place != nullptr ? MAP_FIXED : 0;
  void* const memory = ::mmap(place, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return memory;
}

/// A page for code that comes and goes: all code on it has the same address.
class Place {
 public:
  Place() : memory_(map_anew(nullptr, 1, PROT_NONE)) {}
  ~Place() { ::munmap(memory_, 1); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void* begin() const { return memory_; }

 private:
  void* memory_;
};

/// Executable memory with a copy of `bytes`, anywhere or in a place that is empty.
class ExecutableCopy {
 public:
  explicit ExecutableCopy(const std::vector<std::uint8_t>& bytes, const Place* place = nullptr)
      : memory_(map_anew(place != nullptr ? place->begin() : nullptr, bytes.size(), PROT_READ | PROT_WRITE)),
        size_(bytes.size()),
        in_place_(place != nullptr) {
    std::memcpy(memory_, bytes.data(), size_);
    __builtin___clear_cache(static_cast<char*>(memory_), static_cast<char*>(memory_) + size_);
    ::mprotect(memory_, size_, PROT_READ | PROT_EXEC);
  }
  ~ExecutableCopy() {
    if (in_place_)
      map_anew(memory_, size_, PROT_NONE);
    else
      ::munmap(memory_, size_);
  }
  ExecutableCopy(const ExecutableCopy&) = delete;
  ExecutableCopy& operator=(const ExecutableCopy&) = delete;

  void* begin() const { return memory_; }
  std::size_t size() const { return size_; }

 private:
  void* memory_;
  std::size_t size_;
  bool in_place_;
};

}  // namespace jitunwind::test
