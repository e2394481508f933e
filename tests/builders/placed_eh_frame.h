// An .eh_frame in memory of its own.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "tests/support/cfi_assembler.h"

namespace jitunwind::test {

inline Bytes push_rbx() { return Bytes{0x41, 0x0e, 16, 0x83, 2}; }  // +1: cfa=rsp+16 rbx=[cfa-16]

/// Writes at the address where the section then is.
class EhFrame {
 public:
  explicit EhFrame(std::size_t size = 4096)
      : size_(size),
        memory_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        section(reinterpret_cast<std::uintptr_t>(memory_)) {
    cie_ = section.cie({.augmentation = ""});
  }
  ~EhFrame() { ::munmap(memory_, size_); }
  EhFrame(const EhFrame&) = delete;
  EhFrame& operator=(const EhFrame&) = delete;

  Addr fde(Addr begin, std::uint64_t size) { return section.fde(cie_, begin, size, push_rbx()); }
  Addr cie() const { return cie_; }
  AddrRange placed() {
    const auto& bytes = section.section().bytes;
    std::memcpy(memory_, bytes.data(), bytes.size());
    const auto at = reinterpret_cast<std::uintptr_t>(memory_);
    return {at, at + bytes.size()};
  }

 private:
  const std::size_t size_;
  void* const memory_;

 public:
  CfiSection section;

 private:
  Addr cie_ = 0;
};

}  // namespace jitunwind::test
