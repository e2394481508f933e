// One FDE for all procedures with equal directives. The unwinder gets the function's begin beside the FDE, and reads
// neither begin nor size of the code in the FDE (libgcc: uw_frame_state_for() takes dwarf_eh_bases::func). So such an
// FDE is right for any code.
//
// Procedures have one shape if their directives are equal up to a region that is counted from the end. The contents of
// directives are compared, not their addresses. So their owner may free them at any time, and no shape becomes invalid.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>

#include "jitunwind/dyn_info/directives/region_list_internal.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"

namespace jitunwind {
namespace {

constexpr LocalRegionReader k_regions;

/// Everything that the rows of a description depend on, in words.
class ShapeKey {
 public:
  /// False: its FDE is no other's.
  bool read(const unw_dyn_info_t& info) noexcept {
    if (info.u.pi.handler != 0 || info.gp != 0) return false;
    RegionHeader region;
    for (Addr at = reinterpret_cast<std::uintptr_t>(info.u.pi.regions); at != 0; at = region.next) {
      if (!k_regions.read_header(at, region)) return false;
      if (region.insn_count < 0) {
        if (region.next != 0) return false;
        tail_ = static_cast<std::uint64_t>(region.length());
        break;
      }
      front_ += static_cast<std::uint64_t>(region.length());
      if (!put_region(region)) return false;
    }
    words_[0] = count_;
    words_[1] = tail_;
    return true;
  }

  /// Instruction units up to the last row before the tail; further units have that row, too.
  std::uint64_t front() const noexcept { return front_ + 1; }
  std::uint64_t tail() const noexcept { return tail_; }
  std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(words_).first(count_)); }
  std::uint64_t hash() const noexcept {
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < count_; ++i) hash = hash_with(hash, words_[i]) ^ hash >> 32;
    return hash;
  }
  bool is_of(DerivedRecord& record) const noexcept {
    return bytes().size() <= record.size() && std::memcmp(record.bytes(), bytes().data(), bytes().size()) == 0;
  }

 private:
  static constexpr std::size_t k_words_of_op = sizeof(unw_dyn_op_t) / sizeof(std::uint64_t);

  bool put_region(const RegionHeader& region) noexcept {
    if (count_ == words_.size()) return false;
    std::uint64_t& head = words_[count_++];
    head = static_cast<std::uint64_t>(region.insn_count) << 32;
    std::array<unw_dyn_op_t, 1> buffer;
    for (std::uint32_t i = 0; i < region.op_count;) {
      const auto ops = k_regions.read_ops(region, i, buffer);
      if (!ops) return false;
      for (const unw_dyn_op_t& op : *ops) {
        if (op.tag == UNW_DYN_STOP) return true;
        if (op.tag == UNW_DYN_ALIAS || words_.size() - count_ < k_words_of_op) return false;
        std::memcpy(&words_[count_], &op, sizeof op);
        count_ += k_words_of_op;
        ++head, ++i;
      }
    }
    return true;
  }

  std::uint64_t front_ = 0, tail_ = 0;
  std::size_t count_ = 2;
  std::array<std::uint64_t, 96> words_;  // uninitialised
};

/// The first shapes of the process; they are never freed. One compare-exchange takes a place.
constexpr unsigned k_bits = 12;
constexpr std::size_t k_places = 8;                    ///< of a key
constexpr std::size_t k_slack = std::size_t{1} << 17;  ///< for the records that threads make at once, bytes
constinit std::array<std::atomic<DerivedRecord*>, std::size_t{1} << k_bits> shapes{};

/// Bytes of the records of all shapes. Records of procedures, which share the memory, must not run out for them.
constinit std::atomic<std::size_t> taken{0};

}  // namespace

const DerivedRecord* find_shape_fde(const unw_dyn_info_t& info) noexcept {
  const Addr unit = local_space().arch.unit;
  ShapeKey key;
  // The last unit of front() need not exist: it only gives the last row before the tail a place.
  if (!key.read(info) || (info.end_ip - info.start_ip) / unit < key.front() - 1 + key.tail()) return nullptr;
  // A larger distance between two rows would be written as DW_CFA_set_loc, which has an address of its own.
  if (key.front() > std::numeric_limits<std::uint32_t>::max()) return nullptr;
  const std::uint64_t hash = key.hash();
  for (std::size_t i = 0; i < k_places; ++i) {
    std::atomic<DerivedRecord*>& place = shapes[(table_place(hash, k_bits) + i) % shapes.size()];
    DerivedRecord* known = place.load(std::memory_order_acquire);
    if (known == nullptr) {
      // Several threads may pass this at once; the slack has room for the record of each.
      if (taken.load(std::memory_order_relaxed) >= DerivedRecords::k_most_shared - k_slack) return nullptr;
      const Addr end = key.front() * unit;
      unw_dyn_info_t alike{};  // no copy: writers change the list's links meanwhile
      alike.end_ip = end + key.tail() * unit;
      alike.format = info.format;
      alike.u.pi = info.u.pi;
      DerivedRecord* const made = with_room([&] { return encode_shape(alike, end, key.bytes()); });
      if (made == nullptr) return nullptr;
      if (place.compare_exchange_strong(known, made, std::memory_order_acq_rel)) {
        taken.fetch_add(sizeof(DerivedRecord) + made->size(), std::memory_order_relaxed);
        return made;
      }
      give_back_derived(made);
    }
    if (key.is_of(*known)) return known;
  }
  return nullptr;
}

}  // namespace jitunwind
