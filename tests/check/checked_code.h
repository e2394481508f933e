// Code as bytes and its description as rows in the row notation, held against each other.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/unwind_core/address_space.h"
#include "jitunwind/unwind_core/check/check.h"
#include "jitunwind/unwind_core/memory/bytes.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "tests/support/text_rows.h"

namespace jitunwind::test {

inline constexpr Addr k_code = 0x1000, k_data = 0x2000;

/// The bytes of pairs of hex digits; a word that is no such pair ends its line.
std::vector<std::byte> code_bytes(std::string_view text);

/// A line for each finding, with offsets in the code for addresses: "0x4: the row says ...".
std::vector<std::string> findings_of(const CheckReport& report, const Arch& arch);

/// `data` are the bytes at k_data. `has_lsda`: they are the code's language-specific data.
CheckReport check_text(const Arch& arch, std::string_view code, std::string_view rows, std::string_view data = "",
                       bool has_lsda = false);

}  // namespace jitunwind::test
