#include "jitunwind/adapters/listen/dumps/dump_follower_p.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/unwind_core/targets/mappings.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_most_dumps = 16;

std::string read_own_maps() {
  const ReadableFile file("/proc/self/maps");
  std::string text;
  std::array<char, 4096> piece;
  for (long size; file.is_open() && (size = file.read(piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(size));
  return text;
}

void hear(const JitDumpRecord& record) {
  if (record.kind == JitDumpRecord::Kind::load) name_code(record.code, record.name);
  if (record.kind == JitDumpRecord::Kind::move) move_name(record.from, record.code);
}

}  // namespace

void DumpFollower::find_dumps() {
  const Mappings mappings = Mappings::parse(read_own_maps());
  for (const Mapping& mapping : mappings.all()) {
    if (!is_jitdump(mapping.path) || !mapping.executable || mapping.deleted || dumps_.size() == k_most_dumps) continue;
    if (std::ranges::none_of(dumps_, [&](const Dump& dump) { return dump.file.path() == mapping.path; }))
      dumps_.push_back({GrowingFile(mapping.path)});
  }
}

void DumpFollower::look() {
  if (looks_++ % k_looks_in_a_second == 0) find_dumps();
  for (Dump& dump : dumps_) {
    const auto take = [&](std::span<const std::byte> piece) {
      if (const Status read = dump.reader.read(piece, hear); !read) note_unheard(read.error());
    };
    (void)dump.file.read(~std::uint64_t{0}, ::geteuid(), take, [&] { dump.reader.restart(); });
  }
}

}  // namespace jitunwind
