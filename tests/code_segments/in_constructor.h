// The dynamic linker's lock is taken while the constructor of a library runs. A test acts there.
#pragma once

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace jitunwind::test {

inline std::function<void()> in_constructor;
inline void called_in_constructor() { in_constructor(); }

/// Runs it in the constructor of a library, JITUNWIND_CONSTRUCTOR.
inline void construct(const std::function<void()>& action) {
  bool is_called = false;
  in_constructor = [&] { action(), is_called = true; };
  std::array<char, 32> address{};
  std::snprintf(address.data(), address.size(), "%jx",
                static_cast<std::uintmax_t>(reinterpret_cast<std::uintptr_t>(&called_in_constructor)));
  ::setenv("CALLED_IN_CONSTRUCTOR", address.data(), 1);
  void* const library = ::dlopen(JITUNWIND_CONSTRUCTOR, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  EXPECT_TRUE(is_called);
  EXPECT_EQ(::dlclose(library), 0);
}

}  // namespace jitunwind::test
