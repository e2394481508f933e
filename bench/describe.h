// A function of the arena as this library's users describe it.
#pragma once

#include <jitunwind/jitunwind.h>

#include <string>

#include "bench/peer.h"
#include "jitunwind/builders/registers_x86_64.h"

namespace bench {

inline jitunwind::Description describe(const JitFunction& function, const std::string& name) {
  using namespace jitunwind::x86_64;
  const auto bytes = static_cast<std::int64_t>(function.locals);
  return jitunwind::x86_64::describe(name)
      .push({0, 1}, rbx)
      .allocate({1, 5}, bytes)
      .deallocate({-6, -2}, bytes)
      .pop({-2, -1}, rbx)
      .build()
      .value();
}

}  // namespace bench
