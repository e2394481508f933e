#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <exception>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "jitunwind/adapters/listen/followers_p.h"
#include "jitunwind/adapters/listen/frames/told_frames_p.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

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

namespace {

constexpr std::int64_t k_compared_at_once = std::int64_t{1} << 13;  // bytes
constexpr std::uint64_t k_small = std::uint64_t{1} << 16;           // bytes
/// Lists without a changed descriptor are followed at one in so many polls.
constexpr unsigned k_looks_to_a_walk = 16;

std::uint64_t hash_of(std::span<const std::byte> bytes) noexcept {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

bool GdbDescriptors::look() noexcept {
  const ListVersion now = list_version();
  if (now == ListVersion{} || now == seen_) return false;
  count_ = 0;
  is_one_of_others_ = false;
  seen_ = visit_own_objects(*this);
  return true;
}

/// Reads memory only: dlsym() would take a lock of the dynamic linker that a forked child may find taken for ever.
void GdbDescriptors::visit(const ListedObject& object) noexcept {
  DynamicObject dynamic(local_space().memory, local_space().arch, object.bias, object.dynamic);
  const auto found = dynamic.find_variable(k_gdb_descriptor);
  if (!found || count_ == all_.size()) return;
  all_[count_++] = *found;
  is_one_of_others_ = is_one_of_others_ || object.dynamic != object_of_own_gdb_list();
}

ListFollower::ListFollower() : memory_(::getpid()) {}

void ListFollower::find_descriptors() {
  if (!objects_.look()) return;
  looks_ = 0;
  descriptors_.clear();
  for (const Addr at : objects_.all()) descriptors_.push_back({at});
}

/// Engines write the added or removed entry, and the new first one, into the descriptor.
bool ListFollower::have_changed() {
  bool changed = false;
  for (Descriptor& descriptor : descriptors_) {
    std::array<std::byte, sizeof descriptor.seen> now{};
    MemoryWindow window;
    (void)memory_.read(descriptor.at, now, window);
    changed |= std::exchange(descriptor.seen, now) != now;
  }
  return changed;
}

/// This library's own entries for debuggers are registered already.
bool ListFollower::is_own(const GdbListEntry& entry) const noexcept {
  std::array<char, k_own_gdb_list_mark.size()> mark{};
  MemoryWindow window;
  const Addr at = entry.file - k_own_gdb_list_mark_distance;
  return memory_.read(at, std::as_writable_bytes(std::span(mark)), window) == mark.size() &&
         mark == k_own_gdb_list_mark;
}

void ListFollower::read_list(Addr descriptor, std::vector<GdbListEntry>& newest_first) {
  const auto list = read_gdb_list(descriptor, memory_, *host_arch());
  if (!list) return note_unheard(list.error());
  for (const GdbListEntry& entry : list->entries) {
    const auto known = told_.find(entry.entry);
    if (known != told_.end() && known->second.where == entry) {
      known->second.is_listed = true;
      continue;
    }
    if (is_own(entry)) break;  // all entries after it are own ones
    newest_first.push_back(entry);
  }
}

/// Memory for a large file is taken only if its last byte can be read.
bool ListFollower::copy(const GdbListEntry& entry, std::vector<std::byte>& out) const {
  MemoryWindow window;
  std::byte last{};
  if (entry.size > JitObject::k_largest) return false;
  if (entry.size > k_small && memory_.read(entry.file + entry.size - 1, {&last, 1}, window) != 1) return false;
  out.resize(static_cast<std::size_t>(entry.size));
  return memory_.read(entry.file, out, window) == out.size();
}

void ListFollower::tell(const GdbListEntry& entry) {
  Told told{.where = entry};
  std::vector<std::byte> file;
  if (copy(entry, file)) {
    told.hash = hash_of(file);
    const auto object = JitObject::read(std::move(file), *host_arch());
    if (!object)
      note_unheard({object.error().code, entry.file, object.error().what});
    else
      told.procedures = object->procedures();
  } else {
    note_unheard({ErrorCode::unreadable_memory, entry.file, "file in GDB's list"});
  }
  std::erase_if(told.procedures.all, [](const JitObject::Procedure& procedure) {
    return !is_mapped(procedure.code.begin) || !is_mapped(procedure.code.end - 1);
  });
  const Told& kept = told_.insert_or_assign(entry.entry, std::move(told)).first->second;
  const auto frames = reinterpret_cast<std::uintptr_t>(kept.procedures.frames.data());
  for (const JitObject::Procedure& procedure : kept.procedures.all) {
    describe_code(procedure.code, procedure.name, procedure.fde ? frames + *procedure.fde : 0);
    add_lines(procedure.code.begin, SourceLines(procedure.lines));
  }
  count_heard(Heard::files);
}

void ListFollower::forget(const Told& told) {
  const auto frames = reinterpret_cast<std::uintptr_t>(told.procedures.frames.data());
  for (const JitObject::Procedure& procedure : told.procedures.all)
    forget_description(procedure.code.begin, procedure.fde ? frames + *procedure.fde : 0);
}

std::map<Addr, ListFollower::Told>::iterator ListFollower::erase(std::map<Addr, Told>::iterator told) {
  count_heard(Heard::files, -1);
  return told_.erase(told);
}

/// An engine may free a file and make another at the same place between two polls. After a large file the next polls
/// skip this comparison, which continues as long as the process.
void ListFollower::compare_some() {
  std::vector<std::byte> file;
  room_ = std::min(room_ + k_compared_at_once, k_compared_at_once);
  for (std::size_t i = 0; i < told_.size() && room_ > 0; ++i) {
    auto next = told_.upper_bound(compared_);
    if (next == told_.end()) next = told_.begin();
    compared_ = next->first;
    Told& told = next->second;
    room_ -= 64 + static_cast<std::int64_t>(std::min<std::uint64_t>(told.where.size, JitObject::k_largest));
    const std::uint64_t hash = copy(told.where, file) ? hash_of(file) : k_unread;
    if (hash == told.hash) continue;
    const GdbListEntry where = told.where;
    forget(told);
    erase(next);
    tell(where);
  }
}

void ListFollower::walk_lists() {
  for (auto& [entry, told] : told_) told.is_listed = false;
  std::vector<GdbListEntry> newest_first;
  for (const Descriptor& descriptor : descriptors_) read_list(descriptor.at, newest_first);
  for (auto told = told_.begin(); told != told_.end();) {
    if (told->second.is_listed) {
      ++told;
      continue;
    }
    forget(told->second);
    told = erase(told);
  }
  for (auto entry = newest_first.rbegin(); entry != newest_first.rend(); ++entry)
    if (!told_.contains(entry->entry)) tell(*entry);
}

void ListFollower::look() {
  find_descriptors();
  const bool changed = have_changed();  // before the lists are followed
  if (looks_++ % k_looks_to_a_walk == 0 || changed) walk_lists();
  compare_some();
}

namespace {

constexpr long k_period = 10'000'000;  // nanoseconds

template <class Look>
void look(bool is_asked_for, Look look_at_it) {
  if (!is_asked_for) return;
  try {
    look_at_it();
  } catch (const std::exception&) {
    note_unheard({ErrorCode::out_of_memory, 0, "no memory for what is written of code"});
  }
}

/// The kernel keeps no memory of a process's first thread after that has ended, for example by pthread_exit().
bool has_main_ended() noexcept {
  const char from = 0;
  char into = 0;
  const iovec here{&into, 1};
  const iovec there{const_cast<char*>(&from), 1};
  return copy_between(SYS_process_vm_readv, ::getpid(), {&here, 1}, {&there, 1}) < 0 && errno == ESRCH;
}

/// A child that executes another program, or closes all files, has done so before the first poll. A process ends with
/// its last thread, so this thread must not be the last.
void* follow(void* waits_first) {
  if (waits_first != nullptr) sleep_for_nanoseconds(k_period);
  MapFollower maps;
  DumpFollower dumps;
  ListFollower lists;
  while (!has_main_ended()) {
    look(listens_to(Dialect::maps), [&] { maps.look(), dumps.look(); });
    look(listens_to(Dialect::gdb), [&] { lists.look(); });
    look(publishes(), publish_old_code);
    forget_unmapped_names(k_looked_at_each_time);
    forget_unmapped_frames(k_looked_at_each_time);
    sleep_for_nanoseconds(k_period);
  }
  return nullptr;
}

constinit std::atomic<bool> may_follow{false};  // constructors have run: the dialects are known
constinit std::atomic<bool> follows{false};

bool listens_to_what_is_written() noexcept {
  return listens_to(Dialect::maps) || listens_to(Dialect::gdb) || publishes();
}

void start_to_follow(bool waits_first) noexcept {
  if (follows.exchange(true)) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (const int failed = pthread_create(&thread, &attributes, follow, waits_first ? &follows : nullptr); failed != 0)
    note_unheard({ErrorCode::out_of_memory, 0, "no thread to follow what is written of code"});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

/// The child has its own lists and files from now on, and no thread except the one that forked.
void follow_in_child() noexcept {
  if (!follows.exchange(false)) return;
  count_heard(Heard::files, -heard(Heard::files));
  if (listens_to_what_is_written()) start_to_follow(true);
}

}  // namespace

void follow_what_is_written() noexcept {
  constinit static std::atomic<bool> is_in_forks{false};
  if (!is_in_forks.exchange(true)) (void)pthread_atfork(nullptr, nullptr, follow_in_child);
  start_to_follow(false);
}

void follow_where_an_engine_is() noexcept {
  may_follow.store(true);
  if (!listens_to_what_is_written()) return;
  GdbDescriptors descriptors;
  (void)descriptors.look();
  if (descriptors.is_one_of_others() || heard(Heard::told) != 0) follow_what_is_written();
}

void note_engine() noexcept {
  if (follows.load(std::memory_order_relaxed) || !may_follow.load(std::memory_order_relaxed)) return;
  if (listens_to_what_is_written()) follow_what_is_written();
}

}  // namespace jitunwind
