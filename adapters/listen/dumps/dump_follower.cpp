#include "jitunwind/adapters/listen/dumps/dump_follower_p.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_most_dumps = 16;
constexpr std::size_t k_most_described = std::size_t{1} << 20;

}  // namespace

void DumpFollower::find_dumps() {
  const Mappings mappings = ProcessFolder::own().mappings();
  for (const Mapping& mapping : mappings.all()) {
    if (!is_jitdump(mapping.path) || !mapping.executable || mapping.deleted || dumps_.size() == k_most_dumps) continue;
    if (std::ranges::none_of(dumps_, [&](const Dump& dump) { return dump.file.path() == mapping.path; }))
      dumps_.push_back({GrowingFile(mapping.path)});
  }
}

/// If the frames of the code are announced, the name is that of all code they describe.
void DumpFollower::tell(const AddrRange& code, std::string_view name, DumpedFrames&& frames, SourceLines&& lines) {
  forget_overlapped(code);
  bool is_described = false;
  if (!frames.empty() && described_.size() != k_most_described) {
    Described& described = described_[code.begin];
    described = {code, std::string(name), std::move(frames), lines};
    described.entries = described.frames.write(code, *host_arch(), described.written);
    for (const DumpedFrames::Entry& entry : described.entries)
      describe_code(entry.code, name, described.address_of(entry));
    is_described = !described.entries.empty();
    if (!is_described) described_.erase(code.begin);
  }
  if (!is_described) name_code(code, name);
  add_lines(code.begin, std::move(lines));
}

std::map<Addr, DumpFollower::Described>::iterator DumpFollower::forget(std::map<Addr, Described>::iterator described) {
  for (const DumpedFrames::Entry& entry : described->second.entries)
    forget_description(entry.code.begin, described->second.address_of(entry));
  return described_.erase(described);
}

void DumpFollower::forget_overlapped(const AddrRange& code) {
  auto at = described_.lower_bound(code.begin);
  if (at != described_.begin() && std::prev(at)->second.code.end > code.begin) --at;
  while (at != described_.end() && at->first < code.end) at = forget(at);
}

void DumpFollower::forget_unmapped() {
  for (std::size_t i = std::min(k_looked_at_each_time, described_.size()); i != 0; --i) {
    auto next = described_.upper_bound(looked_at_);
    if (next == described_.end()) next = described_.begin();
    looked_at_ = next->first;
    if (!is_mapped(looked_at_)) forget(next);
    if (described_.empty()) return;
  }
}

void DumpFollower::hear(const JitDumpRecord& record) {
  switch (record.kind) {
    case JitDumpRecord::Kind::load:
      return tell(record.code, record.name, DumpedFrames(record), lines_.take(record.code.begin));
    case JitDumpRecord::Kind::lines:
      return lines_.keep(record);
    case JitDumpRecord::Kind::move:
      const auto known = described_.find(record.from);
      if (known == described_.end()) return move_name(record.from, record.code);
      Described moved = std::move(known->second);
      for (const DumpedFrames::Entry& entry : moved.entries)
        forget_description(entry.code.begin, moved.address_of(entry));
      described_.erase(known);
      return tell(record.code, moved.name, std::move(moved.frames), std::move(moved.lines));
  }
}

void DumpFollower::look(uid_t owner) {
  if (looks_++ % k_looks_in_a_second == 0) find_dumps();
  for (Dump& dump : dumps_) {
    const auto take = [&](std::span<const std::byte> piece) {
      const auto take_record = [&](const JitDumpRecord& record) {
        if (!dump.reader.is_own()) hear(record);
      };
      if (const Status read = dump.reader.read(piece, take_record); !read) note_unheard(read.error());
    };
    (void)dump.file.read(~std::uint64_t{0}, owner, take, [&] { dump.reader.restart(); });
  }
  forget_unmapped();
}

MapFollower::MapFollower() : file_("/tmp/perf-" + std::to_string(::getpid()) + ".map") {}

/// Another user may have created the file before this process got its number.
void MapFollower::look(uid_t owner) {
  const auto take = [this](std::span<const std::byte> piece) {
    reader_.read({reinterpret_cast<const char*>(piece.data()), piece.size()}, [](const NamedCode& said) {
      if (!said.is_own) name_code(said.code, said.name);
    });
  };
  (void)file_.read(~std::uint64_t{0}, owner, take, [this] { reader_.restart(); });
}

}  // namespace jitunwind
