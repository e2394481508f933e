// A procedure made at run time, described and registered through the C interface alone, for programs of any C++
// run-time library: void* frame(void* (*f)(void*), void* argument). Loses rbx and rbp for the call.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "jitunwind/dyn_info/libunwind-dynamic.h"

namespace jitunwind::test {

class CJitFrame {
 public:
  using Callee = void* (*)(void*);

  explicit CJitFrame(unw_word_t gp = 0) {
    code_ = ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(code_, k_bytes, sizeof k_bytes);
    ::mprotect(code_, k_page, PROT_READ | PROT_EXEC);
    constexpr unsigned k_ops = 6;
    region_ = static_cast<unw_dyn_region_info_t*>(std::calloc(1, _U_dyn_region_info_size(k_ops)));
    region_->insn_count = sizeof k_bytes;
    region_->op_count = k_ops;
    op(0, UNW_DYN_ADD, 7, 0, -8);  // push rbx
    op(1, UNW_DYN_SPILL_SP_REL, 3, 0, 0);
    op(2, UNW_DYN_ADD, 7, 1, -8);  // push rbp
    op(3, UNW_DYN_SPILL_SP_REL, 6, 1, 0);
    op(4, UNW_DYN_ADD, 7, 2, -8);  // sub rsp, 8
    op(5, UNW_DYN_STOP, 0, -1, 0);
    std::memset(&info_, 0, sizeof info_);
    info_.start_ip = reinterpret_cast<std::uintptr_t>(code_);
    info_.end_ip = info_.start_ip + sizeof k_bytes;
    info_.gp = gp;
    info_.format = UNW_INFO_FORMAT_DYNAMIC;
    info_.u.pi.name_ptr = reinterpret_cast<std::uintptr_t>("c_jit_frame");
    info_.u.pi.regions = region_;
    _U_dyn_register(&info_);
  }
  ~CJitFrame() {
    cancel();
    ::munmap(code_, k_page);
    std::free(region_);
  }
  CJitFrame(const CJitFrame&) = delete;
  CJitFrame& operator=(const CJitFrame&) = delete;

  /// The code's address, and the address behind its call.
  unw_word_t start() const { return info_.start_ip; }
  unw_word_t return_address() const { return start() + 18; }

  void cancel() { _U_dyn_cancel(&info_); }

  void* operator()(Callee callee, void* argument) const {
    return reinterpret_cast<void* (*)(Callee, void*)>(code_)(callee, argument);
  }

 private:
  static constexpr std::size_t k_page = 4096;
  // push rbx; push rbp; sub rsp,8; mov rax,rdi; mov rdi,rsi; xor ebx,ebx; xor ebp,ebp; call rax; add rsp,8; pop rbp;
  // pop rbx; ret
  static constexpr unsigned char k_bytes[] = {0x53, 0x55, 0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0xf8,
                                              0x48, 0x89, 0xf7, 0x31, 0xdb, 0x31, 0xed, 0xff, 0xd0,
                                              0x48, 0x83, 0xc4, 0x08, 0x5d, 0x5b, 0xc3};

  void op(unsigned at, int tag, int reg, int when, std::int64_t value) {
    region_->op[at].tag = static_cast<std::int8_t>(tag);
    region_->op[at].reg = static_cast<std::int16_t>(reg);
    region_->op[at].qp = _U_QP_TRUE;
    region_->op[at].when = when;
    region_->op[at].val = static_cast<unw_word_t>(value);
  }

  void* code_;
  unw_dyn_region_info_t* region_;
  unw_dyn_info_t info_;
};

}  // namespace jitunwind::test
