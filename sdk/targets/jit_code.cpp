#include "jitunwind/sdk/targets/jit_code_p.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "jitunwind/unwind_core/sort_by_internal.h"
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

/// A program need not export its descriptor, so the symbol table of its file is searched as well.
void JitCode::find_descriptors() const {
  descriptors_.clear();
  const auto add = [this](Addr descriptor) {
    if (descriptor != 0 && descriptors_.size() < k_most_descriptors) descriptors_.push_back(descriptor);
  };
  modules_.for_each_object([&](MappedObject& object) {
    const Addr exported = object.find_exported(k_gdb_descriptor);
    add(exported != 0 || !object.is_program() ? exported : object.find_in_files(k_gdb_descriptor, files_));
  });
}

/// Returns no bytes if the file cannot be read. Its last byte is read first, so a wrong size allocates nothing.
std::vector<std::byte> JitCode::read_file(const GdbListEntry& where) const {
  MemoryWindow window;
  std::byte last{};
  std::vector<std::byte> bytes;
  if (memory_.read(where.file + where.size - 1, {&last, 1}, window) != 1) return bytes;
  bytes.resize(static_cast<std::size_t>(where.size));
  if (memory_.read(where.file, bytes, window) != bytes.size()) bytes.clear();
  return bytes;
}

void JitCode::note_changed(const File& file) const {
  if (file.object) changed_.insert(changed_.end(), file.object->code().begin(), file.object->code().end());
}

/// Takes the file from `old` if one was known at that place; it is compared when it is asked about. The entry's memory
/// may hold another file by now. Files that were asked about before are compared here, because their rows may be kept.
void JitCode::add_file(const GdbListEntry& where, std::vector<File>& old, std::uint64_t& room) const {
  if (where.size > std::min<std::uint64_t>(room, JitObject::k_largest)) return;
  const auto by_entry = [](const File& file, Addr entry) { return file.where.entry < entry; };
  const auto known = std::lower_bound(old.begin(), old.end(), where.entry, by_entry);
  if (known != old.end() && known->where == where && !std::exchange(known->is_taken, true)) {
    all_.push_back(std::move(*known));
    all_.back().is_taken = all_.back().is_checked = false;
    if (all_.back().was_asked) (void)check(all_.back());
    room -= std::min(room, all_.back().bytes_held());
    return;
  }
  std::vector<std::byte> bytes = read_file(where);
  if (bytes.empty()) return;
  all_.push_back({where, hash_of(bytes), {}, true});
  if (auto object = JitObject::read(std::move(bytes), arch_)) all_.back().object.emplace(std::move(*object));
  room -= std::min(room, all_.back().bytes_held());
  note_changed(all_.back());
}

/// Returns false if the file has changed. It is read anew then; while the target runs, it counts as absent until the
/// next look instead.
bool JitCode::check(File& file) const {
  if (file.is_checked) return true;
  std::vector<std::byte> bytes = read_file(file.where);
  const std::uint64_t hash = hash_of(bytes);
  file.is_checked = true;
  if (hash == file.hash) return true;
  note_changed(file);
  file.object.reset();
  file.was_asked = false;
  if (runs_) {
    file.where.size = 0;  // matches no entry
    return false;
  }
  file.hash = hash;
  if (auto object = JitObject::read(std::move(bytes), arch_)) file.object.emplace(std::move(*object));
  note_changed(file);
  return false;
}

void JitCode::read_lists() const {
  std::vector<File> old = std::exchange(all_, {});
  const std::vector<Addr> order = entries_of(old);
  sort_by(old, [](const File& file) { return file.where.entry; });
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
  for (const File& file : old)
    if (!file.is_taken) note_changed(file);
  all_are_checked_ = std::ranges::all_of(all_, &File::is_checked);
  if (!index_.is_known() || !changed_.empty() || entries_of(all_) != order) make_index();
}

std::vector<Addr> JitCode::entries_of(const std::vector<File>& files) {
  std::vector<Addr> entries;
  for (const File& file : files) entries.push_back(file.where.entry);
  return entries;
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
  if (!std::exchange(has_descriptors_, true)) find_descriptors();
  read_lists();
} catch (const std::bad_alloc&) {
  give_up();
}

void JitCode::give_up() const noexcept {
  has_given_up_ = true;
  has_descriptors_ = false;
  all_are_checked_ = true;
  all_.clear();
  index_.forget();
}

bool JitCode::renew(bool is_mapped_as_before, std::vector<AddrRange>& changed) noexcept try {
  runs_ = false;
  changed_.clear();
  if (!is_mapped_as_before) {
    has_descriptors_ = false;
    index_.forget();  // of what is mapped
  }
  if (std::exchange(has_looked_, false)) look();
  changed.insert(changed.end(), changed_.begin(), changed_.end());
  return !std::exchange(has_given_up_, false);
} catch (const std::bad_alloc&) {
  return false;
}

void JitCode::let_run() noexcept {
  look();
  runs_ = true;
}

void JitCode::forget() noexcept {
  has_looked_ = false;
  give_up();
}

/// An unchanged file at `at` suffices to answer. If there is none, every other file may have changed to one that covers
/// `at`.
const JitObject* JitCode::object_at(Addr at) const noexcept try {
  look();
  const auto file_at = [&]() -> File* {
    const Addr number = index_.is_known() ? index_.find(at) : 0;
    return number == 0 ? nullptr : &all_[static_cast<std::size_t>(number - 1)];
  };
  File* file = file_at();
  if (!all_are_checked_ && (!file || !check(*file))) {
    for (File& one : all_) (void)check(one);
    all_are_checked_ = true;
    make_index();
    file = file_at();
  }
  if (!file) return nullptr;
  file->was_asked = true;
  return &*file->object;
} catch (const std::bad_alloc&) {
  give_up();
  return nullptr;
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

std::optional<SourceLine> JitCode::find_line(Addr at) const {
  const JitObject* const object = object_at(at);
  return object ? object->find_line(at) : std::nullopt;
}

void JitCode::append_described_code(std::vector<AddrRange>& out) const {
  look();
  for (const File& file : all_) {
    if (!file.object) continue;
    for (const JitObject::Procedure& procedure : file.object->procedures().all)
      if (procedure.fde) out.push_back(procedure.code);
  }
}

/// Executable memory counts as code without a file. Looking for lists takes as long as walking all other frames, and is
/// not done for a caller in such memory (AddressSpace::expect_code()).
bool JitCode::was_told_of(Addr at) const noexcept {
  const Mapping* const mapping = mappings_.find(at);
  return !(mapping && mapping->executable) && object_at(at) != nullptr;
}

}  // namespace jitunwind
