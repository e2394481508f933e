#include "jitunwind/unwind_core/image/dynamic_object_internal.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <span>

namespace jitunwind {
namespace {

// No real object exceeds these limits. The search gives up on hostile data that does.
constexpr std::size_t k_most_entries = 512;
constexpr std::size_t k_most_in_chain = 1u << 16;
constexpr std::size_t k_most_relocations = 1u << 20;
constexpr std::size_t k_longest_name = 64;

/// The hash functions of DT_GNU_HASH and DT_HASH (gABI, chapter 5 "Hash Table").
std::uint32_t gnu_hash(std::string_view name) noexcept {
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}
std::uint32_t system_v_hash(std::string_view name) noexcept {
  std::uint32_t hash = 0;
  for (const char c : name) {
    hash = (hash << 4) + static_cast<unsigned char>(c);
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  return hash;
}

}  // namespace

DynamicObject::DynamicObject(const Memory& memory, const Arch& arch, Addr bias, Addr dynamic) noexcept
    : memory_(memory), arch_(arch), bias_(bias), dynamic_(dynamic) {
  unreadable_ = !each_entry(dynamic, 2, k_most_entries, [&](std::span<const std::uint64_t> tag_and_value) {
    return says_.take(tag_and_value[0], tag_and_value[1]);
  });
}

/// Many at a time: memory is asked, and proven readable, once for all of them.
template <class Visit>
bool DynamicObject::each_entry(Addr at, std::size_t words, std::uint64_t count, Visit visit) noexcept {
  const std::size_t size = words * arch_.word_size;
  std::array<std::byte, 1536> bytes;
  std::array<std::uint64_t, 3> entry{};
  while (count != 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(count, bytes.size() / size));
    const std::span into(bytes.data(), wanted * size);
    const std::size_t there = memory_.read(at, into, window_) / size;
    if (there == 0) return false;
    ByteReader reader(into, arch_.big_endian);
    for (std::size_t i = 0; i < there; ++i) {
      for (std::size_t word = 0; word < words; ++word) entry[word] = reader.unsigned_of(arch_.word_size);
      if (!visit(std::span<const std::uint64_t>(entry).first(words))) return true;
    }
    count -= there;
    at += there * size;
  }
  return true;
}

std::uint64_t DynamicObject::number_at(Addr at, std::size_t size) noexcept {
  if (unreadable_) return 0;
  const auto read = read_unsigned(memory_, window_, at, size, arch_.big_endian, "dynamic section");
  unreadable_ = !read;
  return read ? *read : 0;
}

/// glibc relocates these pointers in place when the section is writable; other dynamic linkers do not. The candidate
/// that is nearer to the section is the run-time address.
Addr DynamicObject::at_run_time(Addr pointer) const noexcept {
  const auto distance = [this](Addr at) { return std::min(at - dynamic_, dynamic_ - at); };
  return distance(pointer + bias_) < distance(pointer) ? pointer + bias_ : pointer;
}

bool DynamicObject::stays_loaded() const noexcept { return (says_.flags & DF_1_NODELETE) != 0; }

std::optional<DynamicObject::Function> DynamicObject::find_function(std::string_view name) noexcept {
  return find(name, STT_FUNC);
}

std::optional<Addr> DynamicObject::find_variable(std::string_view name) noexcept {
  const auto found = find(name, STT_OBJECT);
  return found ? std::optional(found->address) : std::nullopt;
}

std::optional<DynamicObject::Function> DynamicObject::find(std::string_view name, std::uint8_t type) noexcept {
  wanted_type_ = type;
  if (name.size() > k_longest_name || says_.symbols == 0 || says_.strings == 0) return std::nullopt;
  if (says_.gnu_hash != 0) return find_by_gnu_hash(name);
  return says_.hash != 0 ? find_by_hash(name) : std::nullopt;
}

std::optional<DynamicObject::Function> DynamicObject::function_at(std::uint32_t symbol,
                                                                  std::string_view name) noexcept {
  const bool is_64 = arch_.word_size == 8;
  std::array<std::byte, symbol_size(true)> bytes;
  const std::span entry(bytes.data(), symbol_size(is_64));
  const Addr at = at_run_time(says_.symbols) + Addr{symbol} * entry.size();
  if (memory_.read(at, entry, window_) != entry.size()) return std::nullopt;
  ByteReader reader(entry, arch_.big_endian);
  const ElfSymbol read = read_symbol(reader, is_64);
  if (read.section == SHN_UNDEF || read.type != wanted_type_ || read.name >= says_.strings_size ||
      says_.strings_size - read.name <= name.size())
    return std::nullopt;
  std::array<char, k_longest_name + 1> text;
  const std::span own(text.data(), name.size() + 1);
  if (memory_.read(at_run_time(says_.strings) + read.name, std::as_writable_bytes(own), window_) != own.size() ||
      std::string_view(own.data(), name.size()) != name || own.back() != '\0')
    return std::nullopt;
  return Function{symbol, read.value + bias_};
}

/// DT_GNU_HASH holds, in this order: the number of buckets, the first hashed symbol, the number of Bloom words and the
/// Bloom shift; the Bloom words; the buckets, each with the first symbol of its chain; the hash of every hashed symbol.
/// Bit 0 of a hash is set at the end of a chain.
std::optional<DynamicObject::Function> DynamicObject::find_by_gnu_hash(std::string_view name) noexcept {
  const Addr table = at_run_time(says_.gnu_hash);
  const std::uint32_t buckets = u32_at(table);
  const std::uint32_t first = u32_at(table + 4);
  const std::uint32_t blooms = u32_at(table + 8);
  const std::uint32_t shift = u32_at(table + 12);
  if (unreadable_ || buckets == 0 || blooms == 0) return std::nullopt;
  const std::uint32_t hash = gnu_hash(name);
  const std::uint32_t bits = 8u * arch_.word_size;
  const std::uint64_t bloom = number_at(table + 16 + Addr{hash / bits % blooms} * arch_.word_size, arch_.word_size);
  const auto has_bit = [&](std::uint32_t bit) { return (bloom >> bit % bits & 1) != 0; };
  if (!has_bit(hash) || !has_bit(hash >> (shift & 31))) return std::nullopt;
  const Addr buckets_at = table + 16 + Addr{blooms} * arch_.word_size;
  const Addr chains_at = buckets_at + Addr{buckets} * 4;
  const std::uint32_t begin = u32_at(buckets_at + Addr{hash % buckets} * 4);
  if (unreadable_ || begin < first) return std::nullopt;
  for (std::uint32_t i = 0; i < k_most_in_chain; ++i) {
    const std::uint32_t entry = u32_at(chains_at + (Addr{begin} - first + i) * 4);
    if (unreadable_) break;
    if ((entry | 1) == (hash | 1))
      if (const auto found = function_at(begin + i, name)) return found;
    if ((entry & 1) != 0) break;
  }
  return std::nullopt;
}

/// DT_HASH holds, in this order: the number of buckets and of chain entries; the buckets, each with the first symbol of
/// its chain; the next symbol for every symbol, 0 at the end of a chain.
std::optional<DynamicObject::Function> DynamicObject::find_by_hash(std::string_view name) noexcept {
  const Addr table = at_run_time(says_.hash);
  const std::uint32_t buckets = u32_at(table);
  if (unreadable_ || buckets == 0) return std::nullopt;
  const Addr chains_at = table + 8 + Addr{buckets} * 4;
  std::uint32_t symbol = u32_at(table + 8 + Addr{system_v_hash(name) % buckets} * 4);
  for (std::size_t i = 0; i < k_most_in_chain && symbol != 0 && !unreadable_; ++i) {
    if (const auto found = function_at(symbol, name)) return found;
    symbol = u32_at(chains_at + Addr{symbol} * 4);
  }
  return std::nullopt;
}

/// Each entry holds offset, symbol with type, and addend: Elf64_Rela, Elf32_Rela.
Addr DynamicObject::find_slot(Addr relocations, std::uint64_t size, std::uint64_t first, std::uint32_t type,
                              std::uint32_t symbol) noexcept {
  const std::size_t word = arch_.word_size;
  const std::uint64_t count = std::min<std::uint64_t>(size / (3 * word), k_most_relocations);
  if (relocations == 0 || first > count) return 0;
  const std::uint64_t wanted = word == 8 ? std::uint64_t{symbol} << 32 | type : std::uint64_t{symbol} << 8 | type;
  Addr slot = 0;
  (void)each_entry(at_run_time(relocations) + first * 3 * word, 3, count - first,
                   [&](std::span<const std::uint64_t> entry) {
                     if (entry[1] != wanted) return true;
                     slot = entry[0] + bias_;
                     return false;
                   });
  return slot % word != 0 ? 0 : slot;
}

Addr DynamicObject::find_slot(const Function& function) noexcept {
  const bool of_calls = says_.call_relocations_kind == DT_RELA;
  const Addr slot =
      of_calls ? find_slot(says_.call_relocations, says_.call_relocations_size, 0, arch_.jump_slot, function.symbol)
               : 0;
  if (slot != 0) return slot;
  return find_slot(says_.relocations, says_.relocations_size, says_.relative_relocations, arch_.glob_dat,
                   function.symbol);
}

}  // namespace jitunwind
