// A function of the arena as users of this library describe it.
#pragma once

#include <jitunwind/c.h>
#include <jitunwind/jitunwind.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "bench/peer.h"
#include "jitunwind/builders/registers_x86_64.h"

namespace bench {

/// `Builder`: a builder, or marks.
template <class Builder>
void record(const JitFunction& function, Builder& builder) {
  using namespace jitunwind::x86_64;
  const auto bytes = static_cast<std::int64_t>(function.locals);
  builder.push({0, 1}, rbx).allocate({1, 8}, bytes).deallocate({-9, -2}, bytes).pop({-2, -1}, rbx);
}

inline jitunwind::Description describe(const JitFunction& function, const std::string& name,
                                       jitunwind::Addr personality = 0) {
  auto builder = jitunwind::x86_64::describe(name);
  record(function, builder);
  return builder.personality(personality).build().value();
}

/// Describes the function by the C interface.
inline ju_description* describe_in_c(const JitFunction& function) {
  const auto bytes = static_cast<std::int64_t>(function.locals);
  ju_builder* builder = nullptr;
  ju_description* description = nullptr;
  if (ju_describe(JU_CPU_X86_64, "jit", &builder, nullptr) != JU_OK) std::abort();
  ju_push(builder, 0, 1, JU_X86_64_RBX);
  ju_allocate(builder, 1, 8, bytes);
  ju_deallocate(builder, -9, -2, bytes);
  ju_pop(builder, -2, -1, JU_X86_64_RBX);
  if (ju_build(builder, &description, nullptr) != JU_OK) std::abort();
  ju_builder_free(builder);
  return description;
}

}  // namespace bench
