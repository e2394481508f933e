#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "jitunwind/dyn_info/list_state_p.h"
#include "jitunwind/dyn_info/target_heads_internal.h"
#include "jitunwind/unwind_core/byte_reader.h"
#include "jitunwind/unwind_core/targets/mapped_object_internal.h"

namespace jitunwind {
namespace {

constexpr std::string_view k_owner = "UNWDYN";
constexpr std::uint32_t k_note_type = 1, k_layout = 1;
constexpr std::string_view k_symbol = "_U_dyn_info_list";

/// Layout of the descriptors, size of a word, address of the head relative to the field that says so. 0: none.
Addr head_by_note(const MappedObject& object, const Arch& arch) noexcept {
  std::array<std::byte, 4096> room;
  const MappedObject::Note note = object.find_note(k_owner, k_note_type, room);
  ByteReader reader(note.description, arch.big_endian, note.at);
  const bool is_ours = reader.u32() == k_layout && reader.u32() == arch.word_size;
  const Addr field = reader.address();
  const Addr head = field + reader.u64();
  return is_ours && reader.ok() ? head : 0;
}

bool may_have_symbol(const MappedObject& object) noexcept {
  return object.is_program() || object.first().path.find("libunwind") != std::string::npos;
}

void add_head(std::vector<Addr>& heads, Addr head) {
  if (head != 0 && std::ranges::find(heads, head) == heads.end() && heads.size() < ListHead::k_most)
    heads.push_back(head);
}

}  // namespace

void TargetHeads::find_notes(std::vector<Addr>& heads) const {
  modules_.for_each_object([&](MappedObject& object) { add_head(heads, head_by_note(object, arch_)); });
}

void TargetHeads::find_exported(std::vector<Addr>& heads) const {
  modules_.for_each_object([&](MappedObject& object) { add_head(heads, object.find_exported(k_symbol)); });
}

void TargetHeads::find_symbols(std::vector<Addr>& heads) const {
  modules_.for_each_object([&](MappedObject& object) {
    if (may_have_symbol(object)) add_head(heads, object.find_in_files(k_symbol, files_));
  });
}

bool TargetHeads::can_be_read(Addr head) const noexcept {
  std::array<std::byte, 16> bytes;
  const auto wanted = std::span(bytes).first(8u + arch_.word_size);
  MemoryWindow window;
  return memory_.read(head, wanted, window) == wanted.size();
}

std::vector<Addr> TargetHeads::find() const {
  std::vector<Addr> heads;
  find_notes(heads);
  if (heads.empty()) find_exported(heads);
  if (heads.empty()) find_symbols(heads);
  std::erase_if(heads, [this](Addr head) { return !can_be_read(head); });
  return heads;
}

bool TargetHeads::are_as_known() const noexcept {
  for (std::size_t number = 0; number < k_most; ++number) {
    MemoryWindow window;
    const Result<Addr> head = list_head(number, window);
    if (!head) return false;
    if (*head == 0) {
      if (indexes_[number].is_known()) return false;
      continue;
    }
    const Result<ListState> state = read_list_state(*head, memory_, arch_, window);
    if (!state || state->generation % 2 != 0 || !indexes_[number].is_of(*head, state->generation)) return false;
  }
  return true;
}

Result<Addr> TargetHeads::list_head(std::size_t number, MemoryWindow&) const noexcept try {
  if (!has_looked_) {
    heads_ = find();
    has_looked_ = true;
  }
  return number < heads_.size() ? heads_[number] : Addr{0};
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::out_of_memory, 0, "heads of the lists of procedures"};
}

}  // namespace jitunwind
