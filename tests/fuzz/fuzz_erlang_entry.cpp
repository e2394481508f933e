// Input: a byte, bit 0 the byte order; then an entry of GDB's list as Erlang makes them.
#include "jitunwind/sdk/dialects/jit_files/erlang_entry.h"
#include "tests/fuzz/fuzz_memory.h"

using namespace jitunwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const fuzz::MemoryLimit limit(size);
  Arch arch = *all_arches()[0];
  arch.big_endian = (data[0] & 1) != 0;
  const auto entry = read_erlang_entry(std::as_bytes(std::span(data, size)).subspan(1), arch);
  if (!entry) {
    fuzz::check(*entry.error().what != 0, "an error says what");
    return 0;
  }
  fuzz::check(entry->emulator.has_value() == entry->code.empty(), "an entry is of the emulator or of a module");
  fuzz::check(16 * entry->ranges.size() <= size, "the work is bounded");
  Addr before = 0;
  for (const ErlangEntry::Range& range : entry->ranges) {
    fuzz::check(!range.code.empty() && range.code.begin >= entry->code.begin && range.code.end <= entry->code.end,
                "a range is code of the module");
    fuzz::check(range.code.begin >= before && range.name.size() <= 4096, "ranges ascend, names are cut");
    before = range.code.begin;
    (void)range.lines.find(range.code.size() - 1);
  }
  return 0;
}
