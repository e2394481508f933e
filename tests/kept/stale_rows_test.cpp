// A row of code that is gone is never used, under any policy and without a flush: code is replaced in place, and a
// library is loaded where another one was.
#include <libunwind.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "jitunwind/builders/registration.h"
#include "slots_code.h"
#include "tests/support/host_row.h"
#include "tests/support/pcs_from.h"

namespace jitunwind::test {
namespace {

using Pcs = std::vector<unw_word_t>;

/// One walk by each way into the library, without the addresses of the walking functions themselves.
struct Walks {
  Pcs stepped, wrapped, listed;
};

class StaleRows : public testing::TestWithParam<unw_caching_policy_t> {
 protected:
  StaleRows() {
    EXPECT_EQ(unw_set_caching_policy(unw_local_addr_space, GetParam()), 0);
    wrapped_ = unw_create_addr_space(unw_get_accessors(unw_local_addr_space), 0);
    EXPECT_EQ(unw_set_caching_policy(wrapped_, GetParam()), 0);
  }
  ~StaleRows() override {
    unw_destroy_addr_space(wrapped_);
    EXPECT_EQ(unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_GLOBAL), 0);
  }

  /// Called at the end of the chain, always from the same place.
  [[gnu::noinline]] static void walk() {
    unw_context_t context;
    unw_getcontext(&context);
    unw_cursor_t cursor;
    ASSERT_EQ(unw_init_local(&cursor, &context), 0);
    seen_.stepped = without_first(pcs_from(cursor));
    ASSERT_EQ(unw_init_remote(&cursor, wrapped_, &context), 0);
    seen_.wrapped = without_first(pcs_from(cursor));
    std::array<void*, 128> listed;
    const int count = unw_backtrace(listed.data(), static_cast<int>(listed.size()));
    seen_.listed.clear();
    for (int i = 1; i < count; ++i)
      seen_.listed.push_back(reinterpret_cast<unw_word_t>(listed[static_cast<std::size_t>(i)]));
  }

  /// Expects that a frame in this code called walk(), and is the last one.
  void expect_end_in(AddrRange code) {
    for (const Pcs& pcs : {seen_.stepped, seen_.wrapped, seen_.listed}) {
      ASSERT_EQ(pcs.size(), 1u);
      EXPECT_TRUE(code.contains(pcs[0]));
    }
  }

  /// Expects that a frame in this code called walk(), and that everything behind the test's own frame, which may call
  /// from several places, is as always.
  void expect_called_from(AddrRange code, const std::string& what) {
    for (const Pcs& pcs : {seen_.stepped, seen_.wrapped, seen_.listed}) {
      ASSERT_GT(pcs.size(), 3u) << what;
      EXPECT_TRUE(code.contains(pcs[0])) << what;
      const Pcs callers(pcs.begin() + 2, pcs.end());
      if (callers_.empty()) callers_ = callers;
      EXPECT_EQ(callers, callers_) << what;
    }
  }

 private:
  static Pcs without_first(const Pcs& pcs) { return {pcs.begin() + 1, pcs.end()}; }

  Pcs callers_;
  static inline Walks seen_;
  static inline unw_addr_space_t wrapped_ = nullptr;
};

std::string policy_name(const testing::TestParamInfo<unw_caching_policy_t>& info) {
  return std::array{"none", "global", "per_thread"}[static_cast<std::size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Policies, StaleRows, testing::Values(UNW_CACHE_NONE, UNW_CACHE_GLOBAL, UNW_CACHE_PER_THREAD),
                         policy_name);

/// Code at one address whose frame has another size each time.
class ReplacedCode {
 public:
  ReplacedCode() {
    at_ = static_cast<unsigned char*>(
        ::mmap(nullptr, k_page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~ReplacedCode() { ::munmap(at_, k_page); }
  ReplacedCode(const ReplacedCode&) = delete;
  ReplacedCode& operator=(const ReplacedCode&) = delete;

  /// `row` replaces the frame's row for all of the code; host_row().
  Registration replace(std::size_t slots, const char* row = nullptr) {
    const SlotsCode code(slots);
    std::memcpy(at_, code.bytes.data(), code.bytes.size());
    __builtin___clear_cache(reinterpret_cast<char*>(at_), reinterpret_cast<char*>(at_) + k_page);
    auto builder = SlotsCode::described(slots, "replaced");
    if (row) {
      builder = host::describe("replaced");
      builder.row_at(0, host_row(row));
    }
    const auto description = builder.build();
    EXPECT_TRUE(description);
    auto registered = register_code(*description, at_, code.bytes.size());
    EXPECT_TRUE(registered);
    return std::move(*registered);
  }
  void call(void (*function)()) const { reinterpret_cast<void (*)(void (*)())>(at_)(function); }
  AddrRange range() const { return {reinterpret_cast<Addr>(at_), reinterpret_cast<Addr>(at_) + k_page}; }

 private:
  static constexpr std::size_t k_page = 4096;
  unsigned char* at_;
};

// covers: CA02 CA08
TEST_P(StaleRows, OfCodeReplacedWhereItLiesAreNotUsed) {
  ReplacedCode code;
  for (std::size_t round = 0; round < 24; ++round) {
    const std::size_t slots = 1 + 2 * (round * 7 % 12);
    Registration registration = code.replace(slots);
    for (int time = 0; time < 2; ++time) {
      code.call(walk);
      expect_called_from(code.range(), "slots: " + std::to_string(slots));
    }
    if (round % 2 == 0)
      EXPECT_TRUE(registration.cancel());
    else
      (void)registration.retire();
  }
}

/// A row without a caller is kept as a special kind of row.
// covers: CA02 CA08
TEST_P(StaleRows, OfCodeThatHadNoCallerAreNotUsed) {
  ReplacedCode code;
  for (int round = 0; round < 8; ++round) {
    {
      const Registration ends = code.replace(3, "cfa=SP+32 ra=undefined");
      for (int time = 0; time < 3; ++time) {
        code.call(walk);
        expect_end_in(code.range());
      }
    }
    const Registration goes_on = code.replace(3);
    for (int time = 0; time < 3; ++time) {
      code.call(walk);
      expect_called_from(code.range(), "round " + std::to_string(round));
    }
  }
}

class LibraryInPlace {
 public:
  explicit LibraryInPlace(const char* path) : handle_(::dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << ::dlerror();
    call_ = reinterpret_cast<void (*)(void (*)())>(::dlsym(handle_, "room_call"));
  }
  ~LibraryInPlace() { ::dlclose(handle_); }
  LibraryInPlace(const LibraryInPlace&) = delete;
  LibraryInPlace& operator=(const LibraryInPlace&) = delete;
  void call(void (*function)()) const { call_(function); }
  unw_word_t address() const { return reinterpret_cast<unw_word_t>(call_); }

 private:
  void* handle_;
  void (*call_)(void (*)());
};

/// Some of the libraries have a build id, others have none.
// covers: CA02 CA07
TEST_P(StaleRows, OfALibraryThatWasUnloadedAreNotUsed) {
  for (const auto& paths : {std::array{ROOM_SMALL, ROOM_LARGE}, std::array{ROOM_SMALL_PLAIN, ROOM_LARGE_PLAIN}}) {
    unw_word_t place = 0;
    for (std::size_t round = 0; round < 8; ++round) {
      const LibraryInPlace library(paths[round % 2]);
      if (place == 0) place = library.address();
      ASSERT_EQ(library.address(), place) << "not the case that this test is about";
      for (int time = 0; time < 2; ++time) {
        library.call(walk);
        unw_proc_info_t info;
        ASSERT_EQ(unw_get_proc_info_by_ip(unw_local_addr_space, place, &info, nullptr), 0);
        expect_called_from({info.start_ip, info.end_ip}, paths[round % 2]);
      }
    }
  }
}

}  // namespace
}  // namespace jitunwind::test
