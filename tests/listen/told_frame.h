// A frame to throw through that only __register_frame describes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/builders/placed_eh_frame.h"
#include "tests/support/executable_copy.h"

namespace jitunwind::test {

/// Returns the code of void frame(void (*f)()).
inline std::vector<std::uint8_t> calling_frame() {
  return {ToldFrameCode::k_bytes.begin(), ToldFrameCode::k_bytes.end()};
}

/// Describes the code as the only procedure of `frames`.
inline void put_calling_frame(EhFrame& frames, const ExecutableCopy& code) {
  const auto begin = reinterpret_cast<std::uintptr_t>(code.begin());
  const std::span instructions = std::span(ToldFrameCode::k_fde_data).subspan(1);
  frames.section.fde(frames.cie(), begin, code.size(), bytes_of(instructions));
  frames.section.terminator();
}

}  // namespace jitunwind::test
