// A JIT compiler's back end in small: emits x86-64 instructions, and says of each that concerns the frame what it does.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "jitunwind/builders/registers_x86_64.h"

namespace jitunwind::test {

class DescribingAssembler {
 public:
  using Reg = x86_64::Reg;

  const std::vector<std::uint8_t>& code() const { return code_; }
  x86_64::Builder& builder() { return builder_; }
  Result<Description, BuildError> description() const { return x86_64::Builder(builder_).size(code_.size()).build(); }

  // Instructions that build the frame.
  void push(Reg r) { builder_.push(emit_push(r), r); }
  void push_argument(int value) { builder_.push(emit({0x6a}, value, 1)); }
  void enter(int bytes) { builder_.enter(emit({0xc8}, bytes, 2, {0}), bytes); }
  void allocate(int bytes) { builder_.allocate(emit({0x48, 0x81, 0xec}, bytes, 4), bytes); }
  void set_frame_pointer() { builder_.set_frame_pointer(emit({0x48, 0x89, 0xe5}), x86_64::rbp); }
  void set_frame_pointer_above_sp(int offset) {
    builder_.set_frame_pointer(emit({0x48, 0x8d, 0xac, 0x24}, offset, 4), x86_64::rbp, offset);
  }
  void copy_sp_to_rax() { builder_.set_frame_pointer(emit({0x48, 0x89, 0xe0}), x86_64::rax); }
  void save_at_sp(Reg r, int offset) { builder_.save_at_sp(emit_move(0x89, r, 4, offset), r, offset); }
  void save_at_fp(Reg r, int offset) { builder_.save_at_fp(emit_move(0x89, r, 5, offset), r, offset); }
  void move_to_r8(Reg r) { builder_.move_to(emit({rex(r.dwarf(), 8), 0x89, modrm(3, number(r), 0)}), r, x86_64::r8); }

  // Instructions that move SP by an unknown amount.
  void allocate_rsi() { builder_.allocate_variable(emit({0x48, 0x29, 0xf4})); }
  void realign() { builder_.realign(emit({0x48, 0x83, 0xe4, 0xc0})); }
  void store_rax_as_sp(int offset) { builder_.store_sp(emit_move(0x89, x86_64::rax, 4, offset), offset); }
  void reload_sp(int offset) { builder_.reload_sp(emit_move(0x8b, x86_64::rsp, 4, offset)); }
  void probe(int pages) {
    const int bytes = 4096 * pages;
    const Instruction bound = emit({0x4c, 0x8d, 0x9c, 0x24}, -bytes, 4);                  // lea r11,[rsp-bytes]
    const Instruction step = emit({0x48, 0x81, 0xec}, 4096, 4);                           // again: sub rsp,4096
    emit({0x48, 0xc7, 0x04, 0x24}, 0, 4);                                                 // mov qword [rsp],0
    emit({0x4c, 0x39, 0xdc});                                                             // cmp rsp,r11
    const Instruction back = emit({0x75}, static_cast<int>(step.begin - here()) - 2, 1);  // jne again
    builder_.probe_loop({.bound = bound, .first_step = step, .back = back, .bytes = bytes}, x86_64::r11);
  }

  // Instructions that release the frame.
  void pop(Reg r) { builder_.pop(emit_pop(r), r); }
  void deallocate(int bytes) { builder_.deallocate(emit({0x48, 0x81, 0xc4}, bytes, 4), bytes); }
  void restore_sp() { builder_.restore_sp(emit({0x48, 0x89, 0xec}), x86_64::rbp); }
  void restore_sp(int offset) { builder_.restore_sp(emit({0x48, 0x8d, 0xa5}, offset, 4), x86_64::rbp, offset); }
  void leave() { builder_.leave(emit({0xc9})); }
  /// Reloads come before the release of the slot.
  void reload_at_sp(Reg r, int offset) { builder_.reload(emit_move(0x8b, r, 4, offset), r); }
  void reload_at_fp(Reg r, int offset) { builder_.reload(emit_move(0x8b, r, 5, offset), r); }
  void reload_from_r8(Reg r) { builder_.reload(emit({rex(8, r.dwarf()), 0x89, modrm(3, 0, number(r))}), r); }
  void pop_return_address_and_jump() {
    builder_.pop_return_address(emit_pop(x86_64::rcx), x86_64::rcx);
    emit({0xff, 0xe1});
  }
  Instruction ret(int popped = 0) { return popped == 0 ? emit({0xc3}) : emit({0xc2}, popped, 2); }

  // Instructions that do not concern the frame.
  std::int64_t here() const { return static_cast<std::int64_t>(code_.size()); }
  /// Emits opcode bytes, a little-endian number of `size` bytes, and more bytes.
  Instruction emit(std::initializer_list<int> opcode, std::int64_t value = 0, int size = 0,
                   std::initializer_list<int> more = {}) {
    const std::int64_t begin = here();
    for (const int b : opcode) code_.push_back(static_cast<std::uint8_t>(b));
    for (int i = 0; i < size; ++i) code_.push_back(static_cast<std::uint8_t>(value >> 8 * i));
    for (const int b : more) code_.push_back(static_cast<std::uint8_t>(b));
    return {begin, here()};
  }
  void set(Reg r, int value) { emit({rex(0, r.dwarf()), 0xc7, modrm(3, 0, number(r))}, value, 4); }
  void clobber(Reg r) { set(r, -1); }
  void call_rdi() { builder_.call(emit({0xff, 0xd7})); }
  void call_rdi_which_pops(int bytes) { builder_.callee_pops(emit({0xff, 0xd7}), bytes); }
  void call_rdx_which_pops(int bytes) { builder_.callee_pops(emit({0xff, 0xd2}), bytes); }
  void return_value(int value) { emit({0xb8}, value, 4); }
  /// Emits a jne that skips the following code if the second argument is not 0. Returns the argument for land().
  std::size_t skip_if_rsi() {
    emit({0x48, 0x85, 0xf6});
    emit({0x0f, 0x85}, 0, 4);
    return code_.size();
  }
  void land(std::size_t from) {
    const auto distance = static_cast<std::int32_t>(code_.size() - from);
    std::memcpy(&code_[from - 4], &distance, 4);
  }

 private:
  // Register numbers of the encoding in the order of DWARF's (AMD64 ABI, figure 3.36).
  static std::uint8_t encoding(RegNum dwarf) {
    constexpr std::array<std::uint8_t, 16> k_encodings{0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};
    return k_encodings[dwarf];
  }
  static int number(Reg r) { return encoding(r.dwarf()) & 7; }
  static int modrm(int mod, int reg, int rm) { return mod << 6 | reg << 3 | rm; }
  /// Returns REX.W with the high bits of the two fields of ModRM.
  static int rex(RegNum reg, RegNum rm) { return 0x48 | (encoding(reg) >> 3) << 2 | encoding(rm) >> 3; }

  Instruction emit_push(Reg r) { return emit({0x40 | encoding(r.dwarf()) >> 3, 0x50 + number(r)}); }
  Instruction emit_pop(Reg r) { return emit({0x40 | encoding(r.dwarf()) >> 3, 0x58 + number(r)}); }
  /// Emits a mov between r and [rsp+offset] (base 4) or [rbp+offset] (base 5).
  Instruction emit_move(int opcode, Reg r, int base, int offset) {
    if (base == 5) return emit({rex(r.dwarf(), 0), opcode, modrm(2, number(r), 5)}, offset, 4);
    return emit({rex(r.dwarf(), 0), opcode, modrm(2, number(r), 4), 0x24}, offset, 4);
  }

  std::vector<std::uint8_t> code_;
  x86_64::Builder builder_ = x86_64::describe();
};

}  // namespace jitunwind::test
