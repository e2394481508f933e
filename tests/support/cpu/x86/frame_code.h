// 32-bit x86 code that calls through: void* frame(void* (*f)(void*), void* argument). It saves ebx and ebp, overwrites
// them for the call, and uses neither as a frame pointer.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "jitunwind/builders/every_cpu.h"

namespace jitunwind::test {

/// This machine's registers and descriptions.
namespace host = x86;

struct FrameCode {
  static constexpr std::size_t k_after_call = 22;
  static constexpr unsigned char k_bytes[] = {
      0x53,                    // push ebx
      0x55,                    // push ebp
      0x83, 0xec, 0x14,        // sub esp, 20
      0x8b, 0x44, 0x24, 0x20,  // mov eax, [esp + 32]
      0x8b, 0x4c, 0x24, 0x24,  // mov ecx, [esp + 36]
      0x89, 0x0c, 0x24,        // mov [esp], ecx
      0x31, 0xdb,              // xor ebx, ebx
      0x31, 0xed,              // xor ebp, ebp
      0xff, 0xd0,              // call eax
      0x83, 0xc4, 0x14,        // add esp, 20
      0x5d,                    // pop ebp
      0x5b,                    // pop ebx
      0xc3,                    // ret
  };
  static_assert(std::size(k_bytes) == 28);

  static host::Builder described(std::string_view name) {
    auto builder = host::describe(name);
    return record(builder), builder;
  }
  /// `Builder`: a builder, or marks.
  template <class Builder>
  static void record(Builder& builder) {
    using namespace host;
    builder.push({0, 1}, ebx).push({1, 2}, ebp).allocate({2, 5}, 20);
    builder.deallocate({-6, -3}, 20).pop({-3, -2}, ebp).pop({-2, -1}, ebx);
  }
  /// A description with labels for many states of the frame.
  static host::Builder with_many_states(std::string_view name) {
    using namespace host;
    auto builder = describe(name);
    builder.region(22).add(0, esp, -4).spill_sp_rel(0, ebx, 0).add(1, esp, -4).spill_sp_rel(1, ebp, 0).add(4, esp, -20);
    for (unw_word_t label = 1; label <= 16; ++label) builder.label_state(6 + static_cast<int>(label) / 2, label);
    builder.region(6).copy_state(9).add(2, esp, 20).add(3, esp, 4).add(4, esp, 4);
    return builder;
  }
};

}  // namespace jitunwind::test
