// AArch64 code that calls through: void* frame(void* (*f)(void*), void* argument). It saves x19, x20 and x29,
// overwrites two of them for the call, and uses none as a frame pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "jitunwind/builders/registers_aarch64.h"

namespace jitunwind::test {

/// This machine's registers and descriptions.
namespace host = aarch64;

struct FrameCode {
  static constexpr std::size_t k_after_call = 28;
  static constexpr std::uint32_t k_bytes[] = {
      0xa9be7bfd,  // stp x29, x30, [sp, #-32]!
      0xa90153f3,  // stp x19, x20, [sp, #16]
      0xaa0003e9,  // mov x9, x0
      0xaa0103e0,  // mov x0, x1
      0xd2800013,  // mov x19, #0
      0xd280001d,  // mov x29, #0
      0xd63f0120,  // blr x9
      0xa94153f3,  // ldp x19, x20, [sp, #16]
      0xa8c27bfd,  // ldp x29, x30, [sp], #32
      0xd65f03c0,  // ret
  };

  static host::Builder described(std::string_view name) {
    auto builder = host::describe(name);
    return record(builder), builder;
  }
  /// `Builder`: a builder, or marks.
  template <class Builder>
  static void record(Builder& builder) {
    using namespace host;
    builder.store_pair_pre({0, 4}, x29, x30, -32).store_pair({4, 8}, x19, x20, 16);
    builder.reload_pair({-12, -8}, x19, x20).load_pair_post({-8, -4}, x29, x30, 32);
  }
  /// A description with labels for many states of the frame.
  static host::Builder with_many_states(std::string_view name) {
    using namespace host;
    auto builder = describe(name);
    builder.region(7).add(0, sp, -32).spill_sp_rel(0, x29, 0).spill_sp_rel(0, x30, 8);
    builder.spill_sp_rel(1, x19, 16).spill_sp_rel(1, x20, 24);
    for (unw_word_t label = 1; label <= 16; ++label) builder.label_state(2 + static_cast<int>(label) / 4, label);
    builder.region(3).copy_state(9).save_reg(0, x19, x19).save_reg(0, x20, x20).add(1, sp, 32);
    return builder;
  }
};

}  // namespace jitunwind::test
