#include "jitunwind/adapters/listen/frames/told_frames_p.h"

#include <cstring>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

constinit const LocalMemory k_memory;

/// A section without an end is read to the end of its memory, and never further than this.
constexpr std::uint64_t k_longest_section = std::uint64_t{1} << 30;
constexpr std::uint64_t k_longest_procedure = std::uint64_t{1} << 30;

SectionBytes page_around(Addr begin) noexcept {
  const Addr page = page_of(begin);
  return {{reinterpret_cast<const std::byte*>(page), k_page_size}, page};
}

/// An FDE has the distance to its CIE in the place where a CIE has 0 (LSB 5.0 core, 10.6.1), after 4 or 12 bytes of
/// length.
bool begins_with_fde(Addr begin, CfiBytes& bytes) noexcept {
  std::uint32_t word = 0;
  const auto read = [&](Addr at) {
    const auto found = bytes.view(at, sizeof word);
    if (found) std::memcpy(&word, found->data(), sizeof word);
    return bool(found);
  };
  if (!read(begin) || word == 0) return false;
  return read(begin + (word == 0xffffffffu ? 12 : 4)) && word != 0;
}

}  // namespace

bool is_empty_section(const void* begin) noexcept {
  std::uint32_t length = 0;
  if (begin != nullptr) std::memcpy(&length, begin, sizeof length);
  return length == 0;
}

ToldBytes::ToldBytes(Addr begin) noexcept : CfiBytes(page_around(begin)) {}

Result<std::span<const std::byte>> ToldBytes::view_elsewhere(Addr at, std::uint64_t size) noexcept {
  if (size > k_max_cfi_entry) return Error{ErrorCode::truncated, at, "entry longer than any that there is"};
  const auto length = static_cast<std::size_t>(size);
  if (const std::byte* const bytes = k_memory.view(at, length, window_)) return std::span(bytes, length);
  return unreadable(window_, at, "call frame information that was told of");
}

FrameReader::FrameReader(Addr begin, const FrameBases& bases) noexcept
    : begin_(begin),
      context_{.arch = local_space().arch, .text_base = bases.text, .data_base = bases.data},
      bytes_(begin),
      scan_(bytes_, context_, {begin, begin + k_longest_section}),
      is_single_(begins_with_fde(begin, bytes_)) {}

Result<bool> FrameReader::next_entry(Fde& out) noexcept {
  if (!is_single_) return scan_.next(out);
  if (ended_) return false;
  ended_ = true;
  Result<Fde> fde = read_fde(bytes_, context_, begin_);
  if (!fde) return fde.error();
  out = *fde;
  return true;
}

Result<bool> FrameReader::next(Fde& out) noexcept {
  for (;;) {
    const Result<bool> found = next_entry(out);
    if (!found || !*found) return found;
    if (out.range.begin != 0 && !out.range.empty()) return true;
  }
}

std::optional<Error> FrameReader::forbids_reading_again(const Fde& fde) noexcept {
  if (context_.text_base == 0) return std::nullopt;
  const CfiContext without_text{.arch = context_.arch, .data_base = context_.data_base};
  if (read_fde(bytes_, without_text, fde.address)) return std::nullopt;
  return Error{ErrorCode::bad_encoding, fde.address, "FDE with pointers relative to text, of which only the call says"};
}

bool read_usual_section(Addr begin, Fde& out) noexcept {
  const SectionBytes page = page_around(begin);
  return read_lone_fde({page.bytes.subspan(static_cast<std::size_t>(begin - page.address)), begin}, local_space().arch,
                       out);
}

std::optional<Error> disbelief(const Fde& fde) noexcept {
  const AddrRange& code = fde.range;
  if (code.end < code.begin || code.size() > k_longest_procedure)
    return Error{ErrorCode::e_range, fde.address, "FDE that claims more than a procedure can be"};
  const bool ends_a_page = code.size() >= k_page_size && code.end % k_page_size == 0;
  if (fde.cie.personality.value != 0 && fde.lsda.value == 0 && ends_a_page)
    return Error{ErrorCode::e_range, fde.address, "FDE that catches all up to the end of a page: no procedure"};
  return std::nullopt;
}

}  // namespace jitunwind
