// An .eh_frame for code of this CPU, in its own memory.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/support/cfi_assembler.h"
#include "told_frame_code.h"

namespace jitunwind::test {

template <class Array>
Bytes bytes_of(const Array& array) {
  Bytes bytes;
  for (const std::uint8_t byte : array) bytes.u8(byte);
  return bytes;
}
/// Instructions that save a register at the first instruction: ToldFrameCode::k_saved_row.
inline Bytes saved_register() { return bytes_of(ToldFrameCode::k_saves); }

/// A CIE for code of this CPU, with absolute pointers unless `augmentation` says otherwise.
inline CieSpec host_cie(const std::string& augmentation = "", const Bytes& augmentation_data = {}) {
  return {.augmentation = augmentation,
          .augmentation_data = augmentation_data,
          .code_alignment = ToldFrameCode::k_code_alignment,
          .return_address = ToldFrameCode::k_return_address,
          .instructions = bytes_of(ToldFrameCode::k_entry)};
}

/// An .eh_frame that is written at its final address.
class EhFrame {
 public:
  explicit EhFrame(std::size_t size = 4096)
      : size_(size),
        memory_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
        section(reinterpret_cast<std::uintptr_t>(memory_)) {
    cie_ = section.cie(host_cie());
  }
  ~EhFrame() { ::munmap(memory_, size_); }
  EhFrame(const EhFrame&) = delete;
  EhFrame& operator=(const EhFrame&) = delete;

  Addr fde(Addr begin, std::uint64_t size) { return section.fde(cie_, begin, size, saved_register()); }
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
