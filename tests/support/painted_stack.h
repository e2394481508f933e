// Signal stacks that show how much of them was written to.
#pragma once

#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstring>

namespace jitunwind::test {

/// Returns the size of a stack on which the walk has as much room as on one of 8 KiB on a processor with AVX-512,
/// whatever this processor makes the kernel save.
inline std::size_t size_of_small_stack() {
  constexpr std::size_t k_promised = 8192;
  constexpr std::size_t k_least_with_avx512 = 3632;  // AT_MINSIGSTKSZ there
  const std::size_t least = ::getauxval(AT_MINSIGSTKSZ);
  return k_promised + (least != 0 ? least : 2048) - k_least_with_avx512;
}

/// A stack whose memory is painted. The paint begins at the inaccessible page and may extend below the stack.
struct PaintedStack {
  static constexpr std::size_t k_page = 4096;
  static constexpr unsigned char k_paint = 0xa5;
  unsigned char* begin = nullptr;  ///< of the paint
  unsigned char* stack = nullptr;
  std::size_t size = 0;

  /// Maps a stack at lower addresses than later mappings if `low` is set, else at higher ones.
  static PaintedStack make(std::size_t size, bool low = false) {
    const std::size_t pages = (size + k_page - 1) / k_page * k_page;
    const int kind = MAP_PRIVATE | MAP_ANONYMOUS | (low ? MAP_32BIT : 0);
    auto* const memory =
        static_cast<unsigned char*>(::mmap(nullptr, k_page + pages, PROT_READ | PROT_WRITE, kind, -1, 0));
    ::mprotect(memory, k_page, PROT_NONE);
    PaintedStack made{memory + k_page, memory + k_page + pages - size, size};
    std::memset(made.begin, k_paint, pages);
    return made;
  }
  void use() const {
    const stack_t stack{this->stack, 0, size};
    ::sigaltstack(&stack, nullptr);
  }
  [[gnu::noinline]] unsigned char* lowest_written() const {
    unsigned char* at = begin;
    while (at != stack + size && *at == k_paint) ++at;
    return at;
  }
};

}  // namespace jitunwind::test
