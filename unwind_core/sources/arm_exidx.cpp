#include "jitunwind/unwind_core/sources/arm_exidx.h"

#include <array>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_entry = 8;
constexpr std::uint32_t k_cannot_unwind = 1;
constexpr std::uint32_t k_compact = 0x8000'0000;
constexpr RegNum k_sp = 13, k_lr = 14, k_pc = 15, k_d0 = 256;

std::uint32_t word_at(const SectionBytes& table, std::size_t offset, const Arch& arch) noexcept {
  ByteReader reader(table.bytes.subspan(offset, 4), arch.big_endian);
  return reader.u32();
}

/// Decodes a signed distance of 31 bits from `place`, where the word is (EHABI32, 4.4).
Addr prel31(std::uint32_t word, Addr place) noexcept {
  const auto distance = static_cast<std::int32_t>(word << 1) >> 1;
  return (place + static_cast<Addr>(std::int64_t{distance})) & 0xffff'ffff;
}

Addr function_of(const SectionBytes& table, std::size_t entry, const Arch& arch) noexcept {
  return prel31(word_at(table, entry * k_entry, arch), table.address + entry * k_entry);
}

/// The bytes of the instructions, most significant first in each word (EHABI32, 10.2).
class Instructions {
 public:
  Instructions(const Memory& memory, MemoryWindow& window, const Arch& arch) noexcept
      : memory_(memory), window_(window), arch_(arch) {}

  /// Begins with the second word of an entry; `at` is the word's address.
  Status begin(std::uint32_t word, Addr at) noexcept {
    if ((word & k_compact) != 0) return begin_compact(word, 0, at);
    const Addr table = prel31(word, at);
    const auto first = read(table);
    if (!first) return first.error();
    if ((*first & k_compact) != 0) return begin_compact(*first, table + 4, table);
    // The entry names its own personality routine. The data of GNU's and LLVM's routines begins with the number of
    // words that follow.
    const auto second = read(table + 4);
    if (!second) return second.error();
    take(*second, 3);
    more_ = *second >> 24;
    next_ = table + 8;
    return Done{};
  }

  /// Returns the next byte, or the instruction 0xb0 ("finish") behind the last one.
  Result<unsigned> next() noexcept {
    if (left_ == 0) {
      if (more_ == 0) return 0xb0u;
      const auto word = read(next_);
      if (!word) return word.error();
      take(*word, 4);
      --more_;
      next_ += 4;
    }
    --left_;
    return word_ >> (8 * left_) & 0xff;
  }

 private:
  Result<std::uint32_t> read(Addr at) noexcept {
    const auto word = read_unsigned(memory_, window_, at, 4, arch_.big_endian, ".ARM.extab");
    if (!word) return word.error();
    return static_cast<std::uint32_t>(*word);
  }
  /// Personality routine 0 has 3 bytes of instructions. Routines 1 and 2 have 2 bytes and the number of words that
  /// follow (EHABI32, 10.2).
  Status begin_compact(std::uint32_t word, Addr behind, Addr at) noexcept {
    const std::uint32_t routine = word >> 24 & 0xf;
    if (routine > 2 || (routine != 0 && behind == 0))
      return Error{ErrorCode::bad_encoding, at, ".ARM.exidx personality"};
    take(word, routine == 0 ? 3 : 2);
    more_ = routine == 0 ? 0 : word >> 16 & 0xff;
    next_ = behind;
    return Done{};
  }
  void take(std::uint32_t word, unsigned bytes) noexcept {
    word_ = word;
    left_ = bytes;
  }

  const Memory& memory_;
  MemoryWindow& window_;
  const Arch& arch_;
  std::uint32_t word_ = 0;
  unsigned left_ = 0;
  std::uint32_t more_ = 0;
  Addr next_ = 0;
};

/// Executes instructions (EHABI32, 10.3, table 4) on a virtual SP that is `base` + offset.
class ExidxMachine {
 public:
  explicit ExidxMachine(Addr function) noexcept : function_(function) {}

  Status run(Instructions& instructions) noexcept {
    for (;;) {
      const auto op = instructions.next();
      if (!op) return op.error();
      if (*op == 0xb0) return Done{};
      if (const Status done = execute(*op, instructions); !done) return done;
    }
  }

  /// The CFA is the virtual SP at the end. If SP itself was saved, the CFA is the saved value, and places are relative
  /// to the base.
  Status make_row(FrameRow& out) const noexcept {
    const bool saves_sp = is_saved(k_sp);
    out.cfa = saves_sp ? CfaRule::deref(base_, places_[k_sp], 0) : CfaRule::at(base_, offset_);
    out.ra = k_lr;
    // Code that saved all registers has interrupted its caller: the C library's sigreturn functions describe the kernel
    // so.
    out.signal_frame = saved_ == 0xffff;
    bool fits = true;
    for (unsigned reg = 0; reg < k_pc; ++reg)
      if (is_saved(reg) && reg != k_sp) fits = fits && out.set(static_cast<RegNum>(reg), at(places_[reg]));
    for (unsigned d = 0; d < 32; ++d)
      if ((saved_d_ >> d & 1) != 0) fits = fits && out.set(static_cast<RegNum>(k_d0 + d), at(places_d_[d]));
    if (is_saved(k_pc)) fits = fits && out.set(out.signal_frame ? k_pc : k_lr, at(places_[k_pc]));
    return fits ? Status(Done{}) : Error{ErrorCode::row_too_wide, function_, ".ARM.exidx"};
  }

 private:
  bool is_saved(unsigned reg) const noexcept { return (saved_ >> reg & 1) != 0; }
  RegRule at(std::int64_t place) const noexcept {
    return is_saved(k_sp) ? RegRule::at_reg(base_, place) : RegRule::at_cfa(place - offset_);
  }
  Error refuse(const char* what) const noexcept { return {ErrorCode::bad_encoding, function_, what}; }

  Status execute(unsigned op, Instructions& instructions) noexcept {
    if (is_saved(k_sp)) return refuse(".ARM.exidx goes on behind a pop of SP");
    if (op < 0x80) {  // 0Sxxxxxx: vsp +- (xxxxxx << 2) + 4
      const std::int64_t size = (op & 0x3f) * 4 + 4;
      offset_ += (op & 0x40) != 0 ? -size : size;
      return Done{};
    }
    if (op < 0x90) return pop_mask(op, instructions);
    if (op < 0xa0) return set_base(op & 0xf);
    if (op < 0xb0) {  // 1010Lnnn: pop r4-r[4+nnn], and r14
      pop(4, 4 + (op & 7));
      if ((op & 8) != 0) pop(k_lr, k_lr);
      return Done{};
    }
    if (op == 0xb1 || op == 0xb2 || op == 0xb3 || op == 0xc8 || op == 0xc9) return execute_long(op, instructions);
    if (op >= 0xb8 && op < 0xc0) {  // 10111nnn: pop d8-d[8+nnn], saved by FSTMFDX
      pop_d(8, op & 7);
      offset_ += 4;
      return Done{};
    }
    if (op >= 0xd0 && op < 0xd8) {  // 11010nnn: the same, saved by VPUSH
      pop_d(8, op & 7);
      return Done{};
    }
    return refuse(".ARM.exidx instruction of registers that are not known here, or a spare one");
  }

  Status execute_long(unsigned op, Instructions& instructions) noexcept {
    const auto second = instructions.next();
    if (!second) return second.error();
    if (op == 0xb1) {  // 0000iiii: pop r0-r3 under a mask
      if (*second == 0 || *second > 0xf) return refuse(".ARM.exidx spare instruction");
      for (unsigned reg = 0; reg < 4; ++reg)
        if ((*second >> reg & 1) != 0) pop(reg, reg);
      return Done{};
    }
    if (op == 0xb2) return add_uleb(*second, instructions);
    const unsigned first = *second >> 4, count = *second & 0xf;
    const unsigned from = op == 0xc8 ? 16 + first : first;
    if (from + count >= 32) return refuse(".ARM.exidx registers behind d31");
    pop_d(from, count);
    if (op == 0xb3) offset_ += 4;
    return Done{};
  }

  /// 1000iiii iiiiiiii: pops {r15-r4} under a mask. An empty mask refuses to unwind.
  Status pop_mask(unsigned op, Instructions& instructions) noexcept {
    const auto second = instructions.next();
    if (!second) return second.error();
    const unsigned mask = (op & 0xf) << 8 | *second;
    if (mask == 0) return refuse(".ARM.exidx refuses to unwind");
    for (unsigned reg = 4; reg < 16; ++reg)
      if ((mask >> (reg - 4) & 1) != 0) pop(reg, reg);
    return Done{};
  }

  /// 1001nnnn: vsp = r[nnnn]. This fails after a pop, whose place would be relative to another register.
  Status set_base(unsigned reg) noexcept {
    if (reg == k_sp || reg == k_pc) return refuse(".ARM.exidx reserved instruction");
    if (saved_ != 0 || saved_d_ != 0) return refuse(".ARM.exidx sets vsp behind a pop");
    base_ = static_cast<RegNum>(reg);
    offset_ = 0;
    return Done{};
  }

  /// 10110010 uleb128: vsp += 0x204 + (uleb128 << 2).
  Status add_uleb(unsigned first, Instructions& instructions) noexcept {
    std::uint64_t value = first & 0x7f;
    unsigned byte = first;
    for (unsigned shift = 7; (byte & 0x80) != 0; shift += 7) {
      if (shift > 28) return refuse(".ARM.exidx number of more than 32 bits");
      const auto next = instructions.next();
      if (!next) return next.error();
      byte = *next;
      value |= std::uint64_t{byte & 0x7f} << shift;
    }
    offset_ += 0x204 + static_cast<std::int64_t>(value << 2);
    return Done{};
  }

  void pop(unsigned first, unsigned last) noexcept {
    for (unsigned reg = first; reg <= last; ++reg) {
      saved_ |= 1u << reg;
      places_[reg] = offset_;
      offset_ += 4;
    }
  }
  void pop_d(unsigned first, unsigned more) noexcept {
    for (unsigned d = first; d <= first + more; ++d) {
      saved_d_ |= 1u << d;
      places_d_[d] = offset_;
      offset_ += 8;
    }
  }

  Addr function_;
  RegNum base_ = k_sp;
  std::int64_t offset_ = 0;
  std::uint32_t saved_ = 0, saved_d_ = 0;
  std::array<std::int64_t, 16> places_{};
  std::array<std::int64_t, 32> places_d_{};
};

/// Returns the last entry that begins at or before pc, or `count` when there is none.
std::size_t entry_of(const SectionBytes& table, std::size_t count, Addr pc, const Arch& arch) noexcept {
  std::size_t first = 0, last = count;
  while (first < last) {
    const std::size_t middle = first + (last - first) / 2;
    if (function_of(table, middle, arch) <= pc)
      first = middle + 1;
    else
      last = middle;
  }
  return first == 0 ? count : first - 1;
}

class ArmExidxSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    const Module* const module = lookup.module();
    if (!module || module->exidx.empty()) return false;
    return find_exidx_row(module->exidx, lookup.at.lookup(), lookup, out);
  }
};

constinit const ArmExidxSource k_arm_exidx;

}  // namespace

Found find_exidx_row(const SectionBytes& exidx, Addr pc, Lookup& lookup, FrameRow& out) noexcept {
  const Arch& arch = lookup.space.arch;
  const std::size_t count = exidx.bytes.size() / k_entry;
  const std::size_t entry = entry_of(exidx, count, pc, arch);
  if (entry == count) return false;
  const Addr function = function_of(exidx, entry, arch);
  const std::uint32_t word = word_at(exidx, entry * k_entry + 4, arch);
  out = {};
  out.origin = RowOrigin::arm_exidx;
  out.keeps_by = KeepsBy::nothing;  // a kept rule has no room for this origin
  out.ra = k_lr;
  out.range = {function, entry + 1 < count ? function_of(exidx, entry + 1, arch) : pc + 1};
  if (word == k_cannot_unwind) {  // nothing called it, or its caller must not be known
    out.cfa = CfaRule::at(k_sp, 0);
    (void)out.set(k_lr, RegRule::undefined());
    return true;
  }
  Instructions instructions(lookup.space.memory, lookup.window, arch);
  if (const Status begun = instructions.begin(word, exidx.address + entry * k_entry + 4); !begun) return begun.error();
  ExidxMachine machine(function);
  if (const Status run = machine.run(instructions); !run) return run.error();
  if (const Status made = machine.make_row(out); !made) return made.error();
  return true;
}

const RowSource& arm_exidx_source() noexcept { return k_arm_exidx; }

}  // namespace jitunwind
