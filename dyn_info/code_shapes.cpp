#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <span>

#include "jitunwind/dyn_info/code_shape_internal.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/directives/region_list_internal.h"
#include "jitunwind/dyn_info/own_fde_internal.h"
#include "jitunwind/dyn_info/registry/index/registered_span_internal.h"
#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"

namespace jitunwind {
namespace {

constexpr LocalRegionReader k_regions;

/// Everything that the rows of a description depend on besides its addresses, in words.
class ShapeKey {
 public:
  /// False: its rows are no other's.
  bool read(const unw_dyn_info_t& info, const Arch& arch) noexcept {
    const std::uint64_t units = (info.end_ip - info.start_ip) / arch.unit;
    const bool is_directives = info.format == UNW_INFO_FORMAT_DYNAMIC;
    if (is_directives ? !read_directives(info) || units < front_ + tail_ : !read_fde(info, arch)) return false;
    words_[0] = std::uint64_t{is_directives} << 33 | std::uint64_t{has_facts_} << 32 | count_;
    return true;
  }

  std::size_t bytes_of_shape() const noexcept { return sizeof(CodeShape) + bytes().size(); }
  std::uint64_t hash() const noexcept {
    std::uint64_t hash = 0;
    std::size_t i = 0;
    for (; i + 1 < count_; i += 2) hash = hash_with(hash, words_[i] ^ spread(words_[i + 1]));
    return i < count_ ? hash_with(hash, words_[i]) : hash;
  }
  bool is_of(const CodeShape& shape) const noexcept {
    return shape.words == count_ && std::memcmp(shape.contents(), words_.data(), bytes().size()) == 0;
  }
  /// False: its rows are no other's. Instructions with addresses of their own are not plain.
  bool can_be_shared(const Arch& arch) const noexcept { return !fde_ || is_plain(*fde_, arch); }
  CodeShape* make(void* memory, std::uint32_t number, Addr unit) const noexcept {
    auto* const shape =
        new (memory) CodeShape{number, static_cast<std::uint32_t>(count_), front_, tail_, unit, has_facts_};
    std::memcpy(shape->contents(), words_.data(), bytes().size());
    return shape;
  }

 private:
  static constexpr std::size_t k_words_of_op = sizeof(unw_dyn_op_t) / sizeof(std::uint64_t);

  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(words_).first(count_)); }
  bool read_directives(const unw_dyn_info_t& info) noexcept {
    has_facts_ = info.u.pi.handler != 0 || lsda_extension(info).lsda != 0;
    RegionHeader region;
    for (Addr at = reinterpret_cast<std::uintptr_t>(info.u.pi.regions); at != 0; at = region.next) {
      if (!k_regions.read_header(at, region) || !put_region(region)) return false;
      const auto length = static_cast<std::uint64_t>(region.length());
      if (region.insn_count >= 0) {
        front_ += length;
      } else if (region.next == 0) {
        tail_ = length;
      } else {
        return false;
      }
    }
    return true;
  }
  /// Reads the table of one FDE for all of the code.
  bool read_fde(const unw_dyn_info_t& info, const Arch& arch) noexcept {
    if (!has_one_entry(info, arch)) return false;
    MemoryWindow window;
    Fde& fde = fde_.emplace();
    const Found own = find_own_fde(info, info.start_ip, arch, window, fde);
    if (!own || !*own || fde.range.begin != info.start_ip || fde.range.end < info.end_ip) return false;
    const Cie& cie = fde.cie;
    // Frames of FDEs that were not announced may have the personality of somebody else (procedure_of_fde_internal.h).
    const bool others_may_know = info.format == UNW_INFO_FORMAT_IP_OFFSET && !was_told(info);
    has_facts_ = others_may_know || cie.personality.value != 0 || fde.lsda.value != 0;
    front_ = std::numeric_limits<std::uint64_t>::max() / 2;  // its rows may change anywhere
    for (const std::uint64_t word :
         {cie.code_alignment, static_cast<std::uint64_t>(cie.data_alignment),
          std::uint64_t{cie.return_address} << 2 | std::uint64_t{cie.signal_frame} << 1 | cie.signed_with_b_key})
      words_[count_++] = word;
    return put_bytes(cie.instructions.bytes) && put_bytes(fde.instructions.bytes);
  }
  bool put_bytes(std::span<const std::byte> bytes) noexcept {
    const std::size_t words = (bytes.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
    if (words_.size() - count_ <= words) return false;
    words_[count_++] = bytes.size();
    if (words == 0) return true;
    words_[count_ + words - 1] = 0;
    std::memcpy(&words_[count_], bytes.data(), bytes.size());
    count_ += words;
    return true;
  }
  bool put_region(const RegionHeader& region) noexcept {
    if (count_ == words_.size()) return false;
    const auto* const ops = reinterpret_cast<const unw_dyn_region_info_t*>(static_cast<std::uintptr_t>(region.at))->op;
    const auto room = static_cast<std::uint32_t>((words_.size() - count_ - 1) / k_words_of_op);
    std::uint32_t size = 0;
    for (; size < region.op_count && ops[size].tag != UNW_DYN_STOP; ++size)
      if (size == room || ops[size].tag == UNW_DYN_ALIAS) return false;
    words_[count_++] = (static_cast<std::uint64_t>(region.insn_count) << 32) + size;
    std::memcpy(&words_[count_], ops, size * sizeof *ops);
    count_ += size * k_words_of_op;
    return true;
  }

  std::uint64_t front_ = 0, tail_ = 0;
  bool has_facts_ = false;
  std::optional<Fde> fde_;
  std::size_t count_ = 1;
  std::array<std::uint64_t, 96> words_;  // uninitialised
};

/// The first shapes of the process, by number - 1. One compare-exchange takes a place.
constexpr unsigned k_bits = 12;
constexpr std::size_t k_places = 8;                    ///< of a key
constexpr std::size_t k_slack = std::size_t{1} << 17;  ///< for the records that threads make at once, bytes
constinit std::array<std::atomic<CodeShape*>, std::size_t{1} << k_bits> shapes{};
static_assert(shapes.size() <= DerivedRecords::k_most_shape);

/// Bytes of the records of all shapes. Records of procedures, which share the memory, must not run out for them.
constinit std::atomic<std::size_t> taken{0};

CodeShape* by_number(std::uint32_t number) noexcept {
  return number == 0 ? nullptr : shapes[number - 1].load(std::memory_order_acquire);
}

/// Null: there is no room, or it cannot be shared.
CodeShape* find_or_make(const ShapeKey& key, const Arch& arch) noexcept {
  const std::uint64_t hash = key.hash();
  for (std::size_t i = 0; i < k_places; ++i) {
    const std::size_t place = (table_place(hash, k_bits) + i) % shapes.size();
    CodeShape* known = shapes[place].load(std::memory_order_acquire);
    if (known == nullptr) {
      if (!has_room_for_shared() || !key.can_be_shared(arch)) return nullptr;
      DerivedRecord* const record = allocate_derived(key.bytes_of_shape());
      if (record == nullptr) return nullptr;
      CodeShape* const made = key.make(record->bytes(), static_cast<std::uint32_t>(place + 1), arch.unit);
      if (shapes[place].compare_exchange_strong(known, made, std::memory_order_acq_rel))
        return count_shared(*record), made;
      give_back_derived(record);
    }
    if (key.is_of(*known)) return known;
  }
  return nullptr;
}

/// Finds the shape of a procedure that was not asked for before.
[[gnu::noinline]] CodeShape* find_by_contents(const unw_dyn_info_t& info) noexcept {
  const Arch* const arch = host_arch();
  const AddrRange code{info.start_ip, info.end_ip};
  ShapeKey key;
  if (!arch || code.size() % arch->unit != 0) return nullptr;
  return key.read(info, *arch) ? find_or_make(key, *arch) : nullptr;
}

class RegisteredShapes final : public CodeShapes {
 public:
  constexpr RegisteredShapes() = default;
  [[gnu::hot]] AlikePlace place_of(Addr at) const noexcept override {
    if (!registered_span.may_cover(at)) return {};
    const ShapeAnswer known = find_noted_shape(at);
    if (known.shape) [[likely]] {
      const CodeShape* const shape = by_number(*known.shape);
      return shape ? shape->place(known.procedure, at) : AlikePlace{};
    }
    return known.procedure.empty() ? AlikePlace{} : place_of_new(known.key, at);
  }

 private:
  [[gnu::noinline]] static AlikePlace place_of_new(RegistrationKey key, Addr at) noexcept {
    const ProcedureHold hold(key);
    return hold.info() ? jitunwind::place_of(hold, at) : AlikePlace{};
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
  if (const auto known = shape_of(hold)) return by_number(*known);
  const std::uint64_t forgotten = times_shapes_were_forgotten();
  CodeShape* const shape = find_by_contents(*hold.info());
  set_shape(hold, forgotten, shape ? shape->number : 0);
  return shape;
}

AlikePlace place_of(const ProcedureHold& hold, Addr at) noexcept {
  const CodeShape* const shape = find_shape(hold);
  return shape ? shape->place({hold.info()->start_ip, hold.info()->end_ip}, at) : AlikePlace{};
}

const CodeShapes& registered_shapes() noexcept { return k_registered_shapes; }

}  // namespace jitunwind
