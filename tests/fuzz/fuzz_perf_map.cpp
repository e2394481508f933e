// Input: a byte, the length of pieces, then a perf map. It gives the same in pieces as in whole.
#include <string>
#include <vector>

#include "jitunwind/sdk/dialects/perf_map.h"
#include "tests/fuzz/fuzz_memory.h"

using namespace jitunwind;

namespace {

struct Read {
  std::vector<std::pair<AddrRange, std::string>> said;
  std::size_t passed_by = 0;
  bool operator==(const Read&) const = default;
};

Read read(std::string_view text, std::size_t piece) {
  Read out;
  PerfMapReader reader;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    reader.read(text.substr(0, piece), [&](const NamedCode& code) {
      fuzz::check(code.code.begin < code.code.end, "there is code");
      fuzz::check(!code.name.empty() && code.name.find_first_of(std::string_view("\0\n", 2)) == std::string_view::npos,
                  "there is a name");
      out.said.emplace_back(code.code, code.name);
    });
  }
  out.passed_by = reader.passed_by();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const fuzz::MemoryLimit limit(size);
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  fuzz::check(read(text, 1 + data[0]) == read(text, text.size() + 1), "pieces say what the whole says");
  return 0;
}
