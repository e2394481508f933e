// Signal trampolines, recognised by their code. A handler returns to a trampoline with SP at the frame that the kernel
// pushed. The frame holds a ucontext_t with every register of the interrupted code:
//   caller.r = *(sp + sigframe_ucontext + cfa_offset of the pattern + RegisterInfo::ucontext of r), SP and pc included
//   cfa      = caller.sp
// Vector registers are in one of the records behind (ContextRecords); the search skips the others by their sizes.
#include <array>
#include <optional>

#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

/// The address is looked up unchanged, since a handler returns to the trampoline's first byte, which no call precedes.
/// An interrupted pc may be in data with the same bytes, so it must be code. The address of a caller was checked before
/// (AddressSpace::expect_code).
const CodePattern* find_trampoline(const Lookup& lookup, std::optional<Addr>* cut_off = nullptr) noexcept {
  const AddressSpace& space = lookup.space;
  if (space.arch.sigframe_ucontext < 0) return nullptr;
  const Addr pc = lookup.at.value();
  const CodePattern* const trampoline = find_pattern(space.arch.trampolines, pc, space.memory, lookup.window, cut_off);
  const bool is_met = trampoline || (cut_off && *cut_off);
  if (!is_met || lookup.at.is_return_address() || is_code(space, lookup.window, pc)) return trampoline;
  if (cut_off) cut_off->reset();
  return nullptr;
}

/// The distance from SP at the trampoline to its ucontext_t.
std::int64_t ucontext_of(const CodePattern& trampoline, const Arch& arch) noexcept {
  return std::int64_t{arch.sigframe_ucontext} + trampoline.cfa_offset;
}

/// Returns how much further the vector registers are than in a ucontext_t whose first record holds them. Returns
/// nothing when they are not found.
std::optional<std::int64_t> find_vectors(Addr ucontext, const Lookup& lookup) noexcept {
  const Arch& arch = lookup.space.arch;
  const ContextRecords& records = *arch.records;
  constexpr std::uint32_t k_head = 8;
  const Addr first = ucontext + static_cast<Addr>(std::int64_t{records.first});
  for (std::uint32_t offset = 0; offset + records.size <= records.room;) {
    std::array<std::byte, k_head> head;
    if (lookup.space.memory.read(first + offset, head, lookup.window) != head.size()) break;
    ByteReader reader(head, arch.big_endian);
    const std::uint32_t kind = reader.u32();
    const std::uint32_t size = reader.u32();
    if (kind == records.kind && size == records.size) return offset;
    if (kind == 0 || size < k_head || size > records.room) break;
    offset += size;
  }
  return std::nullopt;
}

class SignalFrameSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    std::optional<Addr> cut_off;
    const CodePattern* const trampoline = find_trampoline(lookup, &cut_off);
    // If the code can be read only in part, no other source knows more, and a guess would misread the frame.
    if (!trampoline && cut_off) return unreadable(lookup.window, *cut_off, "code of a signal trampoline");
    if (!trampoline) return false;
    const Arch& arch = lookup.space.arch;
    out = {};
    out.range = range_of(*trampoline, lookup.at.value());
    out.origin = RowOrigin::signal_frame;
    out.signal_frame = true;
    out.ra = arch.ra;
    std::optional<std::int64_t> vectors;
    const auto sp = lookup.registers ? lookup.registers->get(arch.column(arch.sp)) : std::nullopt;
    const std::int64_t ucontext = ucontext_of(*trampoline, arch);
    if (arch.records && sp) vectors = find_vectors(*sp + static_cast<Addr>(ucontext), lookup);
    for (const RegisterInfo& r : arch.registers) {
      const bool is_vector = r.reg_class == RegClass::vector;
      if (r.ucontext < 0 || (is_vector && !vectors)) continue;
      const std::int64_t offset = ucontext + r.ucontext + (is_vector ? *vectors + arch.low_half() : 0);
      if (r.dwarf == arch.sp) out.cfa = CfaRule::deref(arch.sp, offset, 0);
      if (!out.set(r.dwarf, RegRule::at_reg(arch.sp, offset)))
        return Error{ErrorCode::row_too_wide, lookup.at.value(), "signal frame"};
    }
    return true;
  }

  Found find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept override {
    return procedure_of(find_trampoline(lookup), lookup.at.value(), RowOrigin::signal_frame, out);
  }
};

constinit const SignalFrameSource k_signal_frame;

}  // namespace

[[gnu::hot]] const RowSource& signal_frame_source() noexcept { return k_signal_frame; }

}  // namespace jitunwind
