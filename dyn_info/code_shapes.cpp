#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <utility>

#include "jitunwind/dyn_info/code_shape_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/own_fde_internal.h"
#include "jitunwind/dyn_info/procedure_rows_internal.h"
#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"
#include "jitunwind/dyn_info/registry/registry_state_p.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/kept/row_cache_internal.h"

namespace jitunwind {
namespace {

/// Everything that the rows of a description depend on besides its addresses. It is read where it lies, in one pass;
/// only a new shape has it copied.
class ShapeKey {
 public:
  /// False: its rows are no other's.
  bool read(const unw_dyn_info_t& info, const Arch& arch, CompactCode& code) noexcept {
    const std::uint64_t units = (info.end_ip - info.start_ip) >> std::countr_zero(arch.unit);
    const bool is_directives = info.format == UNW_INFO_FORMAT_DYNAMIC;
    if (is_directives ? !read_directives(info) || units < front_ + tail_ : !read_fde(info, arch, code)) return false;
    head_ = std::uint64_t{is_directives} << 33 | std::uint64_t{has_facts_} << 32 | size_;
    hash(head_, 0);
    return true;
  }

  std::size_t bytes_of_shape() const noexcept { return sizeof(CodeShape) + size_; }
  std::uint64_t hash() const noexcept { return hash_; }
  bool is_of(const CodeShape& shape) const noexcept {
    const std::byte* known = shape.contents();
    const auto is_next = [&known](const void* bytes, std::size_t size) {
      return std::memcmp(std::exchange(known, known + size), bytes, size) == 0;
    };
    return shape.head == head_ && std::ranges::all_of(parts(), [&](const Part& part) {
             return is_next(&part.head, sizeof part.head) && is_next(part.bytes, part.size);
           });
  }
  CodeShape* make(void* memory, std::uint32_t number, int unit_bits) const noexcept {
    auto* const shape = new (memory) CodeShape{number, head_, front_, tail_, unit_bits, has_facts_};
    std::byte* to = shape->contents();
    for (const Part& part : parts()) {
      to = static_cast<std::byte*>(std::memcpy(to, &part.head, sizeof part.head)) + sizeof part.head;
      to = static_cast<std::byte*>(std::memcpy(to, part.bytes, part.size)) + part.size;
    }
    return shape;
  }

 private:
  static constexpr std::size_t k_most_bytes = 768;  // of all parts

  struct Part {
    std::uint64_t head;
    const void* bytes;
    std::size_t size;
  };
  std::span<const Part> parts() const noexcept { return std::span(parts_).first(parts_used_); }

  bool read_directives(const unw_dyn_info_t& info) noexcept {
    const unw_dyn_region_info_t* region = info.u.pi.regions;
    has_facts_ = info.u.pi.handler != 0 || (region && region->insn_count == 0 && lsda_extension(info).lsda != 0);
    for (; region != nullptr; region = region->next)
      if (!put_region(*region) || !add_length(*region, front_, tail_)) return false;
    return true;
  }
  /// Reads the table of one FDE for all of the code. CIEs that are known by their bytes lead to the same rows.
  bool read_fde(const unw_dyn_info_t& info, const Arch& arch, CompactCode& code) noexcept {
    // Frames of FDEs that were not announced may have the personality of somebody else (procedure_of_fde_internal.h).
    has_facts_ = info.format == UNW_INFO_FORMAT_IP_OFFSET && !was_told(info);
    front_ = std::numeric_limits<std::uint64_t>::max() / 2;  // its rows may change anywhere
    if (find_known_fde(info, info.start_ip, arch, code) == 0)
      return has_one_entry(info, arch) && read_unusual_fde(info, arch);
    has_facts_ = has_facts_ || code.known->has_facts();
    return is_of_all(code.range, info) && put_bytes(reinterpret_cast<std::uintptr_t>(code.known), code.instructions);
  }
  [[gnu::cold, gnu::noinline]] bool read_unusual_fde(const unw_dyn_info_t& info, const Arch& arch) noexcept {
    MemoryWindow window;
    Fde fde;
    const Found own = find_own_fde(info, info.start_ip, arch, window, fde);
    const Cie& cie = fde.cie;
    has_facts_ = has_facts_ || cie.personality.value != 0 || fde.lsda.value != 0;
    // The size tells where the one part ends.
    const std::uint64_t others = std::uint64_t{cie.instructions.bytes.size()} << 32 |
                                 std::uint64_t{cie.return_address} << 2 | std::uint64_t{cie.signal_frame} << 1 |
                                 cie.signed_with_b_key;
    return own && *own && is_of_all(fde.range, info) && put_bytes(cie.code_alignment, cie.instructions.bytes) &&
           put_bytes(static_cast<std::uint64_t>(cie.data_alignment), fde.instructions.bytes) && put(others, &fde, 0);
  }
  static bool is_of_all(AddrRange range, const unw_dyn_info_t& info) noexcept {
    return range.begin == info.start_ip && range.end >= info.end_ip;
  }
  bool put_bytes(std::uint64_t head, std::span<const std::byte> bytes) noexcept {
    std::array<std::byte, 2 * sizeof(std::uint64_t)> padded{};
    const bool is_short = bytes.size() < padded.size();
    if (is_short) std::ranges::copy(bytes, padded.begin());
    const std::byte* at = is_short ? padded.data() : bytes.data();
    const std::byte* const last = is_short ? at : at + (bytes.size() - padded.size());
    for (; at < last; at += padded.size()) hash_words(at);
    hash_words(last);  // some bytes again, if they are not whole pairs of words
    return put(head, bytes.data(), bytes.size());
  }
  bool put_region(const unw_dyn_region_info_t& region) noexcept {
    const std::uint32_t most =
        std::min<std::uint32_t>(region.op_count, k_most_bytes / sizeof *region.op);  // put() fails
    static_assert(UNW_DYN_STOP == 0 && UNW_DYN_ALIAS == 8, "the multiples of 8 among the tags");
    const unw_dyn_op_t* op = region.op;
    for (const unw_dyn_op_t* const end = op + most; op != end && op->tag % 8 != 0; ++op) hash_words(op);
    const auto count = static_cast<std::uint32_t>(op - region.op);
    if (count != most && op->tag != UNW_DYN_STOP) return false;
    return put((static_cast<std::uint64_t>(region.insn_count) << 32) + count, region.op, count * sizeof *region.op);
  }
  bool put(std::uint64_t head, const void* bytes, std::size_t size) noexcept {
    if (parts_used_ == parts_.size() || size_ + sizeof head + size > k_most_bytes) return false;
    parts_[parts_used_++] = {head, bytes, size};
    size_ += sizeof head + size;
    hash(head, 0);
    return true;
  }
  /// The first word of the next two is mostly small in places where `second` is not.
  void hash(std::uint64_t first, std::uint64_t second) noexcept { hash_ = hash_with(hash_, first) ^ second; }
  void hash_words(const void* two) noexcept {
    std::array<std::uint64_t, 2> words;
    static_assert(sizeof words == sizeof(unw_dyn_op_t));
    std::memcpy(&words, two, sizeof words);
    hash(words[0], words[1]);
  }

  std::uint64_t front_ = 0, tail_ = 0;
  bool has_facts_ = false;
  std::uint64_t head_ = 0;
  std::uint64_t hash_ = 0;
  std::size_t size_ = 0;  // of the parts
  std::size_t parts_used_ = 0;
  std::array<Part, 16> parts_;  // uninitialised
};

/// The first shapes of the process, by number - 1. One compare-exchange takes a place.
constexpr unsigned k_bits = 12;
constexpr std::size_t k_places = 8;                    ///< of a key
constexpr std::size_t k_slack = std::size_t{1} << 17;  ///< for the records that threads make at once, bytes
[[gnu::section(".bss.large")]] constinit std::array<std::atomic<CodeShape*>, std::size_t{1} << k_bits> shapes{};
static_assert(shapes.size() <= DerivedRecords::k_most_shape);

/// Bytes of the records of all shapes. Records of procedures, which share the memory, must not run out for them.
constinit std::atomic<std::size_t> taken{0};

CodeShape* by_number(std::uint32_t number) noexcept {
  return number == 0 ? nullptr : shapes[number - 1].load(std::memory_order_acquire);
}

/// Null: there is no room.
CodeShape* find_or_make(const ShapeKey& key, int unit_bits) noexcept {
  const std::uint64_t hash = key.hash();
  for (std::size_t i = 0; i < k_places; ++i) {
    const std::size_t place = (table_place(hash, k_bits) + i) % shapes.size();
    CodeShape* known = shapes[place].load(std::memory_order_acquire);
    if (known == nullptr) {
      if (!has_room_for_shared()) return nullptr;
      DerivedRecord* const record = allocate_derived(key.bytes_of_shape());
      if (record == nullptr) return nullptr;
      CodeShape* const made = key.make(record->bytes(), static_cast<std::uint32_t>(place + 1), unit_bits);
      if (shapes[place].compare_exchange_strong(known, made, std::memory_order_acq_rel))
        return count_shared(*record), made;
      give_back_derived(record);
    }
    if (key.is_of(*known)) return known;
  }
  return nullptr;
}

/// The shape of a list of directives, and a registration that has it. Until that ends the list stays as it is, and is
/// not read where other procedures have it.
struct ShapeOfList {
  std::uint64_t registration = 0;
  std::uint32_t node = 0;
  std::uint32_t shape = 0;

  std::uint64_t digest() const noexcept { return hash_with(registration, std::uint64_t{node} << 32 | shape); }
};
using KnownList = CodeEntry<ShapeOfList>;
constexpr unsigned k_list_bits = 8;
using KnownLists = std::array<KnownList, std::size_t{1} << k_list_bits>;
constinit std::atomic<KnownLists*> known_lists{nullptr};

/// Null: there is no room.
KnownLists* make_known_lists() noexcept {
  KnownLists* lists = known_lists.load(std::memory_order_acquire);
  DerivedRecord* const record = !lists && has_room_for_shared() ? allocate_derived(sizeof *lists) : nullptr;
  if (!record) return lists;
  auto* const made = new (record->bytes()) KnownLists{};
  if (known_lists.compare_exchange_strong(lists, made, std::memory_order_acq_rel)) return count_shared(*record), made;
  give_back_derived(record);
  return lists;
}

/// Returns null if no shape is known of the list. Both registrations are there at one moment, and the known one was
/// before. So the list is as it was when its shape was found.
[[gnu::noinline]] CodeShape* find_by_list(RegistrationKey key, AddrRange code, DerivedRecords::Note note) noexcept {
  const Addr list = note.list();
  const KnownLists* const lists = known_lists.load(std::memory_order_acquire);
  if (list == 0 || !lists) return nullptr;
  const KnownList& known = (*lists)[table_place(list, k_list_bits)];
  const ShapeOfList there = known.value();
  if (!known.holds(there, list, KnownList::cipher(note.forgotten))) return nullptr;
  CodeShape* const shape = by_number(there.shape);
  const RegistrationKey other{there.registration, there.node};
  if (!shape->has_room(code) || !registry_state.has(other) || !registry_state.has(key)) return nullptr;
  registry_state.derived.set_shape(key.node, key.registration, note.forgotten, there.shape);
  return shape;
}

/// Finds and notes the shape of a procedure that none is noted of. `code` is set if its FDE was read.
[[gnu::noinline]] CodeShape* note_shape(const ProcedureHold& hold, CompactCode& code) noexcept {
  const std::uint64_t forgotten = registry_state.derived.times_forgotten();
  const unw_dyn_info_t& info = *hold.info();
  const Arch* const arch = host_arch();
  const Addr list = list_of(info);
  ShapeKey key;
  const bool has_shape = arch && !matches_nothing(info, *arch) && key.read(info, *arch, code);
  CodeShape* const shape = has_shape ? find_or_make(key, std::countr_zero(arch->unit)) : nullptr;
  registry_state.derived.set_shape(hold.key().node, hold.key().registration, forgotten, shape ? shape->number : 0);
  // A list is the procedure's own if it has its data or lies behind its descriptor.
  const bool is_behind = list - reinterpret_cast<std::uintptr_t>(&info) < 2 * sizeof info;
  if (!shape || list == 0 || is_behind || info.u.pi.regions->insn_count == 0) return shape;
  if (KnownLists* const lists = make_known_lists()) {
    const ShapeOfList found{hold.key().registration, hold.key().node, shape->number};
    (*lists)[table_place(list, k_list_bits)].set(found, KnownList::key_of(list, found, KnownList::cipher(forgotten)));
  }
  return shape;
}

class RegisteredShapes final : public CodeShapes {
 public:
  constexpr RegisteredShapes() = default;
  [[gnu::hot]] CallerRule find_rule(Addr at, const AlikeRules& rules, NewRow& row) const noexcept override {
    if (!registered_span.may_cover(at)) return {};
    const ShapeAnswer known = find_noted_shape(at);
    if (known.procedure.empty()) return {};
    AlikePlace place;
    const auto noted = known.note.shape(known.key.registration);
    CodeShape* shape = noted ? by_number(*noted) : nullptr;
    if (known.note.list() != 0) shape = find_by_list(known.key, known.procedure, known.note);
    if (shape || noted) {
      if (shape) place = shape->place(known.procedure, at);
      if (!place) return {};
      if (const CallerRule rule = rules.find(place); rule.kept_by() != KeptBy::nothing) return rule;
    }
    return find_new(known.key, place, at, rules, row);
  }

 private:
  /// Goes on where no shape is noted, or nothing is kept of its `place`. The row is of the registration that the place
  /// is of, and has the place only together with it: sources that are asked later may know other code.
  [[gnu::noinline]] static CallerRule find_new(RegistrationKey key, AlikePlace place, Addr at, const AlikeRules& rules,
                                               NewRow& row) noexcept {
    const ProcedureHold hold(key);
    if (!hold.info()) return {};
    CompactCode code;
    if (!place) {
      if (CodeShape* const shape = note_shape(hold, code)) place = shape->place(code_of(*hold.info()), at);
      if (!place) return {};
      if (const CallerRule rule = rules.find(place); rule.kept_by() != KeptBy::nothing) return rule;
    }
    row.is_made = find_short_row(*hold.info(), at, code, row);
    if (row.is_made) row.alike = place;
    return {};
  }
};
constexpr RegisteredShapes k_registered_shapes;

}  // namespace

// Several threads may pass this at once; the slack has room for the record of each.
bool has_room_for_shared() noexcept {
  return taken.load(std::memory_order_relaxed) < DerivedRecords::k_most_shared - k_slack;
}
void count_shared(const DerivedRecord& record) noexcept {
  taken.fetch_add(sizeof record + record.size(), std::memory_order_relaxed);
}

CodeShape* find_shape(const ProcedureHold& hold) noexcept {
  const DerivedRecords::Note note = registry_state.derived.note(hold.key().node);
  if (const auto known = note.shape(hold.key().registration)) return by_number(*known);
  if (CodeShape* const shape = find_by_list(hold.key(), code_of(*hold.info()), note)) return shape;
  CompactCode ignored;
  return note_shape(hold, ignored);
}

AlikePlace place_of(const ProcedureHold& hold, Addr at) noexcept {
  CodeShape* const shape = find_shape(hold);
  return shape ? shape->place(code_of(*hold.info()), at) : AlikePlace{};
}

[[gnu::hot]] const CodeShapes& registered_shapes() noexcept { return k_registered_shapes; }

}  // namespace jitunwind
