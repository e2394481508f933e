#include "jitunwind/sdk/targets/jit_names_p.h"

#include <algorithm>
#include <new>
#include <optional>

namespace jitunwind {
namespace {

constexpr std::size_t k_most_names = std::size_t{1} << 20;
constexpr std::size_t k_most_dumps = 16;

}  // namespace

void JitNames::add(const AddrRange& code, std::shared_ptr<const Told> told) const {
  if (all_.size() == k_most_names) return;
  latest_[code.begin] = all_.size();
  all_.push_back({code, std::move(told)});
}

/// Code keeps its last name when it is moved. Records of lines precede the record of their code.
void JitNames::take_record(const JitDumpRecord& record) const {
  switch (record.kind) {
    case JitDumpRecord::Kind::load: {
      SourceLines lines = lines_.take(record.code.begin);
      if (!record.name.empty() || !record.frames.empty())
        add(record.code,
            std::make_shared<Told>(Told{std::string(record.name), std::move(lines), DumpedFrames(record)}));
      break;
    }
    case JitDumpRecord::Kind::move:
      if (const auto moved = latest_.find(record.from); moved != latest_.end())
        add(record.code, all_[moved->second].told);
      break;
    case JitDumpRecord::Kind::lines:
      lines_.keep(record);
      break;
  }
}

void JitNames::read_map() const {
  if (map_.path().empty() && !map_path_.empty()) map_ = GrowingFile(map_path_, files_.root());
  const auto take = [this](std::span<const std::byte> piece) {
    map_reader_.read({reinterpret_cast<const char*>(piece.data()), piece.size()}, [this](const NamedCode& said) {
      add(said.code, std::make_shared<Told>(Told{std::string(said.name)}));
    });
  };
  room_ -= map_.read(room_, owner_, take, [this] { map_reader_.restart(); });
}

void JitNames::read_dump(Dump& dump) const {
  const auto take = [&](std::span<const std::byte> piece) {
    (void)dump.reader.read(piece, [this](const JitDumpRecord& record) { take_record(record); });
  };
  room_ -= dump.file.read(room_, owner_, take, [&] { dump.reader.restart(); });
}

void JitNames::find_dumps() const {
  for (const Mapping& mapping : mappings_.all()) {
    if (!is_jitdump(mapping.path) || !mapping.executable || dumps_.size() == k_most_dumps) continue;
    const HostPath found = files_.host_path(mapping);
    const bool is_known = std::ranges::any_of(dumps_, [&](const Dump& dump) { return dump.file.path() == found.path; });
    if (!found.empty() && !is_known) dumps_.push_back({GrowingFile(found.path, found.root)});
  }
}

void JitNames::look() const noexcept try {
  if (std::exchange(has_looked_, true)) return;
  const std::size_t before = all_.size();
  read_map();
  find_dumps();
  for (Dump& dump : dumps_) read_dump(dump);
  if (all_.size() == before && index_.is_known()) return;
  std::vector<ListIndex::Procedure> newest_first;
  newest_first.reserve(all_.size());
  for (std::size_t i = all_.size(); i-- != 0;) newest_first.push_back({all_[i].code, i + 1});
  (void)index_.make(0, 0, newest_first);
} catch (const std::bad_alloc&) {
  index_.forget();
}

void JitNames::forget() noexcept {
  has_looked_ = false;
  map_ = GrowingFile();
  map_reader_.restart();
  dumps_.clear();
  all_.clear();
  latest_.clear();
  lines_ = {};
  index_.forget();
}

const JitNames::Named* JitNames::named_at(Addr at) const noexcept {
  look();
  const Addr number = index_.is_known() ? index_.find(at) : 0;
  return number == 0 ? nullptr : &all_[static_cast<std::size_t>(number - 1)];
}

const JitNames::Named* JitNames::named_at(Lookup& lookup) const noexcept {
  return lookup.module() ? nullptr : named_at(lookup.at.lookup());
}

Found JitNames::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  const Named* const named = named_at(lookup);
  return named != nullptr ? named->told->frames.find_row(named->code, lookup.at.lookup(), arch_, out) : Found(false);
}

Found JitNames::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  const Named* const named = named_at(lookup);
  return named != nullptr ? named->told->frames.find_procedure(named->code, lookup.at.lookup(), arch_, out)
                          : Found(false);
}

Found JitNames::find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept {
  const Named* const named = named_at(lookup);
  if (named == nullptr || named->told->name.empty()) return false;
  write_name(named->told->name, into, out);
  out.start = named->code.begin;
  return true;
}

std::optional<SourceLine> JitNames::find_line(Addr at) const {
  const Named* const named = named_at(at);
  return named == nullptr ? std::nullopt : named->told->lines.find(at - named->code.begin);
}

void JitNames::append_described_code(std::vector<AddrRange>& out) const {
  look();
  for (const Named& named : all_)
    if (!named.told->frames.empty() && named_at(named.code.begin) == &named) out.push_back(named.code);
}

}  // namespace jitunwind
