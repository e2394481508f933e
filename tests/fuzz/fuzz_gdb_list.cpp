// Input: a byte, bit 0 words of 4 bytes, bit 1 the byte order; then the target's memory, GDB's descriptor first.
#include "jitunwind/sdk/dialects/gdb_list.h"
#include "tests/fuzz/fuzz_memory.h"

using namespace jitunwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const fuzz::MemoryLimit limit(size);
  constexpr Addr k_memory = 0x1000;
  Arch arch = *all_arches()[0];
  if ((data[0] & 1) != 0) arch.word_size = 4;
  if ((data[0] & 2) != 0) arch.big_endian = true;
  const fuzz::InputMemory memory(std::as_bytes(std::span(data, size)).subspan(1), k_memory);
  const auto list = read_gdb_list(k_memory, memory, arch);
  if (!list) {
    fuzz::check(*list.error().what != 0, "an error says what");
    return 0;
  }
  fuzz::check(!list->broken || *list->broken->what != 0, "what is broken is said");
  // An entry may begin at any byte: a ring has at most so many entries, and is followed at most three times.
  fuzz::check(list->entries.size() <= 3 * size, "the work is bounded");
  for (const GdbListEntry& entry : list->entries)
    fuzz::check(entry.file != 0 && entry.size != 0, "an entry has a file");
  return 0;
}
