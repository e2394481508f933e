// Input: the text of /proc/PID/maps.
#include <string>

#include "jitunwind/unwind_core/targets/mappings.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Mappings mappings = Mappings::parse(text);
  Addr end = 0;
  for (const Mapping& mapping : mappings.all()) {
    fuzz::check(!mapping.range.empty(), "a mapping has bytes");
    fuzz::check(mapping.range.begin >= end, "mappings ascend and do not overlap");
    end = mapping.range.end;
    fuzz::check(mappings.find(mapping.range.begin) == &mapping, "its first byte is its");
    fuzz::check(mappings.find(mapping.range.end - 1) == &mapping, "its last byte is its");
    fuzz::check(mappings.find(mapping.range.end) != &mapping, "the byte behind it is not");
  }
  // Lines are independent: in another order, or twice, they mean the same if none overlap.
  fuzz::check(Mappings::parse(text + "\n" + text) == mappings, "what is said twice is said");
  return 0;
}
