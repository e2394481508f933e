#include "jitunwind/unwind_core/sources/guesses/code_pattern_p.h"

#include <algorithm>
#include <array>

#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

constexpr std::size_t k_longest_pattern = 32;

/// Compares the first code.size() bytes of the pattern.
bool matches(const CodePattern& pattern, std::span<const std::byte> code) noexcept {
  for (std::size_t i = 0; i < code.size(); ++i)
    if ((std::to_integer<unsigned>(code[i]) & pattern.mask[i]) != pattern.bytes[i]) return false;
  return true;
}

}  // namespace

const CodePattern* find_pattern(std::span<const CodePattern> patterns, Addr pc, const Memory& memory,
                                MemoryWindow& window, std::optional<Addr>* cut_off) noexcept {
  // A read of code made at run time is a system call. There is one for all patterns, and one for each pattern whose
  // room crosses into a page that is missing.
  std::size_t before = 0;
  std::size_t behind = 0;
  for (const CodePattern& pattern : patterns) {
    const std::size_t offset = pattern.pc_offset;
    before = std::max(before, offset);
    behind = std::max(behind, std::max(pattern.bytes.size(), offset) - offset);
  }
  std::array<std::byte, k_longest_pattern> buffer;
  const std::size_t whole = before + behind;
  const bool at_once = whole <= buffer.size() && pc >= before &&
                       memory.read(pc - before, std::span(buffer).first(whole), window) == whole;
  for (const CodePattern& pattern : patterns) {
    if (pattern.bytes.size() > buffer.size() || pattern.pc_offset > pc) continue;
    auto code = std::span(buffer).first(pattern.bytes.size());
    if (at_once) {
      code = std::span(buffer).subspan(before - pattern.pc_offset, pattern.bytes.size());
    } else if (const std::size_t there = memory.read(pc - pattern.pc_offset, code, window); there != code.size()) {
      if (cut_off && there > pattern.pc_offset && matches(pattern, code.first(there)))
        *cut_off = pc - pattern.pc_offset + there;
      continue;
    }
    if (matches(pattern, code)) return &pattern;
  }
  return nullptr;
}

CodeBefore::CodeBefore(Addr address, const Memory& memory, MemoryWindow& window) noexcept {
  const auto read = [&](std::size_t size) {
    const std::span into = std::span(bytes_).last(size);
    if (address >= size && memory.read(address - size, into, window) == size) size_ = size;
  };
  read(k_size);
  // There are fewer bytes at the start of a mapping.
  const auto on_page = static_cast<std::size_t>(address - page_of(address - 1));
  if (size_ == 0 && on_page < k_size) read(on_page);
}

bool CodeBefore::ends_with(const CodePattern& pattern) const noexcept {
  return pattern.bytes.size() <= size_ && matches(pattern, last(pattern.bytes.size()));
}

const CodePattern* CodeBefore::find_call(const Arch& arch) const noexcept {
  const auto call = std::ranges::find_if(arch.calls, [this](const CodePattern& one) { return ends_with(one); });
  return call == std::ranges::end(arch.calls) ? nullptr : &*call;
}

AddrRange code_around(const AddressSpace& space, MemoryWindow& window, Addr at) noexcept {
  if (const Module* const lasting = space.modules.find_lasting(at); lasting && lasting->text.contains(at))
    return lasting->text;
  Module module;
  if (space.modules.find(at, module) && module.text.contains(at)) return module.text;
  std::byte byte;
  const bool may_be_executed = space.memory.tells_executable()
                                   ? space.memory.is_executable(at, window).value_or(false)
                                   : space.memory.read(at, std::span(&byte, 1), window) == 1;
  return may_be_executed ? AddrRange{page_of(at), page_of(at) + k_page_size} : AddrRange{};
}

bool is_after_call(const AddressSpace& space, MemoryWindow& window, Addr address) noexcept {
  const Addr call = CodeAddress::returned_to(address).lookup();
  return address != 0 && CodeBefore(address, space.memory, window).is_call(space.arch) && is_code(space, window, call);
}

}  // namespace jitunwind
