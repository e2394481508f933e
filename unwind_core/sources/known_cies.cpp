#include "unwind_core/sources/known_cies.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "unwind_core/dwarf_constants_p.h"

namespace jitunwind {
namespace {

using namespace dwarf;

constexpr std::uint8_t k_relative = pe_pcrel | pe_sdata4;

/// Says nothing by bytes of its module.
bool is_plain(const FrameRow& row) noexcept {
  const auto has_expression = [](const FrameRow::Entry& e) { return e.rule.has_expression(); };
  return row.cfa.kind == CfaRule::Kind::offset && row.args_size == 0 &&
         std::ranges::none_of(row.entries(), has_expression);
}

std::span<const std::byte> bytes_of(const Cie& cie) noexcept {
  const std::span<const std::byte> last = cie.instructions.bytes;
  return {last.data() + last.size() - cie.size, static_cast<std::size_t>(cie.size)};
}

/// Where the personality routine's address of 4 bytes is in a CIE that is otherwise as usual (LSB 5.0 core, 10.6.1.1):
/// version 1, "zPLR", alignment factors and return address of one byte each, 7 bytes of augmentation data.
constexpr std::size_t k_personality_at = 19;

/// False: a personality routine that is not in its usual place.
bool mask_personality(std::span<const std::byte> bytes, std::span<std::byte> mask) noexcept {
  constexpr std::string_view k_usual("\1zPLR\0", 6);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string_view augmentation = text.substr(9, text.find('\0', 9) - 9);
  if (augmentation.find('P') == augmentation.npos) return true;
  const auto byte = [&](std::size_t at) { return std::to_integer<std::uint8_t>(bytes[at]); };
  const auto encoding = static_cast<std::uint8_t>(byte(18) & ~pe_indirect);
  if (text.substr(8, k_usual.size()) != k_usual || byte(14) >= 0x80 || byte(15) >= 0x80 || byte(17) != 7 ||
      (encoding != k_relative && encoding != pe_udata4))
    return false;
  std::ranges::fill(mask.subspan(k_personality_at, 4), std::byte{0});
  return true;
}

}  // namespace

void KnownCies::keep(const Cie& cie, const CfiContext& context, const FrameRow& initial,
                     std::span<const std::byte> state) noexcept {
  const bool is_usual = context.format == CfiContext::Format::eh_frame && context.arch.word_size == 8 &&
                        context.arch.big_endian == (std::endian::native == std::endian::big) && cie.version == 1 &&
                        cie.has_augmentation_data && cie.pointer_encoding == k_relative &&
                        (cie.lsda_encoding == pe_omit || cie.lsda_encoding == k_relative);
  if (!is_usual || cie.size > sizeof(Words) || state.size() > KnownCie::k_max_state || !is_plain(initial)) return;
  const std::span<const std::byte> bytes = bytes_of(cie);
  std::uint32_t length;  // 4 bytes of it, or what follows is elsewhere
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length + sizeof length != cie.size || cie.size < 2 * sizeof(std::uint64_t)) return;
  std::array<std::byte, sizeof(Words)> padded{};
  std::array<std::byte, sizeof(Words)> mask{};
  std::ranges::copy(bytes, padded.begin());
  std::fill_n(mask.begin(), bytes.size(), std::byte{0xff});
  if (!mask_personality(bytes, mask) || is_written_.exchange(true, std::memory_order_acquire)) return;
  const auto free = std::ranges::find(entries_, std::uint64_t{0}, [](const Entry& e) { return e.head.load(); });
  if (!find(padded, context.arch) && free != entries_.end()) {
    free->words = std::bit_cast<Words>(padded);
    free->mask = std::bit_cast<Words>(mask);
    free->known.arch = &context.arch;
    free->known.cie = cie;
    free->known.cie.address = 0;
    free->known.cie.personality = {};
    free->known.cie.instructions = {};
    free->known.data_size = cie.lsda_encoding == pe_omit ? 0 : 4;
    free->known.state_size = state.size();
    std::ranges::copy(state, free->known.state.begin());
    free->head.store(free->words[0], std::memory_order_release);
  }
  is_written_.store(false, std::memory_order_release);
}

}  // namespace jitunwind
