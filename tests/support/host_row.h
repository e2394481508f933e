// Rows of this CPU, written for any CPU. SP and FP stand for its stack and frame pointer, SAVED for another register
// that calls preserve. Offsets are written for words of 8 bytes, and are halved if words have 4.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::test {

inline std::string host_row(std::string_view text) {
  const Arch& arch = *host_arch();
  const auto saved = std::find_if(arch.registers.begin(), arch.registers.end(), [&](const RegisterInfo& reg) {
    return reg.preserved && reg.dwarf != arch.sp && reg.dwarf != arch.fp && reg.dwarf != arch.ra;
  });
  const std::pair<std::string_view, std::string_view> names[]{
      {"SAVED", saved->name}, {"SP", arch.by_dwarf(arch.sp)->name}, {"FP", arch.by_dwarf(arch.fp)->name}};
  std::string row(text);
  for (const auto& [name, means] : names)
    for (std::size_t at = 0; (at = row.find(name, at)) != std::string::npos; at += means.size())
      row.replace(at, name.size(), means);
  if (arch.word_size == 8) return row;
  for (std::size_t at = 0; (at = row.find_first_of("+-", at)) != std::string::npos; ++at) {
    const std::size_t digits = row.find_first_not_of("0123456789", at + 1);
    const std::size_t length = std::min(digits, row.size()) - (at + 1);
    row.replace(at + 1, length, std::to_string(std::stol(row.substr(at + 1, length)) * arch.word_size / 8));
  }
  return row;
}

}  // namespace jitunwind::test
