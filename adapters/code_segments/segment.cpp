#include "jitunwind/adapters/code_segments/segment_p.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_longest_name = 499;
// The tables must have so much left for another function: a longest name, and a frame of many instructions.
constexpr std::size_t k_spare_strings = k_longest_name + 13;
constexpr std::size_t k_spare_frames = 2048;

}  // namespace

Segment::Segment(SegmentMemory memory, const SegmentLayout& layout)
    : memory_(std::move(memory)),
      layout_(layout),
      text_(memory_.image() + layout.text_address - layout.tables),
      block_shift_(static_cast<unsigned>(std::bit_width(layout.text_bytes / layout.functions))),
      frames_end_(layout.first_frame) {
  functions_.reserve(layout.functions);
  blocks_.reserve(layout.functions);
}

template <class Number>
void Segment::store(std::size_t at, Number value) noexcept {
  // Other CPUs publish nothing: SegmentLayout::can_be_written().
  if constexpr (sizeof(Number) <= sizeof(void*)) {
    auto& place = *reinterpret_cast<Number*>(memory_.tables() + at);
    std::atomic_ref<Number>(place).store(value, std::memory_order_release);
  }
}

/// The bytes are none that a reader looks at.
void Segment::copy(std::size_t at, const void* from, std::size_t size) noexcept {
  std::memcpy(memory_.tables() + at, from, size);
}

void Segment::note_change() noexcept { store(layout_.generation(), ++generation_); }

/// An entry is two offsets of 4 bytes from the table, of the code and of its FDE.
void Segment::store_search_entry(Index index, std::size_t frame) noexcept {
  const Addr table = memory_.image() + layout_.search_table;
  const std::uint64_t code = static_cast<std::uint32_t>(start(functions_[index]) - table);
  store(layout_.search_entry(index), code | std::uint64_t{frame - layout_.search_table} << 32);
}

std::size_t Segment::frames_left() const noexcept {
  const std::size_t reserved = k_frames_of_function * without_frames_;
  return layout_.frames + layout_.frames_bytes - frames_end_ - k_frames_end - reserved;
}

std::size_t Segment::strings_left() const noexcept { return layout_.strings_bytes - strings_end_; }

bool Segment::has_room_in_tables(std::size_t count) const noexcept {
  const auto has = [=](std::size_t left, std::size_t spare, std::size_t each) {
    return left >= spare + (count - 1) * each;
  };
  return !is_published() || (has(strings_left(), k_spare_strings, k_name_of_function) &&
                             has(frames_left(), k_spare_frames, k_frames_of_function));
}

bool Segment::is_half_full() const noexcept {
  const auto half = [](std::size_t used, std::size_t all) { return used >= all / 2; };
  return half(text_end_, layout_.text_bytes) || half(functions_.size(), layout_.functions) ||
         (is_published() &&
          (half(strings_end_, layout_.strings_bytes) || half(frames_end_ - layout_.frames, layout_.frames_bytes)));
}

std::optional<Segment::Index> Segment::append(const RoomSize& size) noexcept {
  const auto up_to = [](std::size_t at, std::size_t unit) { return (at + unit - 1) / unit * unit; };
  const std::size_t begin = up_to(text_end_, size.alignment);
  return append_at(begin, begin + up_to(size.bytes, RoomSize().alignment), size);
}

std::optional<Segment::Index> Segment::append_at(std::size_t begin, std::size_t end, const RoomSize& size) noexcept {
  if (layout_.functions - functions_.size() <= size.parts || end > layout_.text_bytes ||
      !has_room_in_tables(1 + size.parts))
    return std::nullopt;
  const auto index = static_cast<Index>(functions_.size());
  if (!back_room(index + 1 + size.parts, end)) return std::nullopt;
  functions_.push_back({.at = static_cast<std::uint32_t>(begin),  // of reserved room
                        .size = static_cast<std::uint32_t>(end - begin),
                        .parts = static_cast<Index>(size.parts),
                        .alignment = static_cast<std::uint32_t>(size.alignment)});
  functions_.resize(functions_.size() + size.parts,
                    {.at = static_cast<std::uint32_t>(end - 1), .state = Function::State::part});
  blocks_.resize(std::max(blocks_.size(), block_of(begin) + 1), index);  // of reserved room, too
  text_end_ = end;
  ++rooms_;
  if (is_published())
    for (Index i = index; i < functions_.size(); ++i) append_tables(i);
  return index;
}

/// Gives the file pages for so many functions, with a name and frames for each that has none yet, and for the text.
bool Segment::back_room(std::size_t count, std::size_t text_end) noexcept {
  const std::size_t more = count - functions_.size(), frames = k_frames_of_function * (without_frames_ + more);
  return !is_published() ||
         (memory_.back(Growing::symbols, 0, layout_.symbol(count)) &&
          memory_.back(Growing::strings, layout_.strings, layout_.strings + strings_end_ + k_name_of_function * more) &&
          memory_.back(Growing::search_table, layout_.search_table, layout_.search_entry(count)) &&
          memory_.back(Growing::frames, layout_.frames, frames_end_ + frames + k_frames_end) &&
          memory_.back(Growing::text, layout_.text, layout_.text + text_end));
}

void Segment::append_tables(Index index) noexcept {
  functions_[index].name = take_string(k_name_of_function);
  ++without_frames_;
  store_search_entry(index, layout_.no_frame);
  store(layout_.frame_count(), index + 1);
  store(layout_.symbol(index), k_no_symbol);
  store(layout_.symbol_count(), index + 2);
  store(layout_.symbols_size(), std::uint64_t{layout_.symbols_bytes(index + 1)});
}

std::optional<Segment::Index> Segment::find(Addr start) const noexcept {
  if (next_ >= functions_.size() || functions_[next_].at != start - text_) {
    const std::size_t block = block_of(start - text_);
    if (block >= blocks_.size()) return std::nullopt;
    const auto end = block + 1 == blocks_.size() ? functions_.end() : functions_.begin() + blocks_[block + 1];
    const auto found =
        std::ranges::lower_bound(functions_.begin() + blocks_[block], end, start - text_, {}, &Function::at);
    if (found == end || found->at != start - text_ || found->state == Function::State::part) return std::nullopt;
    next_ = static_cast<Index>(found - functions_.begin());
  }
  return std::exchange(next_, next_ + 1 + functions_[next_].parts);
}

std::optional<Segment::Index> Segment::find_around(Addr at) const noexcept {
  auto found = std::ranges::upper_bound(functions_, at - text_, {}, &Function::at);
  while (found != functions_.begin()) {
    if (const Function& function = *--found; function.state != Function::State::part)
      return at - text_ - function.at < function.size ? std::optional(static_cast<Index>(found - functions_.begin()))
                                                      : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Segment::Index> Segment::take_entry(Index room, Addr start) noexcept {
  Function& head = functions_[room];
  const auto at = static_cast<std::uint32_t>(start - text_);
  const Index next = room + 1 + head.parts_used;
  if (at == head.at && head.parts_used == 0 && !head.is_published) return room;
  if (head.parts_used == head.parts || functions_[next - 1].at >= at) return std::nullopt;
  ++head.parts_used;
  functions_[next].at = at;
  return next;
}

/// The FDE is made longer, so that another one may have its place.
bool Segment::append_frames(Function& function, std::span<const std::byte> frames) noexcept {
  const std::size_t size = std::max(frames.size(), k_frames_of_function);
  const bool is_first = function.frames.size == 0;
  if (frames_left() + (is_first ? k_frames_of_function : 0) < size ||
      !memory_.back(Growing::frames, layout_.frames, frames_end_ + size + k_frames_end))
    return false;
  if (is_first) --without_frames_;
  const std::size_t fde = entry_size(frames.data());
  const auto cie_length = static_cast<std::uint32_t>(fde - sizeof(std::uint32_t));
  const auto fde_length = static_cast<std::uint32_t>(size - fde - sizeof(std::uint32_t));
  copy(frames_end_ + sizeof cie_length, frames.data() + sizeof cie_length, frames.size() - sizeof cie_length);
  copy(frames_end_ + fde, &fde_length, sizeof fde_length);
  function.frames = {static_cast<std::uint32_t>(frames_end_), static_cast<std::uint32_t>(size)};
  const Addr begin = start(function) - (memory_.image() + frames_end_ + fde + k_fde_begin);
  copy(frames_end_ + fde + k_fde_begin, &begin, sizeof begin);
  frames_end_ += size;
  store(function.frames.at, cie_length);
  store(layout_.frames_size(), std::uint64_t{frames_end_ - layout_.frames});
  return true;
}

/// Whether they may be rewritten to these. A personality routine has another distance there.
bool Segment::may_hold(const Slot& slot, std::span<const std::byte> frames) const noexcept {
  if (slot.size < frames.size()) return false;
  const std::byte *const own = memory_.tables() + slot.at, *const cie = frames.data();
  const std::size_t at = pointers_of(cie).personality, behind = at == 0 ? 0 : at + sizeof(Addr);
  Addr has = 0, wanted = 0;
  std::memcpy(&has, own + at, behind - at), std::memcpy(&wanted, cie + at, behind - at);
  return std::memcmp(own, cie, at) == 0 && (at == 0 || has == wanted + (frames_end_ - slot.at)) &&
         std::memcmp(own + behind, cie + behind, entry_size(cie) - behind) == 0;
}

/// The CIE and both lengths of the FDE stay.
void Segment::rewrite_frames(const Function& function, std::span<const std::byte> frames) noexcept {
  constexpr std::size_t k_word = sizeof(std::uint64_t);
  const std::size_t fde = entry_size(frames.data()), lsda = pointers_of(frames.data()).lsda;
  const std::size_t first = fde + k_fde_range + k_word + (lsda != 0 ? k_word : 0);
  const std::size_t begin = function.frames.at + fde + k_fde_begin;
  store(begin, start(function) - (memory_.image() + begin));
  for (std::size_t at = function.frames.size; at > first; at -= k_word)
    store(function.frames.at + at - k_word, std::uint64_t{0});
  for (std::size_t at = first; at < frames.size(); at += k_word) {
    std::uint64_t word = 0;
    std::memcpy(&word, frames.data() + at, k_word);
    store(function.frames.at + at, word);
  }
  if (lsda == 0) return;
  Addr distance = 0;
  std::memcpy(&distance, frames.data() + lsda, sizeof distance);
  distance += frames_end_ - function.frames.at;
  copy(function.frames.at + lsda, &distance, sizeof distance);
}

/// Gives the function that which an empty one has in a table, if it serves. Somebody may read it just now.
template <class Serves>
bool Segment::take_over(Function& function, Slot Function::*slot, Serves serves) noexcept {
  const auto other =
      std::ranges::find_if(functions_, [&](const Function& f) { return f.is_gone() && serves(f.*slot); });
  if (other != functions_.end()) std::swap(function.*slot, (*other).*slot);
  return other != functions_.end();
}

bool Segment::publish_frame(Index index, std::span<const std::byte> frames) noexcept {
  if (frames.empty()) return true;
  Function& function = functions_[index];
  const std::size_t cie = entry_size(frames.data());
  const auto may_hold_them = [&](const Slot& slot) { return may_hold(slot, frames); };
  const bool has_slot = may_hold_them(function.frames) ||
                        (function.frames.size != 0 && take_over(function, &Function::frames, may_hold_them));
  if (!has_slot && !append_frames(function, frames)) return false;
  if (has_slot) rewrite_frames(function, frames);
  const std::size_t fde = function.frames.at + cie;
  std::uint64_t range = 0;
  std::memcpy(&range, frames.data() + cie + k_fde_range, sizeof range);
  store(fde + k_fde_range, range);
  store_search_entry(index, fde);
  return true;
}

Segment::Slot Segment::take_string(std::size_t size) noexcept {
  const Slot slot{static_cast<std::uint32_t>(strings_end_), static_cast<std::uint32_t>(size)};
  strings_end_ += size;
  return slot;
}

/// `is_new`: nobody has read the function's name. Others may read it just now, so that it has another room as long as
/// there is much.
bool Segment::find_room_for_name(Function& function, std::size_t size, bool is_new) noexcept {
  const auto fits = [=](const Slot& slot) { return slot.size >= size; };
  const bool is_scarce = strings_left() < layout_.strings_bytes / 2;
  if (fits(function.name) && (is_new || is_scarce)) return true;
  if (is_scarce && take_over(function, &Function::name, fits)) return true;
  const std::size_t wanted = std::max(size, k_name_of_function);
  if (strings_left() < wanted ||
      !memory_.back(Growing::strings, layout_.strings, layout_.strings + strings_end_ + wanted))
    return fits(function.name);
  function.name = take_string(wanted);
  return true;
}

bool Segment::publish_symbol(Index index, std::uint64_t size, std::string_view name) noexcept {
  if (name.empty()) return true;
  name = name.substr(0, k_longest_name);
  Function& function = functions_[index];
  if (!find_room_for_name(function, name.size() + 1, !function.was_named)) return false;
  function.was_named = true;
  auto* const bytes = reinterpret_cast<char*>(memory_.tables() + layout_.strings + function.name.at);
  *std::ranges::replace_copy_if(name, bytes, Line::is_control, '?').out = '\0';
  Elf64_Sym symbol{};
  symbol.st_name = function.name.at;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbol.st_shndx = k_text_section;
  std::uint64_t first_word = 0;
  std::memcpy(&first_word, &symbol, sizeof first_word);
  const std::size_t at = layout_.symbol(index);
  const std::uint64_t address = layout_.text_address + function.at;
  const std::uint64_t left_out = address == 0 ? 1 : 0;  // bpftrace 0.27 takes a symbol of address 0 for none
  store(at + offsetof(Elf64_Sym, st_size), size - left_out);
  store(at + offsetof(Elf64_Sym, st_value), address + left_out);
  store(at, first_word);
  return true;
}

bool Segment::publish(Index index, std::uint64_t size, std::span<const std::byte> frames,
                      std::string_view name) noexcept {
  const bool is_first = functions_[index].frames.size == 0;
  const std::size_t used = frames_end_ + strings_end_;
  const bool has_frame = publish_frame(index, frames);
  const bool has_symbol = publish_symbol(index, size, name);
  functions_[index].is_published = has_frame && has_symbol && !frames.empty() && !name.empty();
  known_text_ = std::max(known_text_, functions_[index].at + std::max<std::uint64_t>(functions_[index].size, size));
  store(layout_.text_size(), known_text_);
  note_change();
  if (!is_first && frames_end_ + strings_end_ != used && !has_room_in_tables()) are_tables_full_ = true;
  return has_frame && has_symbol;
}

void Segment::withdraw(Index room) noexcept {
  Function& head = functions_[room];
  for (Index& used = head.parts_used; used != 0; --used) {
    functions_[room + used].at = head.at + head.size - 1;
    withdraw_one(room + used);
  }
  withdraw_one(room);
}

void Segment::withdraw_one(Index index) noexcept {
  Function& function = functions_[index];
  function.is_published = false;
  const std::size_t symbol = layout_.symbol(index);
  store(symbol, k_no_symbol);
  store(symbol + offsetof(Elf64_Sym, st_value), std::uint64_t{0});
  store_search_entry(index, layout_.no_frame);
  note_change();
  if (function.frames.size == 0) return;
  const std::size_t fde = function.frames.at + entry_size(memory_.tables() + function.frames.at);
  store(fde + k_fde_range, std::uint64_t{0});
  store(fde + k_fde_begin, text().end - (memory_.image() + fde + k_fde_begin));
}

/// Copies what is used; the rest of a copy's pages are 0, as the file's are. Nobody writes to the file of a sealed one.
void Segment::before_fork() noexcept {
  copy_ =
      is_writable() && !memory_.is_sealed() ? static_cast<std::byte*>(map_memory(layout_.text + text_end_)) : nullptr;
  if (copy_ == nullptr) return;
  for (const FilePart& part : parts())
    if (!part.bytes.empty()) std::memcpy(copy_ + part.at, part.bytes.data(), part.bytes.size());
}

void Segment::after_fork_in_parent() noexcept {
  if (copy_ != nullptr) unmap_memory(std::exchange(copy_, nullptr), layout_.text + text_end_);
}

void Segment::after_fork_in_child() noexcept {
  memory_.leave_to_parent(std::exchange(copy_, nullptr), layout_.text, layout_.text + text_end_);
}

}  // namespace jitunwind
