// Input: a byte, bit 0 the byte order; then .debug_line, whose bytes also serve as the sections of strings.
#include "jitunwind/sdk/dialects/jit_files/debug_lines.h"
#include "tests/fuzz/fuzz_memory.h"

using namespace jitunwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const fuzz::MemoryLimit limit(size);
  const auto section = std::as_bytes(std::span(data, size)).subspan(1);
  const DebugLines lines({section, section, section, (data[0] & 1) != 0});
  for (const Addr at : {Addr{0}, Addr{0x1000}, Addr{0x401136}, ~Addr{0}}) {
    const auto line = lines.find(at);
    fuzz::check(!line || line->file.size() <= 2 * 4096 + 1, "names are cut");
    const SourceLines some = lines.within({at, at + 16});
    fuzz::check(!line || at == ~Addr{0} || some.find(0)->line == line->line, "both say the same");
  }
  return 0;
}
