#include "tests/directives/random_description.h"

#include <algorithm>
#include <limits>

namespace jitunwind::test {
namespace {

class Maker {
 public:
  Maker(const Arch& arch, std::mt19937_64& random, Extremes extremes)
      : arch_(arch), random_(random), extremes_(extremes == Extremes::all) {
    for (const RegisterInfo& r : arch.registers) {
      const bool usable = r.column >= 0 && r.libunwind >= 0 && r.dwarf != arch.sp && r.dwarf != arch.pc;
      if (usable && r.preserved) preserved_.push_back(r.libunwind);
      if (usable && !r.preserved && r.reg_class == RegClass::general && r.dwarf != arch.ra)
        scratch_.push_back(r.libunwind);
    }
    sp_ = arch.by_dwarf(arch.sp)->libunwind;
    sign_ = arch.sign_state == k_no_reg ? -1 : arch.by_dwarf(arch.sign_state)->libunwind;
    fp_ = arch.by_dwarf(arch.fp)->libunwind;
    ra_ = arch.by_dwarf(arch.ra)->libunwind;
  }

  RandomDescription make() {
    switch (below(4)) {
      case 0:
        thrown_together();
        break;
      case 1:
        frame();
        break;
      default:
        frame();
        mistakes();
    }
    out_.size =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, units_ + below(4) - (chance(10) ? 2 : 0))) * arch_.unit;
    return std::move(out_);
  }

 private:
  std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_); }
  bool chance(int one_in) { return below(one_in) == 0; }
  int one_of(const std::vector<int>& from) {
    return from[static_cast<std::size_t>(below(static_cast<std::int64_t>(from.size())))];
  }
  int any_reg() {
    if (extremes_ && chance(12)) return static_cast<int>(below(120) - 5);
    const std::int64_t kind = below(10);
    return kind < 5 ? one_of(preserved_) : kind < 7 ? fp_ : kind < 9 ? one_of(scratch_) : ra_;
  }
  std::int64_t offset() {
    if (extremes_ && chance(20)) return static_cast<std::int64_t>(random_());
    return 8 * (below(24) - 8);
  }
  std::int64_t step() {
    const std::int64_t size = arch_.sp_granularity * (1 + below(6));
    return chance(30) ? size + 4 : size;
  }

  void begin(std::int32_t count) {
    out_.regions.push_back({count, {}, 0, -1});
    at_ = 0;
  }
  void op(int tag, std::int64_t when, int reg, std::int64_t value) {
    out_.regions.back().ops.push_back(_U_dyn_op(tag, 0, when, reg, value));
  }

  /// Writes a frame with prologue, body and epilogue, described in one of the usual ways.
  void frame() {
    const bool one_region = chance(2);
    begin(0);
    prologue();
    const bool labelled = chance(2);
    if (labelled) op(UNW_DYN_LABEL_STATE, chance(2) ? -1 : at_ - 1, 0, below(3));
    at_ += 1 + below(3);
    if (!one_region) next_region();
    const std::int64_t epilogues = 1 + below(3);
    for (std::int64_t i = 0; i < epilogues; ++i) {
      epilogue();
      at_ += 1;
      if (i + 1 == epilogues) break;
      if (!one_region) next_region();
      if (labelled && chance(2)) op(UNW_DYN_COPY_STATE, one_region ? at_ - 1 : -1, 0, below(3));
      at_ += below(3);
    }
    close();
    if (chance(6) && out_.regions.size() > 1) out_.regions.back().insn_count = -out_.regions.back().insn_count;
  }
  void close() {
    out_.regions.back().insn_count = static_cast<std::int32_t>(at_);
    units_ += at_;
  }
  void next_region() {
    close();
    begin(0);
    if (chance(8)) begin(0);
  }

  void prologue() {
    depth_ = arch_.entry_cfa;
    const std::int64_t saves = below(4);
    for (std::int64_t i = 0; i < saves; ++i) {
      const std::int64_t size = step();
      op(UNW_DYN_ADD, at_, sp_, -size);
      depth_ += size;
      const bool frame_pointer = i == 0 && chance(2);
      op(UNW_DYN_SPILL_SP_REL, at_, frame_pointer && !chance(10) ? fp_ : one_of(preserved_), 0);
      if (!arch_.ra_in_memory && i == 0) op(UNW_DYN_SPILL_SP_REL, at_, ra_, 8);
      ++at_;
      if (frame_pointer) {
        op(UNW_DYN_SAVE_REG, at_, sp_, chance(4) ? one_of(scratch_) : fp_);
        if (chance(4)) op(UNW_DYN_ADD, at_, fp_, 16);
        ++at_;
      }
    }
    if (chance(3)) op(UNW_DYN_ADD, at_, sp_, chance(3) ? std::numeric_limits<std::int64_t>::min() : -step()), ++at_;
    if (chance(4)) op(UNW_DYN_SPILL_SP_REL, at_, sp_, 8 * below(8)), ++at_;
    if (chance(3))
      op(chance(2) ? UNW_DYN_SPILL_FP_REL : UNW_DYN_SPILL_SP_REL, at_, one_of(preserved_), offset()), ++at_;
    if (chance(5)) op(UNW_DYN_SAVE_REG, at_, one_of(preserved_), one_of(scratch_)), ++at_;
  }

  void epilogue() {
    switch (below(5)) {
      case 0:
        op(UNW_DYN_POP_FRAMES, at_++, 0, 1 + (chance(4) ? below(3) : 0));
        break;
      case 1:
        op(UNW_DYN_SAVE_REG, at_, fp_, sp_);
        if (chance(2)) op(UNW_DYN_ADD, at_, sp_, chance(2) ? arch_.sp_granularity : -arch_.sp_granularity);
        ++at_;
        break;
      case 2:
        op(UNW_DYN_SAVE_REG, at_++, sp_, sp_);
        break;
      case 3:
        op(UNW_DYN_SAVE_REG, at_, fp_, fp_);
        ++at_;
        break;
      default:
        for (std::int64_t n = below(3); n-- > 0;) op(UNW_DYN_ADD, at_++, sp_, step());
    }
  }

  void thrown_together() {
    for (std::int64_t regions = below(5); regions-- > 0;) {
      const bool last = regions == 0;
      const std::int64_t count = chance(4) ? 0 : 1 + below(8);
      begin(static_cast<std::int32_t>((last && chance(4)) || (extremes_ && chance(20)) ? -count : count));
      units_ += count;
      for (std::int64_t n = below(10); n-- > 0;) any_op(count);
    }
  }

  void any_op(std::int64_t count) {
    const std::int64_t when = chance(6) ? -1 - below(2) : below(count + 2);
    if (extremes_ && chance(40)) {
      const auto tag = static_cast<int>(below(256)) - 128;
      return op(tag == UNW_DYN_ALIAS ? tag + 1 : tag, when, any_reg(), offset());  // ALIAS needs something to lead to
    }
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        return op(UNW_DYN_ADD, when, sp_,
                  chance(8)   ? std::numeric_limits<std::int64_t>::min()
                  : chance(3) ? step()
                              : -step());
      case 3:
        if (sign_ >= 0 && chance(2)) return op(UNW_DYN_ADD, when, sign_, below(3));
        return op(UNW_DYN_ADD, when, chance(2) ? fp_ : any_reg(), offset());
      case 4:
        return op(UNW_DYN_SAVE_REG, when, any_reg(), holder());
      case 5:
        return op(UNW_DYN_SAVE_REG, when, sp_, chance(2) ? fp_ : general_reg());
      case 6:
        return op(UNW_DYN_SAVE_REG, when, chance(3) ? sp_ : fp_, sp_);
      case 7:
        return op(UNW_DYN_SPILL_SP_REL, when, chance(5) ? sp_ : any_reg(), offset());
      case 8:
        return op(UNW_DYN_SPILL_FP_REL, when, any_reg(), offset());
      case 9:
        return op(UNW_DYN_POP_FRAMES, when, 0, below(4));
      case 10:
        return op(UNW_DYN_LABEL_STATE, when, 0, below(4));
      default:
        if (chance(10)) return op(UNW_DYN_STOP, when, 0, 0);
        return op(UNW_DYN_COPY_STATE, when, 0, below(4));
    }
  }
  int holder() {
    const int reg = any_reg();
    return reg == ra_ && arch_.ra == arch_.pc && !extremes_ ? fp_ : reg;
  }
  int general_reg() {
    const int reg = holder();
    const RegisterInfo* info = arch_.by_libunwind(reg);
    return info && info->reg_class != RegClass::general && !extremes_ ? fp_ : reg;
  }

  /// Omits, moves, changes, repeats or reorders directives.
  void mistakes() {
    for (std::int64_t n = 1 + below(3); n-- > 0;) {
      auto& region = out_.regions[static_cast<std::size_t>(below(static_cast<std::int64_t>(out_.regions.size())))];
      if (region.ops.empty()) continue;
      const auto i = below(static_cast<std::int64_t>(region.ops.size()));
      unw_dyn_op_t& op = region.ops[static_cast<std::size_t>(i)];
      switch (below(7)) {
        case 0:
          region.ops.erase(region.ops.begin() + i);
          break;
        case 1:
          op.when += static_cast<std::int32_t>(below(5) - 2);
          break;
        case 2:
          op.reg = static_cast<std::int16_t>(op.reg == sp_ || op.tag >= UNW_DYN_POP_FRAMES ? op.reg : any_reg());
          break;
        case 3:
          if (op.tag != UNW_DYN_SAVE_REG && op.val != UNW_DYN_ADD_UNKNOWN) op.val += 8;
          break;
        case 4:
          region.ops.insert(region.ops.begin() + i, region.ops[static_cast<std::size_t>(i)]);
          break;
        case 5:
          std::shuffle(region.ops.begin(), region.ops.end(), random_);
          break;
        default:
          region.insn_count += static_cast<std::int32_t>(below(3) - 1);
      }
    }
  }

  const Arch& arch_;
  std::mt19937_64& random_;
  bool extremes_;
  std::vector<int> preserved_, scratch_;
  int sp_ = 0, fp_ = 0, ra_ = 0, sign_ = -1;
  RandomDescription out_;
  std::int64_t at_ = 0;
  std::int64_t units_ = 0;
  std::int64_t depth_ = 0;
};

}  // namespace

RandomDescription random_description(const Arch& arch, std::mt19937_64& random, Extremes extremes) {
  return Maker(arch, random, extremes).make();
}

}  // namespace jitunwind::test
