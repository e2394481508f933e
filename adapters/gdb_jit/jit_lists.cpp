#include "jitunwind/adapters/gdb_jit/jit_lists_p.h"

#include <elf.h>
#include <limits.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
namespace jitunwind {
namespace {

constexpr int k_attempts = 4;  // objects are loaded and unloaded meanwhile, and other owners change their lists

// Used with the lock of the lists, by one thread of this copy.
[[gnu::section(".data.large")]] constinit ObjectSnapshot objects;

/// The bytes before the guards' file.
struct alignas(8) Mark {
  std::array<char, 16> text;
  JitSharedLists* self;
};
constexpr Addr k_file_at = offsetof(JitSharedLists, empty_file);
static_assert(offsetof(JitSharedLists, mark) + sizeof(Mark) == k_file_at &&
              sizeof(Mark) == k_own_gdb_list_mark_distance);

/// Null: the entry is no guard.
JitSharedLists* owner_of(const jit_code_entry& entry, MemoryWindow& window) noexcept {
  Mark mark{};
  const Addr file = address_of(entry.symfile_addr);
  if (file < sizeof mark || !read_object(local_space().memory, window, file - sizeof mark, mark)) return nullptr;
  return mark.text == JitSharedLists::k_mark && address_of(mark.self) + k_file_at == file ? mark.self : nullptr;
}

struct ListEnd {
  bool is_known = false;                 // false: unknown, because another owner is changing the list
  JitSharedLists* owner = nullptr;       // owner of the first guard
  jit_code_entry* last_entry = nullptr;  // last entry of a list without a guard; null: the list is empty
};

/// Other owners change their entries without this library's lock, so that no pointer here is trusted.
ListEnd find_end(const jit_descriptor* descriptor) noexcept {
  MemoryWindow window;
  jit_descriptor head{};
  if (!read_object(local_space().memory, window, address_of(descriptor), head)) return {};
  jit_code_entry* before = nullptr;
  // A cycle fails this check, because an entry has one predecessor.
  for (jit_code_entry *at = head.first_entry, *next = nullptr; at != nullptr; before = at, at = next) {
    jit_code_entry entry{};
    if (!read_object(local_space().memory, window, address_of(at), entry) || entry.prev_entry != before) return {};
    if (JitSharedLists* const owner = owner_of(entry, window)) return {true, owner, nullptr};
    next = entry.next_entry;
  }
  return {true, nullptr, before};
}

bool is_lasting(Addr object) noexcept { return find_lasting_module(object) != nullptr; }

void take_out(const jit_code_entry& last, JitList& list) noexcept {
  jit_code_entry* const rest = last.next_entry;
  jit_code_entry* const before = list.guard.prev_entry;
  if (rest != nullptr) rest->prev_entry = before;
  store(before != nullptr ? before->next_entry : list.descriptor->first_entry, rest);
}

/// Definitions whose lists do not end with the shared entries yet.
class JitNewcomers {
 public:
  explicit JitNewcomers(JitSharedLists& shared) noexcept : shared_(shared) {}

  void find(const ObjectSnapshot& objects) noexcept {
    const bool some_went = objects.version().unloads != shared_.seen.unloads;
    for (std::size_t i = 0; i < objects.count(); ++i) {
      const bool was_seen = i < shared_.seen_count && (!some_went || is_lasting(objects[i].dynamic));
      if (!was_seen && !add(objects[i], i, objects.version())) is_complete_ = false;
    }
  }
  /// Null: there are none, or they are not needed.
  JitSharedLists* others() const noexcept { return shared_.is_empty() ? others_ : nullptr; }
  /// False: the objects or lists changed meanwhile.
  bool put_in(const ListVersion& version) noexcept {
    bool all = is_complete_;
    for (std::size_t i = 0; i < count_; ++i) {
      bool done = false;
      const bool same = while_they_stay(version, [&] { done = put_in(*all_[i]); });
      all = all && same && done;
    }
    return all;
  }
  /// Precondition: the objects' lock is held, or the object is known to stay loaded.
  static bool put_in(JitSharedLists& shared, const JitList& list, const ListEnd& end) noexcept {
    const auto place = std::ranges::find(shared.lists, nullptr, &JitList::descriptor);
    jit_code_entry*& before = end.last_entry != nullptr ? end.last_entry->next_entry : list.descriptor->first_entry;
    if (before != nullptr) return false;
    if (place == shared.lists.end()) return true;
    *place = list;
    place->guard = {&shared.first_entry, end.last_entry, shared.empty_file.data(), shared.empty_file.size()};
    store(before, &place->guard);
    return true;
  }

 private:
  struct One {
    ObjectDescriptor definition;
    std::size_t rank;
    ListEnd end;
  };

  /// False: the objects or lists changed meanwhile.
  bool add(const ListedObject& object, std::size_t rank, const ListVersion& version) noexcept {
    ListEnd end;
    const auto look_at = [&](const jit_descriptor* descriptor) {
      return while_they_stay(version, [&] { end = find_end(descriptor); }) && end.is_known;
    };
    if (JitList* const known = shared_.list_of(object.dynamic)) {
      if (!look_at(known->descriptor)) return false;
      if (end.owner == &shared_) return true;
      known->descriptor = nullptr;  // unloaded, and loaded again at the same place
    }
    std::optional<ObjectDescriptor> definition;
    if (!ObjectDescriptor::find(object, version, definition)) return false;
    if (!definition || count_ == all_.size()) return true;
    if (!look_at(definition->descriptor())) return false;
    if (end.owner != nullptr && end.owner != &shared_ && end.owner->copies != 0) others_ = end.owner;
    if (end.owner == nullptr) all_[count_++].emplace(One{std::move(*definition), rank, end});
    return true;
  }
  bool put_in(const One& one) noexcept {
    const ObjectDescriptor& found = one.definition;
    if (!found.is_loaded()) return true;
    return put_in(shared_,
                  {.descriptor = found.descriptor(),
                   .breakpoint = found.breakpoint(),
                   .object = found.object(),
                   .rank = one.rank,
                   .is_found = true,
                   .lasts = is_lasting(found.object())},
                  one.end);
  }

  JitSharedLists& shared_;
  JitSharedLists* others_ = nullptr;
  std::array<std::optional<One>, std::tuple_size_v<decltype(JitSharedLists::lists)>> all_;
  std::size_t count_ = 0;
  bool is_complete_ = true;
};

void forget_gone(JitSharedLists& shared) noexcept {
  for (JitList& list : shared.lists) {
    if (list.descriptor == nullptr || list.object == 0) continue;
    list.rank = objects.index_of(list.object);
    if (list.rank == objects.count()) list.descriptor = nullptr;
  }
}

constexpr std::string_view k_descriptor = "__jit_debug_descriptor";
constexpr std::string_view k_breakpoint = "__jit_debug_register_code";

/// The library's own reads are used: ThreadSanitizer does not see the lock with which the dynamic linker frees the
/// path.
void copy_path(const char* name, std::span<char> into) noexcept {
  MemoryWindow window;
  const Addr at{std::bit_cast<std::uintptr_t>(name)};
  const std::size_t size = local_space().memory.read(at, std::as_writable_bytes(into), window);
  if (std::string_view(into.data(), size).find('\0') == std::string_view::npos) into[0] = '\0';
}

/// 0: there is none.
Addr find_symbol(const ElfSymbols& symbols, std::string_view name, unsigned type, std::uint64_t least_size) noexcept {
  for (std::size_t i = 0; i < symbols.count(); ++i) {
    const ElfSymbol symbol = symbols[i];
    if (symbol.type != type || symbol.size < least_size || symbol.section == SHN_UNDEF) continue;
    const std::string_view begins = symbols.beginning(symbol, name.size() + 1);
    if (begins.size() > name.size() && begins.back() == '\0' && begins.substr(0, name.size()) == name)
      return symbol.value;
  }
  return 0;
}

}  // namespace

JitSharedLists* JitSharedLists::make() noexcept {
  void* const memory = map_memory(sizeof(JitSharedLists));
  return memory != nullptr ? new (memory) JitSharedLists : nullptr;
}

void JitSharedLists::start(std::span<const std::byte> file) noexcept {
  std::ranges::copy(file, empty_file.begin());
  mark = k_mark;
  self = this;
  first_entry = {&last_entry, nullptr, empty_file.data(), empty_file.size()};
  last_entry = {nullptr, &first_entry, empty_file.data(), empty_file.size()};
  lists = {};
  seen = {};
  seen_count = 0;
}

JitList* JitSharedLists::list_of(Addr object) noexcept {
  const auto found = std::ranges::find_if(lists, [&](const JitList& l) { return l.descriptor && l.object == object; });
  return found == lists.end() ? nullptr : &*found;
}

bool JitSharedLists::is_empty() const noexcept {
  return std::ranges::all_of(lists, [](const JitList& list) { return list.descriptor == nullptr; });
}

const JitList* JitSharedLists::first() const noexcept {
  const JitList* found = nullptr;
  const auto before = [](const JitList& a, const JitList& b) {
    return std::pair(!a.is_found, a.rank) < std::pair(!b.is_found, b.rank);
  };
  for (const JitList& list : lists)
    if (list.descriptor != nullptr && (found == nullptr || before(list, *found))) found = &list;
  return found;
}

JitSharedLists* JitSharedLists::look() noexcept {
  for (int i = 0; i < k_attempts; ++i) {
    if (list_version() == seen || !objects.take()) return nullptr;
    forget_gone(*this);
    JitNewcomers newcomers(*this);
    newcomers.find(objects);
    if (newcomers.others() != nullptr) return newcomers.others();
    const bool complete = newcomers.put_in(objects.version());
    if (!complete && i + 1 < k_attempts) continue;
    seen = objects.version();
    seen_count = objects.count();
    return nullptr;
  }
  return nullptr;
}

void JitSharedLists::put_in(jit_descriptor& descriptor, void (*breakpoint)()) noexcept {
  const ListEnd end = find_end(&descriptor);
  if (!end.is_known || end.owner != nullptr) return;
  JitList list{.descriptor = &descriptor, .breakpoint = breakpoint, .lasts = true};
  Module module;
  if (local_modules().find(address_of(&descriptor), module)) {
    for (std::size_t i = 0; i < objects.count(); ++i)
      if (module.range.contains(objects[i].dynamic)) list.object = objects[i].dynamic;
    list.lasts = list.object == 0 || is_lasting(list.object);
  }
  (void)JitNewcomers::put_in(*this, list, end);
}

void JitSharedLists::take_out_all() noexcept {
  (void)look();
  for (JitList& list : lists) {
    if (list.descriptor == nullptr) continue;
    const auto action = [&] { take_out(last_entry, list); };
    if (list.lasts) {
      action();
    } else {
      (void)while_they_stay(seen, action);
    }
  }
}

bool ObjectSnapshot::take() noexcept {
  count_ = 0;
  version_ = visit_own_objects(*this);
  return version_.loads != 0;
}

void ObjectSnapshot::visit(const ListedObject& object) noexcept {
  if (count_ < objects_.size()) objects_[count_++] = object;
}

std::size_t ObjectSnapshot::index_of(Addr dynamic) const noexcept {
  std::size_t i = 0;
  while (i < count_ && objects_[i].dynamic != dynamic) ++i;
  return i;
}

bool ObjectDescriptor::find(const ListedObject& object, const ListVersion& version,
                            std::optional<ObjectDescriptor>& out) noexcept {
  std::array<char, PATH_MAX> path;
  bool exports = false;
  const bool same = while_they_stay(version, [&] {
    copy_path(object.name, path);
    DynamicObject dynamic(local_space().memory, local_space().arch, object.bias, object.dynamic);
    exports = dynamic.find_function(k_breakpoint).has_value();
  });
  auto files = same ? ModuleFiles::open(path_of(path.data()), nullptr) : Error{};
  if (!files) return same;
  ObjectDescriptor found(object);
  if (!found.find_symbols((*files)->open_again(), exports)) return true;
  // The second image drops the pages that the search has read.
  found.file_ = (*files)->open_again().file;
  if (!found.file_.image) return true;
  // The data that is_loaded() compares is read while the file is unchanged.
  (void)found.file_.image->header_bytes();
  (void)found.file_.image->build_id();
  out.emplace(std::move(found));
  return true;
}

/// Both symbols must be in one object, as GDB requires. Debuggers accept symbols that are not exported, too.
bool ObjectDescriptor::find_symbols(const ModuleFiles::BothFiles& files, bool exports) noexcept {
  const auto& file = files.file.image;
  const auto& debug = files.debug.image;
  if (!file) return false;
  for (const auto& image : {file, debug}) {
    if (!image) continue;
    if (const auto read = read_symbols(*image); read && find_symbols(read->symbols)) return true;
  }
  return exports && find_symbols(file->symbols(SHT_DYNSYM));
}

bool ObjectDescriptor::find_symbols(const ElfSymbols& symbols) noexcept {
  const Addr data = find_symbol(symbols, k_descriptor, STT_OBJECT, sizeof(jit_descriptor));
  const Addr code = data != 0 ? find_symbol(symbols, k_breakpoint, STT_FUNC, 0) : 0;
  if (code == 0) return false;
  const Addr at = data + object_.bias;
  if (at % alignof(jit_descriptor) != 0 || !is_writable(at) || !is_writable(at + sizeof(jit_descriptor) - 1))
    return false;
  descriptor_ = pointer_to<jit_descriptor>(at);
  breakpoint_ = reinterpret_cast<void (*)()>(static_cast<std::uintptr_t>(code + object_.bias));
  return true;
}

/// Compares bytes of the file with the loaded bytes. Bytes that are not loaded count as equal.
bool ObjectDescriptor::has_in_memory(std::span<const std::byte> of_file) const noexcept {
  const ElfImage& image = *file_.image;
  if (of_file.empty()) return true;
  const std::uint64_t offset = file_.parts->offset_of(of_file);
  for (std::size_t i = 0; i < image.segment_count(); ++i) {
    const ElfSegment s = image.segment(i);
    if (s.type != PT_LOAD || (s.flags & PF_R) == 0 || offset < s.offset || offset - s.offset >= s.file_size ||
        s.file_size - (offset - s.offset) < of_file.size())
      continue;
    const Addr at = object_.bias + s.address + (offset - s.offset);
    return std::memcmp(pointer_to(at), of_file.data(), of_file.size()) == 0;
  }
  return true;
}

bool ObjectDescriptor::is_loaded() const noexcept {
  const ElfImage& image = *file_.image;
  return has_in_memory(image.header_bytes()) && has_in_memory(image.build_id()) && descriptor_->version == 1;
}

}  // namespace jitunwind
