// Input: a byte, the size of the pieces that the file arrives in; then a jitdump.
#include "jitunwind/sdk/dialects/frames/dumped_frames.h"
#include "jitunwind/sdk/dialects/jitdump.h"
#include "tests/fuzz/fuzz_memory.h"

using namespace jitunwind;

namespace {

struct Seen {
  std::size_t records = 0;
  std::uint64_t sum = 0;
  std::size_t passed_by = 0;
  friend bool operator==(const Seen&, const Seen&) = default;
};

/// Queries the call frame information of code that a record loads.
void ask(const JitDumpRecord& record) {
  const Arch& arch = *all_arches()[0];
  const DumpedFrames frames(record);
  FrameRow row;
  const Addr at = record.code.begin;
  if (const Found found = frames.find_row(record.code, at, arch, row); found && *found)
    fuzz::check(row.range.contains(at), "a row is of the address");
  std::vector<std::byte> written;
  for (const DumpedFrames::Entry& entry : frames.write(record.code, arch, written)) {
    fuzz::check(
        entry.fde < written.size() && entry.code.begin >= record.code.begin && entry.code.end <= record.code.end,
        "an entry is of the code");
    ProcedureInfo procedure;
    const Found known = frames.find_procedure(record.code, entry.code.begin, arch, procedure);
    fuzz::check(known && *known && procedure.range.contains(entry.code.begin), "an entry is found");
  }
}

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
      if (!record.frames.empty()) ask(record);
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
  const fuzz::MemoryLimit limit(size);
  const auto file = std::as_bytes(std::span(data, size)).subspan(1);
  fuzz::check(read(file, 1u + data[0]) == read(file, size), "pieces of any size say the same");
  return 0;
}
