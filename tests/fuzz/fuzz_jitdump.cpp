// Input: a byte, the size of the pieces that the file comes in; then a jitdump.
#include "jitunwind/sdk/dialects/jitdump.h"
#include "tests/fuzz/fuzz_check.h"

using namespace jitunwind;

namespace {

struct Seen {
  std::size_t records = 0;
  std::uint64_t sum = 0;
  std::size_t passed_by = 0;
  friend bool operator==(const Seen&, const Seen&) = default;
};

Seen read(std::span<const std::byte> file, std::size_t size) {
  Seen seen;
  JitDumpReader reader;
  for (; !file.empty(); file = file.subspan(std::min(size, file.size()))) {
    const Status read = reader.read(file.first(std::min(size, file.size())), [&](const JitDumpRecord& record) {
      ++seen.records;
      seen.sum +=
          record.code.begin + record.name.size() + record.bytes.size() + record.frames.size() + record.lines.size();
      fuzz::check(record.code.end >= record.code.begin && record.header_size <= record.frames.size(),
                  "code does not wrap");
      fuzz::check(record.bytes.empty() || record.bytes.size() == record.code.size(), "the code is all there");
    });
    fuzz::check(read || *read.error().what != 0, "an error says what");
  }
  seen.passed_by = reader.passed_by();
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto file = std::as_bytes(std::span(data, size)).subspan(1);
  fuzz::check(read(file, 1u + data[0]) == read(file, size), "pieces of any size say the same");
  return 0;
}
