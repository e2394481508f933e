#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "jitunwind/dyn_info/list_changes_p.h"
#include "jitunwind/dyn_info/list_walk_p.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/targets/mapped_object_internal.h"

namespace jitunwind {
namespace {

constexpr std::string_view k_owner = "UNWDYN";
constexpr std::uint32_t k_head_note = 1, k_changes_note = 2, k_layout = 1;
constexpr std::string_view k_symbol = "_U_dyn_info_list";

/// The contents of a note: a number, the size of a word, and an address relative to its own field.
struct Pointing {
  std::uint32_t number = 0;
  Addr to = 0;  ///< 0 if there is no such note
};

Pointing read_note(const MappedObject& object, std::uint32_t type, const Arch& arch) noexcept {
  std::array<std::byte, 4096> room;
  const MappedObject::Note note = object.find_note(k_owner, type, room);
  ByteReader reader(note.description, arch.big_endian, note.at);
  Pointing said{reader.u32(), 0};
  const bool is_of_words = reader.u32() == arch.word_size;
  const Addr field = reader.address();
  said.to = field + reader.u64();
  return is_of_words && reader.ok() ? said : Pointing{};
}

bool may_have_symbol(const MappedObject& object) noexcept {
  return object.is_program() || object.first().path.find("libunwind") != std::string::npos;
}

void add_list(std::vector<TargetHeads::List>& lists, const TargetHeads::List& list) {
  if (list.head != 0 && std::ranges::find(lists, list.head, &TargetHeads::List::head) == lists.end() &&
      lists.size() < ListHead::k_most)
    lists.push_back(list);
}

}  // namespace

/// The first word of the note on a head is the layout of the descriptors.
void TargetHeads::find_notes(std::vector<List>& lists) const {
  modules_.for_each_object([&](MappedObject& object) {
    const Pointing head = read_note(object, k_head_note, arch_);
    if (head.to == 0 || head.number != k_layout) return;
    const Pointing changes = read_note(object, k_changes_note, arch_);
    add_list(lists, {head.to, {changes.to, changes.number}});
  });
}

void TargetHeads::find_exported(std::vector<List>& lists) const {
  modules_.for_each_object([&](MappedObject& object) { add_list(lists, {object.find_exported(k_symbol)}); });
}

void TargetHeads::find_symbols(std::vector<List>& lists) const {
  modules_.for_each_object([&](MappedObject& object) {
    if (may_have_symbol(object)) add_list(lists, {object.find_in_files(k_symbol, files_)});
  });
}

bool TargetHeads::can_be_read(Addr head) const noexcept {
  std::array<std::byte, 16> bytes;
  const auto wanted = std::span(bytes).first(8u + arch_.word_size);
  MemoryWindow window;
  return memory_.read(head, wanted, window) == wanted.size();
}

std::vector<TargetHeads::List> TargetHeads::find() const {
  std::vector<List> lists;
  find_notes(lists);
  if (lists.empty()) find_exported(lists);
  if (lists.empty()) find_symbols(lists);
  std::erase_if(lists, [this](const List& list) { return !can_be_read(list.head); });
  return lists;
}

bool TargetHeads::learn_changes_of(std::size_t number, Addr head, std::vector<AddrRange>& changed) {
  MemoryWindow window;
  ListIndex& index = indexes_[number];
  const Result<ListState> state = read_list_state(head, memory_, arch_, window);
  if (!state || state->is_changing()) return false;
  if (index.is_of(head, state->generation)) {
    if (!index.may_begin_with(state->first)) index.forget();
    return index.is_known();
  }
  const auto known = index.is_of(head) ? index.changes() : std::nullopt;
  const auto changes = known ? read_changes(lists_[number].changes, *known, memory_, arch_, window) : std::nullopt;
  if (!changes || !index.change(state->generation, *changes)) return false;
  for (const ListIndex::Change& change : *changes) changed.push_back(change.procedure.code);
  return true;
}

bool TargetHeads::learn_changes(std::vector<AddrRange>& changed) noexcept try {
  forget_changing();
  for (std::size_t number = 0; number < k_most; ++number) {
    MemoryWindow window;
    const Result<Addr> head = list_head(number, window);
    if (!head || (*head == 0 && indexes_[number].is_known())) return false;
    if (*head != 0 && !learn_changes_of(number, *head, changed)) return false;
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

Result<Addr> TargetHeads::list_head(std::size_t number, MemoryWindow&) const noexcept try {
  if (!has_looked_) {
    lists_ = find();
    has_looked_ = true;
  }
  return number < lists_.size() ? lists_[number].head : Addr{0};
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::out_of_memory, 0, "heads of the lists of procedures"};
}

std::optional<std::uint64_t> count_changes(const ListHead::Changes& where, const Memory& memory, const Arch& arch,
                                           MemoryWindow& window) noexcept {
  std::array<std::byte, 8> bytes;
  if (where.at == 0 || memory.read(where.at, bytes, window) != bytes.size()) return std::nullopt;
  return ByteReader(bytes, arch.big_endian, where.at).u64();
}

/// Reads the ListChanges of the target.
std::optional<std::vector<ListIndex::Change>> read_changes(const ListHead::Changes& where, std::uint64_t first,
                                                           const Memory& memory, const Arch& arch,
                                                           MemoryWindow& window) {
  constexpr std::size_t k_size = sizeof(ListChanges::Change);
  const auto count = count_changes(where, memory, arch, window);
  if (!count || *count - first > where.kept || where.kept > ListChanges::k_kept) return std::nullopt;
  std::array<std::byte, k_size * ListChanges::k_kept> room;
  const auto bytes = std::span(room).first(k_size * where.kept);
  if (memory.read(where.at + sizeof(ListChanges::count), bytes, window) != bytes.size()) return std::nullopt;
  std::vector<ListIndex::Change> changes;
  for (; first != *count; ++first) {
    const std::size_t place = k_size * static_cast<std::size_t>(first % where.kept);
    ByteReader reader(bytes.subspan(place, k_size), arch.big_endian, where.at + place);
    const Addr descriptor = reader.u64(), begin = reader.u64(), end = reader.u64();
    changes.push_back({{{begin, end}, descriptor & ~Addr{1}}, descriptor % 2 == 0});
  }
  return changes;
}

void append_listed_code(const ListHead& head, Lookup& lookup, std::vector<AddrRange>& out) {
  const CountedMemory memory(lookup.space.memory);
  for (std::size_t number = 0; number < ListHead::k_most; ++number) {
    const Result<Addr> list = head.list_head(number, lookup.window);
    if (!list || *list == 0) return;
    const Result<ListState> state = read_list_state(*list, memory, lookup.space.arch, lookup.window);
    if (!state) continue;
    (void)for_each_procedure(state->first, lookup, memory, [&](Addr, const AddrRange& code) {
      out.push_back(code);
      return true;
    });
  }
}

Addr WalkedListIndex::find_procedure(Addr at) const noexcept { return find(at); }

Status WalkedListIndex::walk(const WalkedList& list) noexcept try {
  const auto& [head, of_list, state, lookup, memory] = list;
  std::vector<Procedure> procedures;
  const Status walked = for_each_procedure(state.first, lookup, memory, [&](Addr descriptor, const AddrRange& code) {
    procedures.push_back({code, descriptor});
    return true;
  });
  if (!walked) return walked.error();
  const Arch& arch = lookup.space.arch;
  const auto count = state.is_changing() ? std::nullopt : count_changes(of_list, memory, arch, lookup.window);
  const Result<ListState> after = read_list_state(head, memory, arch, lookup.window);
  if (!after) return after.error();
  if (after->generation == state.generation && make(head, state.generation, procedures, count)) return Done{};
  return Error{ErrorCode::unspecified, head, "list of procedures keeps changing"};
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::out_of_memory, list.head, "list of procedures"};
}

}  // namespace jitunwind
