// The walk of libunwind's manual, from a cursor's frame.
#pragma once

#include <libunwind.h>

#include <gtest/gtest.h>

#include <vector>

namespace jitunwind::test {

/// Returns the IPs up to the outermost frame, at which the walk must end.
inline std::vector<unw_word_t> pcs_from(unw_cursor_t& cursor) {
  std::vector<unw_word_t> pcs;
  int moved = 1;
  while (moved > 0) {
    unw_word_t ip = 0;
    EXPECT_EQ(unw_get_reg(&cursor, UNW_REG_IP, &ip), 0);
    pcs.push_back(ip);
    moved = unw_step(&cursor);
  }
  EXPECT_EQ(moved, 0) << unw_strerror(moved);
  return pcs;
}

}  // namespace jitunwind::test
