// Two bold guesses for interrupted pcs without any information. Both assume that nothing has been pushed since the
// call, so that the row is that of a procedure's first instruction. The return address must follow a call.
//   bad_call: the pc is no code; a call through a bad pointer was made an instant ago.
//   leaf: the pc is code; procedures that call nothing need no unwind information, and most of them touch no stack.
#include "jitunwind/unwind_core/sources/guesses/entry_guess_p.h"

#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {

std::optional<Addr> return_address_at_entry(const Lookup& lookup) noexcept {
  const Arch& arch = lookup.space.arch;
  if (!lookup.registers) return std::nullopt;
  if (!arch.ra_in_memory) {
    const auto link = lookup.registers->get(arch.column(arch.ra));
    return link ? std::optional(*link & arch.address_mask) : std::nullopt;
  }
  const auto sp = lookup.registers->get(arch.column(arch.sp));
  if (!sp) return std::nullopt;
  const Addr slot = *sp + static_cast<Addr>(std::int64_t{arch.entry_cfa} + arch.entry_ra);
  const auto word = read_word(lookup.space.memory, lookup.window, slot, arch, "return address at entry");
  return word ? std::optional(*word & arch.address_mask) : std::nullopt;
}

Found guess_entry_row(const Lookup& lookup, std::optional<Addr> ra, RowOrigin origin, FrameRow& out) noexcept {
  if (!ra || !is_after_call(lookup.space, lookup.window, *ra)) return false;
  out = entry_row(lookup.space.arch);
  out.origin = origin;
  return true;
}

namespace {

/// Whether the call before `ra` has a known target, and the pc is not far after it. Precondition: ra != 0.
bool calls_into(const Lookup& lookup, Addr ra) noexcept {
  constexpr Addr k_leaf_size = 4096;
  const Arch& arch = lookup.space.arch;
  const CodeBefore code(ra, lookup.space.memory, lookup.window);
  const CodePattern* const call = code.find_call(arch);
  if (!call || call->displacement == 0) return false;
  if (!is_code(lookup.space, lookup.window, CodeAddress::returned_to(ra).lookup())) return false;
  const std::uint32_t field = ByteReader(code.last(call->displacement), arch.big_endian).u32();
  const Addr target = ra + static_cast<Addr>(std::int64_t{static_cast<std::int32_t>(field)});
  return lookup.at.value() - target < k_leaf_size;
}

class BadCallSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    if (lookup.guesses != Guesses::bold || lookup.at.is_return_address()) return false;
    if (is_code(lookup.space, lookup.window, lookup.at.value())) return false;
    return guess_entry_row(lookup, return_address_at_entry(lookup), RowOrigin::bad_call, out);
  }
};

class LeafSource final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    if (lookup.guesses != Guesses::bold || lookup.at.is_return_address()) return false;
    const auto ra = return_address_at_entry(lookup);
    if (!ra || *ra == 0) return false;
    // The top of the stack may be an old return address in a slot that is not written yet. A call to just above the pc
    // is evidence enough; any other counts only if no frame record contradicts it.
    if (!calls_into(lookup, *ra)) {
      const Found record = frame_pointer_source().find_row(lookup, out);
      if (!record || *record) return record;
    }
    return guess_entry_row(lookup, ra, RowOrigin::leaf, out);
  }
};

constinit const BadCallSource k_bad_call;
constinit const LeafSource k_leaf;

}  // namespace

[[gnu::hot]] const RowSource& bad_call_source() noexcept { return k_bad_call; }
[[gnu::hot]] const RowSource& leaf_source() noexcept { return k_leaf; }

}  // namespace jitunwind
