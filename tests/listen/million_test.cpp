// A million reports: memory is bounded, and none of it stays when the code is gone.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "jitunwind/adapters/listen/followers_p.h"
#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/adapters/listen/names/heard_names_p.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "tests/builders/placed_eh_frame.h"
#include "tests/builders/registered_code.h"
#include "tests/listen/frame_functions.h"
#include "tests/listen/jit_file.h"

namespace jitunwind::test {
namespace {

constexpr std::size_t k_million = std::size_t{1} << 20;  // what is kept at most
constexpr std::size_t k_more = 1000;

// covers: LS03
TEST(Million, LinesOfAPerfMapAreNamesUpToTheLimit) {
  constexpr std::size_t k_apart = 32, k_size = (k_million + k_more) * k_apart;
  void* const area = ::mmap(nullptr, k_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(area, MAP_FAILED);
  const Addr begin = reinterpret_cast<std::uintptr_t>(area);
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  {
    std::ofstream map(path);
    map << std::hex;
    for (std::size_t i = 0; i < k_million + k_more; ++i) map << begin + i * k_apart << " 10 name" << i << "\n";
  }
  const auto refused = listen_status().refused;
  MapFollower().look();
  std::remove(path.c_str());
  EXPECT_EQ(listen_status().names, k_million);
  EXPECT_EQ(listen_status().refused, refused + k_more);
  const RegisteredCode code;
  EXPECT_EQ(code.name_at(begin + 1), "name0");
  EXPECT_EQ(code.name_at(begin + (k_million - 1) * k_apart), "namefffff");
  EXPECT_EQ(code.name_at(begin + k_million * k_apart), "");
  ::munmap(area, k_size);
  forget_unmapped_names(k_million);
  EXPECT_EQ(listen_status().names, 0u);
  EXPECT_EQ(registry_statistics().registered, 0u);
}

// covers: LS05
TEST(Million, EntriesOfAListAreReadUpToTheLimit) {
  void* const module = ::dlopen(LIST_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(module, nullptr) << ::dlerror();
  auto* const descriptor = static_cast<ListDescriptor*>(::dlsym(module, "__jit_debug_descriptor"));
  const std::vector<std::byte> bad_file(64);
  std::vector<ListEntry> entries(k_million + k_more);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].file = reinterpret_cast<std::uintptr_t>(bad_file.data());
    entries[i].size = bad_file.size();
    if (i + 1 != entries.size()) entries[i].next = &entries[i + 1];
  }
  descriptor->first = entries.data();
  ListFollower follower;
  const auto refused = listen_status().refused;
  follower.look();
  EXPECT_EQ(listen_status().files, k_million);
  EXPECT_EQ(listen_status().refused, refused + k_million);
  descriptor->first = nullptr;
  follower.look();
  EXPECT_EQ(listen_status().files, 0u);
  ::dlclose(module);
}

// covers: LS01
TEST(Million, EntriesOfASectionAreProcedures) {
  // Code that is not mapped would be forgotten by the following thread, which may look before this one is done.
  constexpr std::size_t k_apart = 16, k_size = k_apart * k_million;
  void* const area = ::mmap(nullptr, k_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(area, MAP_FAILED);
  const Addr begins = reinterpret_cast<std::uintptr_t>(area);
  EhFrame frames(64 * k_million);
  for (std::size_t i = 0; i < k_million; ++i) frames.fde(begins + k_apart * i, k_apart);
  frames.section.terminator();
  const void* const begin = reinterpret_cast<const void*>(frames.placed().begin);
  const RegisteredCode code;
  __register_frame(begin);
  EXPECT_EQ(registry_statistics().registered, k_million);
  EXPECT_EQ(code.row_at(begins + k_size - k_apart + 4), std::string("dyn_table: ") + ToldFrameCode::k_saved_row);
  __deregister_frame(begin);
  EXPECT_EQ(registry_statistics().registered, 0u);
  ::munmap(area, k_size);
}

}  // namespace
}  // namespace jitunwind::test
