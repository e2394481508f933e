// Sections that tests report by __register_frame, for code that does not exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "jitunwind/dyn_info/registry/registry.h"
#include "tests/builders/placed_eh_frame.h"

namespace jitunwind::test {

inline constexpr Addr k_code = 0x5'0000'0000;
inline const std::string k_row = std::string("dyn_table: ") + ToldFrameCode::k_saved_row;

inline const void* at(Addr address) { return reinterpret_cast<const void*>(address); }
inline std::size_t registered() { return registry_statistics().registered; }

/// Makes a section of `count` procedures of 16 bytes, one behind the other from `code` on.
inline std::unique_ptr<EhFrame> section_of(unsigned count, Addr code = k_code) {
  auto frames = std::make_unique<EhFrame>(4096 + 64 * std::size_t{count});
  for (unsigned i = 0; i < count; ++i) frames->fde(code + 16 * i, 16);
  frames->section.terminator();
  return frames;
}

}  // namespace jitunwind::test
