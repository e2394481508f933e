#include "jitunwind/sdk/targets/jit_code_p.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "jitunwind/unwind_core/targets/mapped_object_internal.h"

namespace jitunwind {
namespace {

constexpr std::uint64_t k_most_bytes = std::uint64_t{256} << 20;
constexpr std::size_t k_most_descriptors = 32;

std::uint64_t hash_of(std::span<const std::byte> bytes) noexcept {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

bool JitCode::may_have_code() const noexcept {
  return std::ranges::any_of(mappings_.all(), [](const Mapping& m) {
    return m.executable && (m.deleted || m.path.empty() || m.path.starts_with("[anon"));
  });
}

/// Programs need not export theirs.
void JitCode::find_descriptors() const {
  const auto add = [this](Addr descriptor) {
    if (descriptor != 0 && descriptors_.size() < k_most_descriptors) descriptors_.push_back(descriptor);
  };
  modules_.for_each_object([&](MappedObject& object) {
    const Addr exported = object.find_exported(k_gdb_descriptor);
    add(exported != 0 || !object.is_program() ? exported : object.find_in_files(k_gdb_descriptor, files_));
  });
}

/// What is where it was, and is what it was, is taken from `old`.
void JitCode::add_file(const GdbListEntry& where, std::vector<File>& old, std::uint64_t& room) const {
  MemoryWindow window;
  std::byte last{};
  if (where.size > std::min<std::uint64_t>(room, JitObject::k_largest)) return;
  if (memory_.read(where.file + where.size - 1, {&last, 1}, window) != 1) return;
  room -= where.size;
  std::vector<std::byte> bytes(static_cast<std::size_t>(where.size));
  if (memory_.read(where.file, bytes, window) != bytes.size()) return;
  const std::uint64_t hash = hash_of(bytes);
  const auto by_entry = [](const File& file, Addr entry) { return file.where.entry < entry; };
  const auto known = std::lower_bound(old.begin(), old.end(), where.entry, by_entry);
  if (known != old.end() && known->where == where && known->hash == hash) {
    all_.push_back(std::move(*known));
    return;
  }
  is_as_known_ = false;
  auto object = JitObject::read(std::move(bytes), arch_);
  all_.push_back({where, hash, object ? std::optional(std::move(*object)) : std::nullopt});
}

void JitCode::read_lists() const {
  std::vector<File> old = std::exchange(all_, {});
  std::ranges::sort(old, {}, [](const File& file) { return file.where.entry; });
  std::uint64_t room = k_most_bytes;
  std::vector<Addr> seen;  // lists of several descriptors may end with the same entries
  for (const Addr descriptor : descriptors_) {
    const auto list = read_gdb_list(descriptor, memory_, arch_);
    if (!list) continue;
    const std::size_t before = seen.size();
    for (const GdbListEntry& where : list->entries) {
      if (std::binary_search(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(before), where.entry)) continue;
      seen.push_back(where.entry);
      add_file(where, old, room);
    }
    std::ranges::sort(seen);
  }
  if (all_.size() != old.size()) is_as_known_ = false;
}

void JitCode::make_index() const {
  std::vector<ListIndex::Procedure> sections;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (!all_[i].object) continue;
    for (const AddrRange& code : all_[i].object->code())
      if (mappings_.find(code.begin) != nullptr && mappings_.find(code.end - 1) != nullptr)
        sections.push_back({code, i + 1});
  }
  (void)index_.make(0, 0, sections);
}

void JitCode::look() const noexcept try {
  if (std::exchange(has_looked_, true) || !may_have_code()) return;
  if (descriptors_.empty()) find_descriptors();
  read_lists();
  make_index();
} catch (const std::bad_alloc&) {
  index_.forget();
}

bool JitCode::renew() noexcept {
  if (!std::exchange(has_looked_, false)) return true;
  is_as_known_ = true;
  descriptors_.clear();
  look();
  return is_as_known_;
}

void JitCode::forget() noexcept {
  has_looked_ = false;
  descriptors_.clear();
  all_.clear();
  index_.forget();
}

const JitObject* JitCode::object_at(Addr at) const noexcept {
  look();
  const Addr number = index_.is_known() ? index_.find(at) : 0;
  return number == 0 ? nullptr : &*all_[static_cast<std::size_t>(number - 1)].object;
}

const JitObject* JitCode::object_at(Lookup& lookup) const noexcept {
  return lookup.module() ? nullptr : object_at(lookup.at.lookup());
}

Found JitCode::find_row(Lookup& lookup, FrameRow& out) const noexcept {
  const JitObject* const object = object_at(lookup);
  return object ? object->find_row(lookup.at.lookup(), out) : false;
}

Found JitCode::find_procedure(Lookup& lookup, ProcedureInfo& out) const noexcept {
  const JitObject* const object = object_at(lookup);
  return object ? object->find_procedure(lookup.at.lookup(), out) : false;
}

Found JitCode::find_name(Lookup& lookup, std::span<char> into, ProcedureName& out) const noexcept {
  const JitObject* const object = object_at(lookup);
  return object ? object->find_name(lookup.at.lookup(), into, out) : false;
}

bool JitCode::was_told_of(Addr at) const noexcept { return object_at(at) != nullptr; }

}  // namespace jitunwind
