// Compares rows from following instructions with call frame information, which that guess does not read: for procedures
// with a frame and without, at instructions of AArch64's C and C++ libraries.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/sources/cfi/fde_table.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "tests/support/bytes_memory.h"
#include "tests/support/texts.h"
#include "tests/world_cfi/elf_cfi.h"

namespace jitunwind::world {
namespace {

/// The first segment of a shared library, which begins with the file, at address 0, and has its code.
std::vector<std::byte> first_segment(const std::string& path) {
  const std::string text = test::text_of_file(path);
  const auto bytes = std::as_bytes(std::span(text));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, &bytes[header.e_phoff + i * sizeof segment], sizeof segment);
    if (segment.p_type != PT_LOAD || segment.p_offset != 0) continue;
    const auto of_segment = bytes.first(segment.p_filesz);
    return {of_segment.begin(), of_segment.end()};
  }
  return {};
}

struct Counts {
  std::size_t all = 0;                ///< instructions, by call frame information
  std::size_t known = 0;              ///< of these
  std::size_t registers_unknown = 0;  ///< of those known
  std::size_t wrong = 0;
  std::string first_wrong{};

  void note_wrong(const std::string& what) {
    if (wrong++ < 5) first_wrong += what + "\n";
  }
};

/// The code of a library, a call to each procedure in turn, and a stack full of addresses behind other calls.
class LibraryMemory final : public Memory {
 public:
  static constexpr Addr k_call = 0x400'0000, k_stack = 0x7fff'0000, k_stack_size = 1 << 17;

  explicit LibraryMemory(const std::string& path) : code_(first_segment(path)) {
    for (Addr at = 0x1000; at + 4 <= code_.size(); at += 4)
      if (is_call(at)) behind_calls_.push_back(at + 4);
    for (std::size_t i = 0; i < stack_.size(); ++i) stack_[i] = other_word(i);
  }

  std::size_t read(Addr at, std::span<std::byte> into, MemoryWindow& window) const noexcept override {
    if (at >= k_stack) return test::BytesMemory(std::as_bytes(std::span(stack_)), k_stack).read(at, into, window);
    if (at >= k_call) return test::BytesMemory(std::as_bytes(std::span(call_)), k_call).read(at, into, window);
    return test::BytesMemory(code_, 0).read(at, into, window);
  }
  std::uint32_t word(Addr at) const {
    std::uint32_t word = 0;
    std::memcpy(&word, &code_[at], sizeof word);
    return word;
  }
  /// True for BL and BLR.
  bool is_call(Addr at) const {
    return (word(at) & 0xfc00'0000) == 0x9400'0000 || (word(at) & 0xffff'fc1f) == 0xd63f'0000;
  }
  /// Returns the last instruction before the pc that jumps elsewhere. Calls do so, SVC does not.
  Addr last_jump(Addr pc) const {
    for (Addr at = pc - 4; at != 0; at -= 4) {
      const bool is_of_system = word(at) >> 24 == 0xd5 || (word(at) & 0xffe0'001f) == 0xd400'0001;
      if ((word(at) & 0x1c00'0000) == 0x1400'0000 && !is_of_system) return at;
    }
    return 0;
  }
  Addr behind_any_call() const { return behind_calls_.front(); }
  /// The value that code which nobody has called has in the link register: its last call has left it there.
  Addr behind_last_call(Addr pc) const { return *--std::ranges::upper_bound(behind_calls_, pc); }

  void call(Addr to) { call_[0] = 0x9400'0000 | (static_cast<std::uint32_t>((to - k_call) / 4) & 0x3ff'ffff); }
  /// Writes a return address, and removes the one before.
  void put_return_address(Addr at, Addr word) {
    stack_[put_] = other_word(put_);
    put_ = (at - k_stack) / 8;
    stack_.at(put_) = word;
  }

 private:
  Addr other_word(std::size_t i) const { return behind_calls_[i * 7 % behind_calls_.size()]; }

  std::vector<std::byte> code_;
  std::vector<Addr> behind_calls_;
  std::array<std::uint32_t, 1> call_{};
  std::vector<Addr> stack_ = std::vector<Addr>(k_stack_size / 8);
  std::size_t put_ = 0;
};

class FollowedLibrary {
 public:
  explicit FollowedLibrary(const std::string& path) : path_(path), elf_(path), memory_(path) {}

  /// Calls add(fde, row, pc) for each instruction that has a row.
  template <class Add>
  void for_each_instruction(Add add) {
    const CfiContext context{arch_};
    SectionView view(elf_.eh_frame);
    FdeScan scan(view, context, {elf_.eh_frame.address, elf_.eh_frame.address + elf_.eh_frame.bytes.size()});
    Fde fde;
    while (!scan.at_end()) {
      const auto more = scan.next(fde);
      if (!more || !*more) break;
      FrameRow row;
      row.range.end = fde.range.begin;
      FdeRows rows(fde, context, row);
      RegRule link_before{};
      for (auto next = rows.next_behind(row.range.end); next && *next; next = rows.next_behind(row.range.end)) {
        // setcontext() is described by the registers that it sets, even where it jumps to __syscall_error() instead
        // (glibc 2.36, sysdeps/unix/sysv/linux/aarch64/setcontext.S).
        if (row.cfa.kind == CfaRule::Kind::offset && row.cfa.reg == 0) continue;
        FrameRow real = row;
        EXPECT_TRUE(!is_old_link(row) || real.set(arch_.ra, link_before));
        link_before = row.rule(arch_.ra);
        for (Addr pc = row.range.begin; pc < row.range.end; pc += 4) add(fde, real, pc);
      }
    }
  }

  Counts count_without_frame() {
    Counts counts;
    for_each_instruction([&](const Fde&, const FrameRow& row, Addr pc) {
      RegisterFile registers;
      set(registers, arch_.sp, LibraryMemory::k_stack);
      const bool has_caller = row.rule(arch_.ra).kind != RegRule::Kind::undefined;
      set(registers, arch_.ra, has_caller ? memory_.behind_any_call() : memory_.behind_last_call(pc));
      FrameRow guessed;
      const bool found = guess(CodeAddress::interrupted(pc), registers, guessed);
      counts.all += is_frameless(row);
      counts.known += found && is_frameless(row);
      // The word on the stack may follow a call of this procedure by chance.
      const bool same = guessed.cfa == row.cfa && guessed.rule(arch_.ra) == row.rule(arch_.ra);
      if (found && !(same && are_signed_alike(row, guessed))) counts.note_wrong(text_of(pc, row, guessed));
    });
    return counts;
  }

  /// Counts frames that are interrupted there, and frames that have called there.
  Counts count_with_frame() {
    Counts counts;
    for_each_instruction([&](const Fde& fde, const FrameRow& row, Addr pc) {
      if (is_frameless(row) || row.cfa.kind != CfaRule::Kind::offset) return;
      memory_.call(fde.range.begin);
      for (const auto at : {CodeAddress::interrupted(pc), CodeAddress::returned_to(pc + 4)}) {
        if (at.is_return_address() && !memory_.is_call(pc)) continue;
        ++counts.all;
        compare(row, at, counts);
      }
    });
    return counts;
  }

 private:
  void set(RegisterFile& registers, RegNum reg, Addr value) const { registers.set(arch_.column(reg), value); }
  bool is_frameless(const FrameRow& row) const {
    const RegRule::Kind link = row.rule(arch_.ra).kind;
    return row.cfa.kind == CfaRule::Kind::offset && row.cfa.reg == arch_.sp && row.cfa.offset == 0 &&
           (link == RegRule::Kind::unspecified || link == RegRule::Kind::same);
  }
  /// The row says that the return address is in a register. Returns whether that register is a copy of a link register
  /// that still had the value of the last call. _Fork() of glibc 2.43 moves the link register to x0 around a call, and
  /// back, when the return address has long been on the stack (sysdeps/unix/sysv/linux/aarch64/arch-fork.h).
  bool is_old_link(const FrameRow& row) const {
    const RegRule link = row.rule(arch_.ra);
    const Addr copied = row.range.begin - 4;
    return link.kind == RegRule::Kind::in_reg && memory_.word(copied) == (0xaa1e'03e0u | link.reg) &&
           memory_.is_call(memory_.last_jump(copied));
  }
  bool are_signed_alike(const FrameRow& a, const FrameRow& b) const {
    const RegRule rule = a.rule(arch_.sign_state);
    const bool is_signed = rule == RegRule::constant(1);
    return rule == b.rule(arch_.sign_state) && (!is_signed || a.signing_key == b.signing_key);
  }
  std::string text_of(Addr pc, const FrameRow& row, const FrameRow& guessed) const {
    std::ostringstream text;
    text << path_ << " " << std::hex << pc << ": " << to_text(row, arch_) << ", guessed: " << to_text(guessed, arch_);
    return text.str();
  }
  bool guess(CodeAddress at, const RegisterFile& registers, FrameRow& out) const {
    MemoryWindow window;
    Lookup lookup(space_, at, window, &registers, Guesses::confirmed);
    const Found found = followed_code_source().find_row(lookup, out);
    return found && *found;
  }
  /// Makes a frame as the row describes it.
  RegisterFile frame_of(const FrameRow& row, CodeAddress at) {
    constexpr Addr k_top = LibraryMemory::k_stack + LibraryMemory::k_stack_size / 2;
    RegisterFile registers;
    Addr own = 0x1111'0000;
    for (const RegisterInfo& reg : arch_.registers)
      if (reg.preserved) set(registers, reg.dwarf, own += 0x1'0000);
    const RegRule link = row.rule(arch_.ra), frame_pointer = row.rule(arch_.fp);
    if (link.kind == RegRule::Kind::at_cfa)
      memory_.put_return_address(k_top + static_cast<Addr>(link.offset), LibraryMemory::k_call + 4);
    // AAPCS64, 6.4.6: the frame pointer refers to the place where the two were saved, or is not used as one.
    if (frame_pointer.kind == RegRule::Kind::at_cfa)
      set(registers, arch_.fp, k_top + static_cast<Addr>(frame_pointer.offset));
    if (row.cfa.reg == arch_.fp) set(registers, arch_.fp, k_top - static_cast<Addr>(row.cfa.offset));
    set(registers, arch_.sp,
        row.cfa.reg == arch_.sp ? k_top - static_cast<Addr>(row.cfa.offset) : *registers.get(arch_.column(arch_.fp)));
    if (link.kind == RegRule::Kind::in_reg) set(registers, link.reg, LibraryMemory::k_call + 4);
    if (!at.is_return_address()) {
      const bool is_copied = link.kind == RegRule::Kind::in_reg && memory_.last_jump(at.value()) >= row.range.begin;
      const bool is_saved = link.kind == RegRule::Kind::at_cfa && !was_just_moved(arch_.ra, at.value(), true);
      const bool is_stale = is_saved || is_copied || link.kind == RegRule::Kind::undefined;
      set(registers, arch_.ra, is_stale ? memory_.behind_last_call(at.value()) : LibraryMemory::k_call + 4);
    }
    return registers;
  }

  /// gcc reports late that registers are on the stack, and that they are no longer there; they are in both places in
  /// between. The store or load is an instruction before the pc, with no jump between.
  bool was_just_moved(RegNum reg, Addr pc, bool by_load) const {
    const bool is_vector = reg >= 64;
    const unsigned code = is_vector ? reg - 64u : reg;
    const std::uint32_t load = by_load ? 0x40'0000 : 0;
    for (Addr at = memory_.last_jump(pc) + 4; at < pc; at += 4) {
      const std::uint32_t word = memory_.word(at), base = word >> 5 & 31;
      const bool is_pair = (word & 0xfe40'0000) == ((is_vector ? 0x6c00'0000 : 0xa800'0000) | load);
      const bool is_one = (word & 0xfec0'0000) == ((is_vector ? 0xfc00'0000 : 0xf800'0000) | load);
      const bool is_here = (word & 31) == code || (is_pair && (word >> 10 & 31) == code);
      if ((is_pair || is_one) && is_here && (base == 31 || base == 29)) return true;
    }
    return false;
  }

  void compare(const FrameRow& row, CodeAddress at, Counts& counts) {
    const RegisterFile registers = frame_of(row, at);
    FrameRow guessed;
    if (!guess(at, registers, guessed)) return;
    ++counts.known;
    MemoryWindow window;
    Caller right, found;
    const bool applied = apply_row(row, registers, arch_, memory_, window, right) &&
                         apply_row(guessed, registers, arch_, memory_, window, found);
    bool same = applied && right.outermost == found.outermost && right.pc == found.pc && right.cfa == found.cfa &&
                are_signed_alike(row, guessed);
    for (const RegisterInfo& reg : arch_.registers) {
      if (!reg.preserved || right.registers.get(reg.column) == found.registers.get(reg.column)) continue;
      const RegRule::Kind rule = guessed.rule(reg.dwarf).kind;
      if (rule == RegRule::Kind::undefined) {
        ++counts.registers_unknown;
        continue;
      }
      same = same && (rule == RegRule::Kind::unspecified || rule == RegRule::Kind::at_cfa) &&
             was_just_moved(reg.dwarf, at.value(), rule == RegRule::Kind::unspecified);
    }
    if (same) return;
    counts.note_wrong((at.is_return_address() ? "returned to: " : "") + text_of(at.value(), row, guessed));
  }

  std::string path_;
  ElfCfi elf_;
  const Arch& arch_ = arch::aarch64;
  LibraryMemory memory_;
  NoModules modules_;
  AddressSpace space_{arch_, memory_, modules_, {}, {}};
};

// covers: LU20
TEST(FollowedA64Code, HasNoFrameWhereItsCallFrameInformationSaysSo) {
  for (const char* const path : {AARCH64_LIBRARIES}) {
    const Counts counts = FollowedLibrary(path).count_without_frame();
    EXPECT_EQ(counts.wrong, 0u) << counts.first_wrong;
    std::printf("%s: %zu of %zu instructions without a frame\n", path, counts.known, counts.all);
    EXPECT_GT(counts.known, counts.all * 2 / 3);
    EXPECT_GT(counts.all, 10'000u);
  }
}

// covers: LU20
TEST(FollowedA64Code, HasTheFramesOfItsCallFrameInformation) {
  for (const char* const path : {AARCH64_LIBRARIES}) {
    const Counts counts = FollowedLibrary(path).count_with_frame();
    EXPECT_EQ(counts.wrong, 0u) << counts.first_wrong;
    std::printf("%s: %zu of %zu frames, without %zu registers\n", path, counts.known, counts.all,
                counts.registers_unknown);
    EXPECT_GT(counts.known, counts.all * 2 / 3);
    EXPECT_GT(counts.all, 100'000u);
    EXPECT_LT(counts.registers_unknown, counts.known / 20);
  }
}

}  // namespace
}  // namespace jitunwind::world
