#include "jitunwind/unwind_core/sources/cfi/known_cies_p.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "jitunwind/unwind_core/sources/cfi/compact_cfi_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {
namespace {

using namespace dwarf;

constexpr std::uint8_t k_relative = pe_pcrel | pe_sdata4;

/// A CIE as compilers write it (LSB 5.0 core, 10.6.1.1): version 1, "z" and some of "P", "L", "R" and "S", numbers of
/// one byte. Members say what it says, and where the personality routine's address is: rows do not depend on that.
struct UsualCie {
  Cie cie{};
  std::uint8_t personality_encoding = 0;
  std::size_t personality_at = 0;  ///< 0: none
};

class UsualReader {
 public:
  explicit UsualReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  [[gnu::hot]] std::optional<UsualCie> read() noexcept {
    UsualCie out;
    std::uint32_t length = 0, id = 0;
    std::memcpy(&length, bytes_.data(), sizeof length);
    std::memcpy(&id, bytes_.data() + sizeof length, sizeof id);
    if (length > bytes_.size() - sizeof length || id != 0) return std::nullopt;
    Cie& cie = out.cie;
    cie.size = length + sizeof length;
    bytes_ = bytes_.first(static_cast<std::size_t>(cie.size));
    next_ = sizeof length + sizeof id;
    cie.version = static_cast<std::uint8_t>(small());
    const std::string_view augmentation = text();
    cie.code_alignment = small();
    // DWARF 5, 7.6: SLEB128 of one byte.
    cie.data_alignment = static_cast<std::int64_t>(std::uint64_t{small()} << 57) >> 57;
    cie.return_address = static_cast<RegNum>(small());
    const std::size_t data_size = small();
    const std::size_t end_of_data = next_ + data_size;
    if (failed_ || cie.version != 1 || augmentation.empty() || augmentation[0] != 'z') return std::nullopt;
    cie.has_augmentation_data = true;
    for (const char letter : augmentation.substr(1))
      if (!read_augmentation(letter, out)) return std::nullopt;
    if (failed_ || next_ != end_of_data || next_ > bytes_.size() ||
        (cie.pointer_encoding != k_relative && cie.pointer_encoding != pe_absptr))
      return std::nullopt;
    cie.instructions = {bytes_.subspan(next_), 0};
    return out;
  }

 private:
  unsigned byte() noexcept {
    if (next_ >= bytes_.size()) return failed_ = true, 0;
    return std::to_integer<unsigned>(bytes_[next_++]);
  }
  /// LEB128 of one byte.
  unsigned small() noexcept {
    const unsigned value = byte();
    failed_ = failed_ || value >= 0x80;
    return value;
  }
  std::string_view text() noexcept {
    const std::size_t begin = next_;
    while (byte() != 0) {
    }
    if (failed_) return {};
    return {reinterpret_cast<const char*>(bytes_.data()) + begin, next_ - 1 - begin};
  }
  [[gnu::hot]] bool read_augmentation(char letter, UsualCie& out) noexcept {
    switch (letter) {
      case 'R':
        out.cie.pointer_encoding = static_cast<std::uint8_t>(byte());
        return true;
      case 'L':
        out.cie.lsda_encoding = static_cast<std::uint8_t>(byte());
        return out.cie.lsda_encoding == k_relative;
      case 'S':
        return out.cie.signal_frame = true;
      case 'P': {
        out.personality_encoding = static_cast<std::uint8_t>(byte());
        const auto encoding = static_cast<std::uint8_t>(out.personality_encoding & ~unsigned{pe_indirect});
        out.personality_at = next_;
        next_ += 4;
        return encoding == k_relative || encoding == pe_udata4;
      }
      default:
        return false;
    }
  }

  std::span<const std::byte> bytes_;
  std::size_t next_ = 0;
  bool failed_ = false;
};

}  // namespace

[[gnu::hot]] const KnownCie* KnownCies::learn(std::span<const std::byte> bytes, const Arch& arch) noexcept {
  count_event(Counter::cie_read);
  if (arch.word_size != CompactRow::k_word || arch.big_endian != (std::endian::native == std::endian::big))
    return nullptr;
  Words padded{};
  const std::size_t available = std::min(bytes.size(), sizeof padded);
  std::memcpy(padded.data(), bytes.data(), available);
  const auto usual = UsualReader(std::as_bytes(std::span(padded)).first(available)).read();
  KnownCie known;
  if (!usual || usual->cie.size < 2 * sizeof(std::uint64_t) ||
      !find_initial_row(usual->cie, CompactLayout(arch), known.initial, known.is_outermost))
    return nullptr;
  known.arch = &arch;
  known.cie = usual->cie;
  known.cie.instructions = {};
  known.personality_encoding = usual->personality_encoding;
  known.personality_at = static_cast<std::uint8_t>(usual->personality_at);
  known.is_relative = usual->cie.pointer_encoding == k_relative;
  known.data_at = 2 * sizeof(std::uint32_t) + 2 * (known.is_relative ? sizeof(std::int32_t) : arch.word_size) + 1;
  known.data_size = usual->cie.lsda_encoding == pe_omit ? 0 : 4;
  // The mask has all of the CIE but for the personality routine's address.
  std::array<std::byte, sizeof(Words)> mask{};
  std::fill_n(mask.begin(), static_cast<std::size_t>(usual->cie.size), std::byte{0xff});
  if (usual->personality_at != 0)
    std::fill_n(mask.begin() + static_cast<std::ptrdiff_t>(usual->personality_at), 4, std::byte{0});
  return add(padded, std::bit_cast<Words>(mask), known);
}

/// Null: another thread adds one, or there is no room.
[[gnu::hot]] const KnownCie* KnownCies::add(const Words& words, const Words& mask, const KnownCie& known) noexcept {
  if (is_written_.exchange(true, std::memory_order_acquire)) return nullptr;
  const KnownCie* added = find_words(words, *known.arch);
  const auto free = std::ranges::find(entries_, std::uint64_t{0}, [](const Entry& e) { return e.head.load(); });
  if (!added && free != entries_.end()) {
    free->words = words;
    free->mask = mask;
    free->known = known;
    free->head.store(words[0], std::memory_order_release);
    added = &free->known;
  }
  is_written_.store(false, std::memory_order_release);
  return added;
}

[[gnu::hot]] void read_known_procedure(const SectionBytes& segment, Addr at, const CompactCode& code,
                                       Fde& out) noexcept {
  const auto read = [&](Addr place, std::uint8_t encoding) {
    std::int32_t distance = 0;
    std::memcpy(&distance, segment.bytes.data() + place, sizeof distance);
    if (distance == 0) return EncodedPointer{};
    const bool is_relative = (encoding & ~unsigned{pe_indirect}) == k_relative;
    const Addr value = is_relative ? segment.address + place + static_cast<Addr>(std::int64_t{distance})
                                   : static_cast<std::uint32_t>(distance);
    return EncodedPointer{value, (encoding & pe_indirect) != 0};
  };
  out.cie = *code.cie;
  out.cie.address = segment.address + code.cie_place;
  out.address = at;
  out.size = static_cast<Addr>(code.instructions.data() + code.instructions.size() - segment.bytes.data()) -
             (at - segment.address);
  out.range = code.range;
  if (code.known->personality_at != 0)
    out.cie.personality = read(code.cie_place + code.known->personality_at, code.known->personality_encoding);
  if (code.cie->lsda_encoding != pe_omit)
    out.lsda = read(at - segment.address + code.known->data_at, code.cie->lsda_encoding);
}

}  // namespace jitunwind
