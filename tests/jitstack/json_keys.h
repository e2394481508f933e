// The keys of jitstack's JSON, and the page that describes them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/texts.h"

namespace jitunwind::test {

/// The tables of the page describe every key, and there are no others.
inline void expect_keys(const nlohmann::json& json, const std::set<std::string>& keys) {
  const std::vector<std::string> page = lines_of(text_of_file(JITUNWIND_SOURCE_DIR "/docs/jitstack.md"));
  std::set<std::string> found;
  for (const auto& [key, value] : json.items()) {
    found.insert(key);
    EXPECT_TRUE(std::ranges::any_of(page, [&](const std::string& line) {
      return line.starts_with("| `") && line.find("`" + key + "`") != line.npos;
    })) << key;
  }
  EXPECT_EQ(found, keys);
}

}  // namespace jitunwind::test
