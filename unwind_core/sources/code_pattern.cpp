#include "unwind_core/sources/code_pattern_p.h"

#include <array>

namespace jitunwind {
namespace {

constexpr std::size_t k_longest_pattern = 32;

bool matches(const CodePattern& pattern, std::span<const std::byte> code) noexcept {
  for (std::size_t i = 0; i < pattern.bytes.size(); ++i)
    if ((std::to_integer<unsigned>(code[i]) & pattern.mask[i]) != pattern.bytes[i]) return false;
  return true;
}

}  // namespace

const CodePattern* find_pattern(std::span<const CodePattern> patterns, Addr pc, const Memory& memory,
                                MemoryWindow& window) noexcept {
  for (const CodePattern& pattern : patterns) {
    std::array<std::byte, k_longest_pattern> buffer;
    if (pattern.bytes.size() > buffer.size() || pattern.pc_offset > pc) continue;
    const auto code = std::span(buffer).first(pattern.bytes.size());
    if (memory.read(pc - pattern.pc_offset, code, window) == code.size() && matches(pattern, code)) return &pattern;
  }
  return nullptr;
}

bool is_code(const AddressSpace& space, MemoryWindow& window, Addr at) noexcept {
  Module module;
  if (space.modules.find(at, module)) return module.text.contains(at);
  if (const auto executable = space.memory.is_executable(at, window)) return *executable;
  std::byte byte;
  return space.memory.read(at, std::span(&byte, 1), window) == 1;
}

bool is_after_call(const AddressSpace& space, MemoryWindow& window, Addr address) noexcept {
  const Addr call = CodeAddress::returned_to(address).lookup();
  return address != 0 && find_pattern(space.arch.calls, address, space.memory, window) && is_code(space, window, call);
}

}  // namespace jitunwind
