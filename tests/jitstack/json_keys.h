// The keys of jitstack's JSON, and the page that describes them.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/support/texts.h"

namespace jitunwind::test {

/// The page describes every key, and there are no others.
inline void expect_keys(const nlohmann::json& json, const std::set<std::string>& keys) {
  const std::string page = text_of_file(JITUNWIND_SOURCE_DIR "/docs/jitstack.md");
  std::set<std::string> found;
  for (const auto& [key, value] : json.items()) {
    found.insert(key);
    EXPECT_NE(page.find("`" + key + "`"), std::string::npos) << key;
  }
  EXPECT_EQ(found, keys);
}

}  // namespace jitunwind::test
