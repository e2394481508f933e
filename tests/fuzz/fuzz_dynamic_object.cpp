// Input: a byte of options, two with the place of the dynamic section, then the memory of a loaded object from k_begin
// on. Options: bit 0 AArch64, bit 1 big-endian (AArch64 only), bit 2 relocated in place: addresses in the section are
// those of run time.
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

namespace {

constexpr Addr k_begin = 0x7f0000000000;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const auto input = std::as_bytes(std::span(data, size));
  const unsigned options = data[0];
  const Arch arch = (options & 1) != 0 ? with_byte_order(arch::aarch64, (options & 2) != 0) : arch::x86_64;
  const fuzz::InputMemory memory(input.subspan(3), k_begin);
  const Addr bias = (options & 4) != 0 ? 0 : k_begin;
  DynamicObject object(memory, arch, bias, k_begin + data[1] + 256u * data[2]);
  for (const std::string_view name : {"second", "first", "_Unwind_Find_FDE"}) {
    const auto found = object.find_function(name);
    if (!found) continue;
    const auto again = object.find_function(name);
    // Nothing more is read after a read has failed.
    if (again) fuzz::check(again->symbol == found->symbol && again->address == found->address, "a function stays");
    fuzz::check(object.find_slot(*found) % arch.word_size == 0, "a slot is a word");
  }
  (void)object.stays_loaded();
  return 0;
}
