// Code that nothing knows, and that keeps a frame pointer: void* frame(void* (*f)(void*), void* argument).
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "jitunwind/unwind_core/address.h"

namespace jitunwind::test {

class UnknownFrame {
 public:
  using Callee = void* (*)(void*);

  UnknownFrame() : code_(::mmap(nullptr, k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (code_ == MAP_FAILED) throw std::runtime_error("no memory");
    std::memcpy(code_, k_bytes, sizeof k_bytes);
    (void)::mprotect(code_, k_page, PROT_READ | PROT_EXEC);
  }
  ~UnknownFrame() { ::munmap(code_, k_page); }
  UnknownFrame(const UnknownFrame&) = delete;
  UnknownFrame& operator=(const UnknownFrame&) = delete;

  void* operator()(Callee callee, void* argument) const {
    return reinterpret_cast<void* (*)(Callee, void*)>(code_)(callee, argument);
  }
  Addr return_address() const { return reinterpret_cast<std::uintptr_t>(code_) + 12; }

 private:
  static constexpr std::size_t k_page = 4096;
  // push rbp; mov rbp,rsp; mov rax,rdi; mov rdi,rsi; call rax; pop rbp; ret
  static constexpr unsigned char k_bytes[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
                                              0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
  void* code_;
};

}  // namespace jitunwind::test
