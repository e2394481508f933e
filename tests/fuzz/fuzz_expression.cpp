// Input: a byte of options, then an expression. Options: bit 0 initial value, bit 1 other byte order, bit 2 words of
// four bytes. Memory is the input, at 0x1000.
#include "jitunwind/unwind_core/rows/dwarf_expression.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  Arch arch = arch::x86_64;
  arch.big_endian = (data[0] & 2) != 0;
  arch.word_size = (data[0] & 4) != 0 ? 4 : 8;
  RegisterFile registers;
  for (int column = 0; column < 16; column += 2) registers.set(column, 0x1000u + static_cast<unsigned>(column));
  const fuzz::InputMemory memory(bytes, 0x1000);
  MemoryWindow window;
  const auto initial = (data[0] & 1) != 0 ? std::optional<std::uint64_t>(0x1004) : std::nullopt;
  const auto value = evaluate(bytes.subspan(1), {arch, registers, memory, window, initial});
  if (value)
    fuzz::check(arch.word_size == 8 || *value <= 0xffffffffu, "a value is a word");
  else
    fuzz::check(value.error().at < size && *value.error().what != 0, "an error says where and what");
  return 0;
}
