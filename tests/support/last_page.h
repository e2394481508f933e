// Memory that ends at an unmapped page, so that reads behind a structure fault.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace jitunwind::test {

/// A page that is followed by an unmapped one.
class LastPage {
 public:
  LastPage()
      : begin_(static_cast<std::byte*>(::mmap(nullptr, 2 * k_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::mprotect(begin_, k_page, PROT_READ | PROT_WRITE);
  }
  ~LastPage() { ::munmap(begin_, 2 * k_page); }
  LastPage(const LastPage&) = delete;
  LastPage& operator=(const LastPage&) = delete;
  /// Returns room at the page's end.
  template <class T>
  T* last(std::size_t size = sizeof(T)) const {
    return reinterpret_cast<T*>(begin_ + k_page - size);
  }

 private:
  static constexpr std::size_t k_page = 4096;
  std::byte* begin_;
};

}  // namespace jitunwind::test
