#include "jitunwind/adapters/listen/lists/list_follower_p.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"

namespace jitunwind {
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

}  // namespace jitunwind
