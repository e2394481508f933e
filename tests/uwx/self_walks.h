// Walks of the calling thread, by Unwind Express and by the cursor.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include <uwx_self.h>
#include "jitunwind/sdk/walk.h"

namespace jitunwind::test {

/// Addresses of frames in a form that handlers can use.
struct ListedFrames {
  std::array<std::uint64_t, 512> ips;
  std::array<std::uint64_t, 512> sps;
  std::size_t count = 0;

  void add(std::uint64_t ip, std::uint64_t sp) {
    if (count == ips.size()) return;
    ips[count] = ip;
    sps[count++] = sp;
  }
};

/// Compares with the addresses of another walk from the caller of both on.
inline void expect_same(const ListedFrames& cursor, const ListedFrames& uwx, std::size_t first = 0) {
  ASSERT_EQ(cursor.count, uwx.count);
  for (std::size_t i = first; i < cursor.count; ++i) {
    EXPECT_EQ(cursor.ips[i], uwx.ips[i]) << i;
    EXPECT_EQ(cursor.sps[i], uwx.sps[i]) << i;
  }
}

/// An environment for the calling thread. If `through_wrappers` is set, its callbacks are wrappers of the usual ones,
/// and everything is asked through them.
struct SelfEnv {
  explicit SelfEnv(bool through_wrappers = false) : env(uwx_init()), info(uwx_self_init_info(env)) {
    const std::intptr_t token = reinterpret_cast<std::intptr_t>(info);
    EXPECT_EQ(through_wrappers ? uwx_register_callbacks(env, token, &copyin, &lookupip)
                               : uwx_register_callbacks(env, token, &uwx_self_copyin, &uwx_self_lookupip),
              UWX_OK);
  }
  ~SelfEnv() {
    EXPECT_EQ(uwx_self_free_info(info), UWX_OK);
    EXPECT_EQ(uwx_free(env), UWX_OK);
  }
  SelfEnv(const SelfEnv&) = delete;
  SelfEnv& operator=(const SelfEnv&) = delete;

  std::uint64_t reg(int id) const {
    std::uint64_t value = 0;
    EXPECT_EQ(uwx_get_reg(env, id, &value), UWX_OK) << id;
    return value;
  }
  void add_to(ListedFrames& list) const { list.add(reg(UWX_REG_IP), reg(UWX_REG_SP)); }

  /// Lists frames down to the outermost one, through signal frames. Returns the last status.
  int list(ListedFrames& frames) const {
    for (;;) {
      add_to(frames);
      int status = uwx_step(env);
      if (status == UWX_ABI_FRAME) {
        EXPECT_EQ(uwx_get_abi_context_code(env), UWX_ABI_CONTEXT_SIGNAL);
        status = uwx_self_do_context_frame(env, info);
      }
      if (status != UWX_OK || frames.count == frames.ips.size()) return status;
    }
  }

  uwx_env* env;
  uwx_self_info* info;

 private:
  static int copyin(int request, char* loc, std::uint64_t rem, int len, std::intptr_t tok) {
    return uwx_self_copyin(request, loc, rem, len, tok);
  }
  static int lookupip(int request, std::uint64_t ip, std::intptr_t tok, std::uint64_t** resultp) {
    return uwx_self_lookupip(request, ip, tok, resultp);
  }
};

/// Lists frames from the calling function's own, whose address depends on where in it the walk was begun.
[[gnu::always_inline]] inline void list_by_cursor(ListedFrames& frames) {
  for (const Frame& frame : walk_here()) frames.add(frame.pc(), frame.sp());
}

}  // namespace jitunwind::test
