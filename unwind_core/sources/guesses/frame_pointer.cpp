// A bold guess for code that no other source knows: the frame pointer points at a frame record,
//   caller.fp = *(fp + chain.saved_fp), caller.pc = *(fp + chain.return_address), cfa = fp + chain.cfa
// It is made only if every number in it is plausible. Code without frame pointers keeps arbitrary values in that
// register, and a wrong frame is worse than the end of the walk.
#include <algorithm>

#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

struct FrameRecord {
  Addr at;  ///< value of the frame pointer
  Addr saved_fp;
  Addr return_address;
};

/// The record must be in a possible place: aligned to a word, and not below SP, since memory below SP belongs to no
/// frame.
std::optional<FrameRecord> read_record(const Lookup& lookup) noexcept {
  const Arch& arch = lookup.space.arch;
  if (!lookup.registers || !arch.chain.exists()) return std::nullopt;
  const auto fp = lookup.registers->get(arch.column(arch.fp));
  const auto sp = lookup.registers->get(arch.column(arch.sp));
  if (!fp || !sp || *fp % arch.word_size != 0) return std::nullopt;
  const auto offset_from_fp = [&fp](std::int16_t offset) { return *fp + static_cast<Addr>(std::int64_t{offset}); };
  const Addr lowest = offset_from_fp(std::min(arch.chain.saved_fp, arch.chain.return_address));
  if (lowest < *sp || offset_from_fp(arch.chain.cfa) <= *sp) return std::nullopt;
  const Memory& memory = lookup.space.memory;
  const auto saved_fp = read_word(memory, lookup.window, offset_from_fp(arch.chain.saved_fp), arch, "frame record");
  const auto ra = read_word(memory, lookup.window, offset_from_fp(arch.chain.return_address), arch, "frame record");
  if (!saved_fp || !ra) return std::nullopt;
  return FrameRecord{*fp, *saved_fp, *ra & arch.address_mask};
}

bool is_plausible(const Lookup& lookup, const FrameRecord& record) noexcept {
  const AddressSpace& space = lookup.space;
  // Two zeros end a chain of records (AAPCS64, 6.4.6), but unrelated memory may have two zeros: a guess never ends a
  // stack.
  if (!is_after_call(space, lookup.window, record.return_address)) return false;
  // The caller's record is at a higher address, or there is none.
  const bool climbs = record.saved_fp > record.at && record.saved_fp % space.arch.word_size == 0;
  if (climbs || record.saved_fp == 0) return true;
  // A caller compiled with -fomit-frame-pointer may keep any value in the register. It is then code of a module, which
  // has unwind information; in code made at run time the walk would be lost.
  Module module;
  return space.modules.find(CodeAddress::returned_to(record.return_address).lookup(), module);
}

class FramePointerSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    if (lookup.guesses != Guesses::bold) return false;
    const auto record = read_record(lookup);
    if (!record || !is_plausible(lookup, *record)) return false;
    const Arch& arch = lookup.space.arch;
    out = {};
    out.cfa = CfaRule::at(arch.fp, arch.chain.cfa);
    out.ra = arch.ra;
    out.origin = RowOrigin::frame_pointer;
    const bool fits = out.set(arch.fp, RegRule::at_cfa(arch.chain.saved_fp - arch.chain.cfa)) &&
                      out.set(arch.ra, RegRule::at_cfa(arch.chain.return_address - arch.chain.cfa));
    if (!fits) return Error{ErrorCode::row_too_wide, lookup.at.value(), "frame record"};
    return true;
  }
};

constinit const FramePointerSource k_frame_pointer;

}  // namespace

[[gnu::hot]] const RowSource& frame_pointer_source() noexcept { return k_frame_pointer; }

}  // namespace jitunwind
