// Input: a byte of options (bit 0: big-endian), the number of entries, then .ARM.exidx with what follows it in memory.
#include "jitunwind/unwind_core/sources/arm_exidx.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/support/fake_space.h"

using namespace jitunwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Arch arch = with_byte_order(arch::arm, (data[0] & 1) != 0);
  const std::span bytes = std::as_bytes(std::span(data + 2, size - 2));
  constexpr Addr k_table = 0x8000;
  test::FakeMemory memory(arch.big_endian);
  memory.put_bytes(k_table, bytes);
  const NoModules modules;
  const AddressSpace space{arch, memory, modules, {}, {}};
  const SectionBytes exidx{bytes.first(std::min<std::size_t>(bytes.size(), 8u * data[1])), k_table};
  for (const Addr pc : {Addr{0}, Addr{0x7fff}, k_table, Addr{0x9000}, Addr{0xffff'ffff}}) {
    MemoryWindow window;
    Lookup lookup(space, CodeAddress::interrupted(pc), window);
    FrameRow row;
    const Found found = find_exidx_row(exidx, pc, lookup, row);
    if (!found) fuzz::check(*found.error().what != 0, "an error says what");
    if (!found || !*found) continue;
    fuzz::check(row.range.contains(pc), "the row holds for what was asked");
    fuzz::check(row.cfa.kind != CfaRule::Kind::none && row.cfa.reg < 15, "the CFA is told by a register");
    for (const FrameRow::Entry& entry : row.entries())
      fuzz::check(arch.by_dwarf(entry.reg) != nullptr, "registers are the CPU's");
  }
  return 0;
}
