#include "jitunwind/sdk/targets/jit_names_p.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>

#include "jitunwind/unwind_core/uncancelled_p.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_most_names = std::size_t{1} << 20;
constexpr std::size_t k_most_dumps = 16;

/// "jit-PID.dump", of which a page is mapped so that its code is found in a profile.
bool is_dump(const Mapping& mapping) noexcept {
  const std::string_view path = mapping.path;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return mapping.executable && mapping.is_of_file() && name.starts_with("jit-") && name.ends_with(".dump");
}

}  // namespace

void JitNames::add(const AddrRange& code, std::string_view name) const {
  if (all_.size() < k_most_names) all_.push_back({code, std::string(name)});
}

/// What was moved keeps the name that it had last.
void JitNames::take_record(const JitDumpRecord& record) const {
  if (record.kind == JitDumpRecord::Kind::load && !record.name.empty()) return add(record.code, record.name);
  if (record.kind != JitDumpRecord::Kind::move) return;
  const auto moved =
      std::find_if(all_.rbegin(), all_.rend(), [&](const Named& n) { return n.code.begin == record.from; });
  if (moved != all_.rend()) add(record.code, std::string(moved->name));
}

/// What has come since it was read last. A file that is another, or was cut, is not read any more: what it was is told
/// already.
template <class Take>
void JitNames::read_more(Followed& followed, Take take) const {
  if (followed.path.empty()) return;
  const ReadableFile file(followed.path.c_str(), O_NONBLOCK | O_NOFOLLOW);
  struct stat now {};
  if (!file.is_open() || ::fstat(file.number(), &now) != 0 || !S_ISREG(now.st_mode)) return;
  if (followed.inode == 0) followed.inode = now.st_ino;
  if (followed.inode != now.st_ino) return;
  std::array<std::byte, 16384> piece;
  while (room_ >= piece.size() && followed.read < static_cast<std::uint64_t>(now.st_size)) {
    const long size = ::syscall(SYS_pread64, file.number(), piece.data(), piece.size(), followed.read);
    if (size <= 0) return;
    followed.read += static_cast<std::uint64_t>(size);
    room_ -= static_cast<std::uint64_t>(size);
    take(std::span(piece).first(static_cast<std::size_t>(size)));
  }
}

void JitNames::find_dumps() const {
  for (const Mapping& mapping : mappings_.all()) {
    if (!is_dump(mapping) || dumps_.size() == k_most_dumps) continue;
    const std::string path = files_.host_path(mapping);
    if (path.empty() || std::ranges::any_of(dumps_, [&](const auto& dump) { return dump->path == path; })) continue;
    dumps_.push_back(std::make_unique<Dump>());
    dumps_.back()->path = path;
  }
}

void JitNames::look() const noexcept try {
  if (std::exchange(has_looked_, true)) return;
  const std::size_t before = all_.size();
  read_more(map_, [this](std::span<const std::byte> piece) {
    map_reader_.read({reinterpret_cast<const char*>(piece.data()), piece.size()},
                     [this](const NamedCode& said) { add(said.code, said.name); });
  });
  find_dumps();
  for (const auto& dump : dumps_)
    read_more(*dump, [&](std::span<const std::byte> piece) {
      (void)dump->reader.read(piece, [this](const JitDumpRecord& record) { take_record(record); });
    });
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
  map_ = {.path = std::move(map_.path)};
  map_reader_.restart();
  dumps_.clear();
  all_.clear();
  index_.forget();
}

Found JitNames::find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept {
  if (lookup.module()) return false;
  look();
  const Addr number = index_.is_known() ? index_.find(lookup.at.lookup()) : 0;
  if (number == 0) return false;
  const Named& named = all_[static_cast<std::size_t>(number - 1)];
  write_name(named.name, into, out);
  out.start = named.code.begin;
  return true;
}

}  // namespace jitunwind
