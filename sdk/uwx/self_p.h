// The token of the callbacks by which a thread walks its own stack.
#pragma once

#include <array>
#include <cstdint>

#include <uwx_self.h>
#include "jitunwind/sdk/uwx/answers/answer_writer_p.h"
#include "jitunwind/sdk/uwx/environment_p.h"
#include "jitunwind/sdk/uwx/names/file_cache_p.h"

/// The opaque structure of uwx_self.h.
struct uwx_self_info final {
  explicit uwx_self_info(uwx_env& env) noexcept
      : owner(env), files(env.environment.allocator()), strings(env.environment.allocator()) {}

  uwx_env& owner;
  /// The context that UWX_COPYIN_REG reads: that of the function which made it, or of the code that a signal has
  /// interrupted.
  jitunwind::RegisterFile context;
  /// Whether the next answer to SYMBOLS includes the source, for which debug information is read.
  bool wants_source = true;
  jitunwind::uwx::FileCache files;

  // The words of the current answer.
  std::array<std::uint64_t, jitunwind::uwx::k_answer_words> answer{};
  jitunwind::uwx::StringPool strings;
};
