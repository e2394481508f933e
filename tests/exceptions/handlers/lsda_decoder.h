// Reads the language-specific data of the C++ personality routine by its public description alone (Itanium C++ ABI,
// exception handling tables). It judges our tables.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <typeinfo>
#include <vector>

namespace jitunwind::test {

struct DecodedSite {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  std::uint64_t pad = 0;
  std::vector<std::int64_t> selectors;  ///< of the chain of actions; none: cleanup, if there is a pad
  friend bool operator==(const DecodedSite&, const DecodedSite&) = default;
};

struct DecodedTable {
  std::vector<DecodedSite> sites;
  std::map<std::int64_t, std::string> types;                 ///< by selector, "..." for null
  std::map<std::int64_t, std::vector<std::uint64_t>> lists;  ///< by selector; numbers of types

  /// Returns a line for each site: "4..6 -> 20 (1 St13runtime_error, 0)".
  std::string text() const;
};

/// `size` is the most that the data may have; reading behind it throws std::out_of_range.
DecodedTable decode_lsda(const void* data, std::size_t size);

}  // namespace jitunwind::test
