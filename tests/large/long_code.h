// Executable procedures with any number of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "jitunwind/builders/described_rows.h"
#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "tests/exceptions/jit_frames.h"

namespace jitunwind::test {

/// The code is push rbx; then many pairs push rax; pop rax; then call rdi; pop rbx; ret. rbx is changed before the
/// call.
class LongCode {
 public:
  enum class Says { directives, rows };

  explicit LongCode(std::size_t pairs) : pairs_(static_cast<std::int64_t>(pairs)), bytes_(1, 0x53) {
    for (std::size_t i = 0; i < pairs; ++i) bytes_.insert(bytes_.end(), {0x50, 0x58});
    bytes_.insert(bytes_.end(), {0x31, 0xdb, 0xff, 0xd7, 0x5b, 0xc3});  // xor ebx,ebx; call rdi; pop rbx; ret
    code_ = std::make_unique<ExecutableCopy>(bytes_);
  }

  x86_64::Builder builder(Says says = Says::directives) const {
    using namespace x86_64;
    auto builder = x86_64::describe("long");
    builder.size(bytes_.size());
    if (says == Says::rows) {
      builder.row_at(0, "cfa=rsp+8 ra=[cfa-8]");
      FrameRow low = row(16), high = row(24);
      for (std::int64_t i = 0; i < pairs_; ++i) builder.row_at(1 + 2 * i, low).row_at(2 + 2 * i, high);
      return builder.row_at(1 + 2 * pairs_, low).row_at(end() - 1, "cfa=rsp+8 ra=[cfa-8]");
    }
    builder.push({0, 1}, rbx);
    for (std::int64_t i = 0; i < pairs_; ++i) builder.push({1 + 2 * i, 2 + 2 * i}).pop({2 + 2 * i, 3 + 2 * i});
    return builder.pop({end() - 2, end() - 1}, rbx);
  }
  Description describe(Says says = Says::directives) const { return builder(says).build().value(); }
  Registration registered(const Description& description) const {
    return register_code(description, code_->begin(), bytes_.size()).value();
  }

  Addr begin() const { return reinterpret_cast<std::uintptr_t>(code_->begin()); }
  std::int64_t end() const { return static_cast<std::int64_t>(bytes_.size()); }
  std::int64_t call_end() const { return end() - 2; }
  void call(void (*callee)()) const { reinterpret_cast<void (*)(void (*)())>(code_->begin())(callee); }

  /// Returns the right row at an offset.
  FrameRow expected(std::int64_t offset) const {
    if (offset == 0 || offset == end() - 1) return row(8);
    const bool pushed = offset <= 2 * pairs_ && offset % 2 == 0;
    return row(pushed ? 24 : 16);
  }

 private:
  static FrameRow row(std::int64_t distance) {
    FrameRow row;
    row.cfa = CfaRule::at(7, distance);
    row.ra = 16;
    if (distance != 8) (void)row.set(3, RegRule::at_cfa(-16));
    (void)row.set(16, RegRule::at_cfa(-8));
    return row;
  }

  std::int64_t pairs_;
  std::vector<std::uint8_t> bytes_;
  std::unique_ptr<ExecutableCopy> code_;
};

}  // namespace jitunwind::test
