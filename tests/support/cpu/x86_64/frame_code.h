// x86-64 code that calls through: void* frame(void* (*f)(void*), void* argument). It saves rbx and rbp, overwrites them
// for the call, and uses neither as a frame pointer.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "jitunwind/builders/registers_x86_64.h"

namespace jitunwind::test {

/// This machine's registers and descriptions.
namespace host = x86_64;

struct FrameCode {
  static constexpr std::size_t k_after_call = 18;
  static constexpr unsigned char k_bytes[] = {
      0x53,                    // push rbx
      0x55,                    // push rbp
      0x48, 0x83, 0xec, 0x08,  // sub rsp, 8
      0x48, 0x89, 0xf8,        // mov rax, rdi
      0x48, 0x89, 0xf7,        // mov rdi, rsi
      0x31, 0xdb,              // xor ebx, ebx
      0x31, 0xed,              // xor ebp, ebp
      0xff, 0xd0,              // call rax
      0x48, 0x83, 0xc4, 0x08,  // add rsp, 8
      0x5d,                    // pop rbp
      0x5b,                    // pop rbx
      0xc3,                    // ret
  };
  static_assert(std::size(k_bytes) == 25);

  static host::Builder described(std::string_view name) {
    auto builder = host::describe(name);
    return record(builder), builder;
  }
  /// `Builder`: a builder, or marks.
  template <class Builder>
  static void record(Builder& builder) {
    using namespace host;
    builder.push({0, 1}, rbx).push({1, 2}, rbp).allocate({2, 6}, 8);
    builder.deallocate({-7, -3}, 8).pop({-3, -2}, rbp).pop({-2, -1}, rbx);
  }
  /// A description with labels for many states of the frame.
  static host::Builder with_many_states(std::string_view name) {
    using namespace host;
    auto builder = describe(name);
    builder.region(18).add(0, rsp, -8).spill_sp_rel(0, rbx, 0).add(1, rsp, -8).spill_sp_rel(1, rbp, 0).add(5, rsp, -8);
    for (unw_word_t label = 1; label <= 16; ++label) builder.label_state(6 + static_cast<int>(label) / 2, label);
    builder.region(7).copy_state(9).add(3, rsp, 8).add(4, rsp, 8).add(5, rsp, 8);
    return builder;
  }
};

}  // namespace jitunwind::test
