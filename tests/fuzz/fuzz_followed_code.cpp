// Input: places of pc, SP and frame pointer in what follows (2 bytes each), a byte of options, then memory: code and
// stack. Options: bit 0 the pc is a return address; bits 1 and 2 the CPU. A link register has the frame pointer's
// place.
#include <array>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/sources/sources.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

namespace {

constexpr Addr k_memory = 0x10000;
const std::array<const Arch*, 4> k_arches{&arch::x86_64, &arch::aarch64, &arch::x86, &arch::aarch64};

/// The length of each instruction is at most the rest of the memory, whatever its bytes are.
void read_instructions(const Arch& arch, std::span<const std::byte> code) {
  for (std::size_t at = 0; at < code.size(); ++at) {
    const MachineInstruction i = arch.read_instruction(code.subspan(at), k_memory + at);
    fuzz::check(i.length <= 15 && i.length <= code.size() - at, "an instruction ends where its bytes do");
    fuzz::check(i.length != 0 || i.effect == MachineInstruction::Effect::unknown, "what has no length is unknown");
    const auto again = arch.read_instruction(code.subspan(at, i.length), k_memory + at);
    fuzz::check(again.length == i.length && again.effect == i.effect, "no byte behind it counts");
  }
}

/// The caller that a guess finds is above the frame, and its address is the confirmed word.
void expect_sound(const Arch& arch, const FrameRow& row, const RegisterFile& registers, const Memory& memory) {
  fuzz::check(is_guess(row.origin), "a guess says that it is one");
  MemoryWindow window;
  Caller caller;
  fuzz::check(bool(apply_row(row, registers, arch, memory, window, caller)), "a guess can be applied");
  fuzz::check(!caller.outermost && caller.pc != 0, "a guess is no end of a stack");
  const Addr sp = *registers.get(arch.column(arch.sp));
  fuzz::check(caller.cfa > sp || (caller.cfa == sp && !arch.ra_in_memory), "callers are above");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t k_head = 7;
  if (size < k_head) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(k_head);
  const auto place = [&](std::size_t at) { return k_memory + (unsigned{data[at]} | unsigned{data[at + 1]} << 8u); };
  const Arch& arch = *k_arches[data[6] >> 1 & 3];
  read_instructions(arch, bytes);

  const fuzz::InputMemory memory(bytes, k_memory);
  const NoModules modules;
  const AddressSpace space{arch, memory, modules, {}, {}};
  RegisterFile registers;
  for (const RegisterInfo& reg : arch.registers)
    if (RegisterFile::has(reg.column)) registers.set(reg.column, place(0));
  registers.set(arch.column(arch.sp), place(2));
  registers.set(arch.column(arch.fp), place(4));
  if (!arch.ra_in_memory) registers.set(arch.column(arch.ra), place(4));
  const bool returned = (data[6] & 1) != 0;
  for (const Guesses guesses : {Guesses::confirmed, Guesses::bold}) {
    MemoryWindow window;
    Lookup lookup(space, returned ? CodeAddress::returned_to(place(0)) : CodeAddress::interrupted(place(0)), window,
                  &registers, guesses);
    FrameRow row;
    for (const RowSource* source :
         {&followed_code_source(), &bad_call_source(), &leaf_source(), &frame_pointer_source()})
      if (const Found found = source->find_row(lookup, row); found && *found)
        expect_sound(arch, row, registers, memory);
  }
  return 0;
}
