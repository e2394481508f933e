// Modules where the C library has no _dl_find_object: the linker's list tells them, by dl_iterate_phdr(). walk_test.cpp
// is linked to the same program.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/sdk/walk.h"
#include "jitunwind/unwind_core/modules/local_modules_p.h"

namespace jitunwind::test {
namespace {

Addr address_of(const void* function) { return reinterpret_cast<std::uintptr_t>(function); }

TEST(WalkByIteration, FindsEveryModule) {
  ASSERT_FALSE(has_dl_find_object()) << "or nothing is tested";
  for (const Addr at :
       {address_of(reinterpret_cast<const void*>(&has_dl_find_object)), address_of(::dlsym(RTLD_DEFAULT, "fopen"))}) {
    Module module;
    ASSERT_TRUE(find_module(at, module));
    EXPECT_TRUE(module.text.contains(at));
    ASSERT_TRUE(find_copied_module(at, module));
    EXPECT_TRUE(module.text.contains(at));
  }
  Module none;
  EXPECT_FALSE(find_module(address_of(&none), none)) << "the stack";
}

TEST(WalkByIteration, ComesToTheEndOfTheStack) {
  void* addresses[64];
  const int found = jitunwind_backtrace(addresses, 64, 0);
  EXPECT_GT(found, 8);
  std::size_t walked = 0;
  Walk walk = walk_here();
  for (auto frame = walk.begin(); frame != walk.end(); ++frame) ++walked;
  EXPECT_GE(walked, static_cast<std::size_t>(found));
  EXPECT_EQ(walk.stop_reason(), StopReason::outermost);
}

}  // namespace
}  // namespace jitunwind::test
