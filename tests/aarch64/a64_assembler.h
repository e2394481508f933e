// A JIT compiler's back end in small: emits A64 instructions, and says of each that concerns the frame what it does.
#pragma once

#include <cstdint>
#include <vector>

#include "jitunwind/builders/registers_aarch64.h"

namespace jitunwind::test {

/// Offsets from SP are multiples of 8, up to 32 KiB; those of pairs are up to 504. Numbers in the description are
/// counted from 0, and the one with the number `lie` is described wrongly. `Recorder`: aarch64::Builder or
/// aarch64::Marks.
template <class Recorder>
class A64AssemblerWith {
 public:
  using Reg = aarch64::Reg;

  explicit A64AssemblerWith(int lie = -1) : lie_(lie) {}
  /// The number of numbers in the description.
  int said() const { return said_; }

  const std::vector<std::uint32_t>& code() const { return code_; }
  std::int64_t size() const { return static_cast<std::int64_t>(code_.size() * sizeof(std::uint32_t)); }
  Recorder& builder() { return builder_; }
  Result<Description, BuildError> description() const {
    return aarch64::Builder(builder_).size(static_cast<std::uint64_t>(size())).build();
  }

  Instruction emit(std::uint32_t word) {
    code_.push_back(word);
    return {size() - 4, size()};
  }

  // Instructions that build the frame.
  void sign() { builder_.sign_return_address(emit(0xd503233f)); }  // paciasp
  void push_pair(Reg a, Reg b, int bytes) {
    builder_.store_pair_pre(emit(pair(0xa9800000, a, b, -bytes)), a, b, told(-bytes));
  }
  void push(Reg a, int bytes) { builder_.store_pre(emit(indexed(0xf8000c00, a, -bytes)), a, told(-bytes)); }
  void allocate(int bytes) { builder_.allocate(emit(0xd10003ff | imm12(bytes)), told(bytes)); }
  void store_pair(Reg a, Reg b, int offset) {
    builder_.store_pair(emit(pair(0xa9000000, a, b, offset)), a, b, told(offset));
  }
  void store(Reg a, int offset) {
    builder_.save_at_sp(emit(at_sp(is_vector(a) ? 0xfd000000 : 0xf9000000, a, offset)), a, told(offset));
  }
  void set_frame_pointer(int above_sp) {
    builder_.set_frame_pointer(emit(0x910003fd | imm12(above_sp)), aarch64::x29, told(above_sp));
  }
  void park_return_address() { builder_.move_to(emit(0xaa1e03f1), aarch64::x30, aarch64::x17); }  // mov x17,x30

  // Moves SP by an unknown amount.
  void realign() {
    emit(0x910003e9);                    // mov x9,sp
    builder_.realign(emit(0x927ae53f));  // and sp,x9,#-64
  }
  void allocate_variable(int bytes) {
    move_to(10, bytes);
    builder_.allocate_variable(emit(0xcb2a63ff));  // sub sp,sp,x10
  }

  // Instructions that release the frame.
  void restore_sp(int below_fp) {
    const auto at = emit(0xd10003bf | imm12(below_fp));  // sub sp,x29,#n
    builder_.restore_sp(at, aarch64::x29, told(-below_fp));
  }
  void load_pair(Reg a, Reg b, int offset) { builder_.reload_pair(emit(pair(0xa9400000, a, b, offset)), a, b); }
  void load(Reg a, int offset) { builder_.reload(emit(at_sp(is_vector(a) ? 0xfd400000 : 0xf9400000, a, offset)), a); }
  void deallocate(int bytes) { builder_.deallocate(emit(0x910003ff | imm12(bytes)), told(bytes)); }
  void pop_pair(Reg a, Reg b, int bytes) {
    builder_.load_pair_post(emit(pair(0xa8c00000, a, b, bytes)), a, b, told(bytes));
  }
  void pop(Reg a, int bytes) { builder_.load_post(emit(indexed(0xf8400400, a, bytes)), a, told(bytes)); }
  void unpark_return_address() { builder_.reload(emit(0xaa1103fe), aarch64::x30); }  // mov x30,x17
  void authenticate() { builder_.authenticate_return_address(emit(0xd50323bf)); }    // autiasp
  Instruction ret() { return emit(0xd65f03c0); }

  // Instructions that do not concern the frame.
  void move_to(unsigned x, int value) { emit(0xd2800000 | static_cast<std::uint32_t>(value) << 5 | x); }
  void clobber(Reg reg) {
    if (is_vector(reg))
      emit(0x9e670160 | number(reg));  // fmov d,x11
    else
      move_to(number(reg), 0xdead);
  }
  Instruction call(unsigned x) { return emit(0xd63f0000 | x << 5); }
  void nop() { emit(0xd503201f); }
  /// Emits subs x1,x1,#1; b.ne, which skips the code up to land().
  std::size_t skip_unless_counted_down() {
    emit(0xf1000421);
    emit(0x54000001);
    return code_.size() - 1;
  }
  void land(std::size_t jump) { code_[jump] |= static_cast<std::uint32_t>(code_.size() - jump) << 5; }

  static bool is_vector(Reg reg) { return reg.dwarf() >= 64; }

 private:
  std::int64_t told(std::int64_t number) { return said_++ == lie_ ? number + 16 : number; }
  static std::uint32_t number(Reg reg) { return is_vector(reg) ? reg.dwarf() - 64u : reg.dwarf(); }
  static std::uint32_t imm12(int value) { return static_cast<std::uint32_t>(value) << 10; }
  static std::uint32_t pair(std::uint32_t op, Reg a, Reg b, int offset) {
    return op | (static_cast<std::uint32_t>(offset / 8) & 0x7f) << 15 | number(b) << 10 | 31 << 5 | number(a);
  }
  static std::uint32_t at_sp(std::uint32_t op, Reg a, int offset) {
    return op | static_cast<std::uint32_t>(offset / 8) << 10 | 31 << 5 | number(a);
  }
  static std::uint32_t indexed(std::uint32_t op, Reg a, int moved) {
    return op | (static_cast<std::uint32_t>(moved) & 0x1ff) << 12 | 31 << 5 | number(a);
  }

  int lie_;
  int said_ = 0;
  std::vector<std::uint32_t> code_;
  Recorder builder_{};
};
using A64Assembler = A64AssemblerWith<aarch64::Builder>;

}  // namespace jitunwind::test
