// Memory at whose end structures are put, so that whoever reads behind them is seen.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace jitunwind::test {

/// A page behind which nothing is mapped.
class LastPage {
 public:
  LastPage()
      : begin_(static_cast<std::byte*>(::mmap(nullptr, 2 * k_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::mprotect(begin_, k_page, PROT_READ | PROT_WRITE);
  }
  ~LastPage() { ::munmap(begin_, 2 * k_page); }
  LastPage(const LastPage&) = delete;
  LastPage& operator=(const LastPage&) = delete;
  /// Room at its end.
  template <class T>
  T* last(std::size_t size = sizeof(T)) const {
    return reinterpret_cast<T*>(begin_ + k_page - size);
  }

 private:
  static constexpr std::size_t k_page = 4096;
  std::byte* begin_;
};

}  // namespace jitunwind::test
