// Walks from every instruction of compiled code, with and without call frame information, of the linkage between
// objects and of the C library, against the calls that the instructions have made.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/fallback/stepped_walks.h"

using Helper = std::int64_t (*)(std::int64_t);
#define RUN(variant) extern "C" std::int64_t run_##variant(Helper);
#include "compiled_variants.def"
#undef RUN

namespace jitunwind::test {
namespace {

std::int64_t helper(std::int64_t x) { return x / 2 + 1; }

/// Keeps calls from becoming jumps.
volatile std::int64_t g_sum = 0;

struct Variant {
  const char* name;
  void (*run)();
  bool is_described() const { return std::strncmp(name, "bare", 4) != 0; }
};
void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class X86Stepped : public testing::TestWithParam<Variant> {};

// covers: LU20 XP04
TEST_P(X86Stepped, CompiledCodeHasNoWrongCaller) {
  const Variant& variant = GetParam();
  // Places that no path leads to, such as code behind a jump table, have no caller without call frame information.
  expect_right(variant.name, variant.run, {variant.is_described() ? 1.0 : 0.8});
}

/// Each is called by a call that names its callee.
constexpr Variant k_variants[] = {
#define RUN(variant) {#variant, [] { g_sum = g_sum + run_##variant(&helper); }},
#include "compiled_variants.def"
#undef RUN
};
INSTANTIATE_TEST_SUITE_P(Options, X86Stepped, testing::ValuesIn(k_variants),
                         [](const auto& info) { return std::string(info.param.name); });

class X86Linkage : public testing::TestWithParam<const char*> {};

/// The first call of each goes through the resolver, and every call through a thunk that returns the code's address.
// covers: LU20 XP04
TEST_P(X86Linkage, StubsAndTheResolverHaveNoWrongCaller) {
  const std::string path = std::string(LIBRARY_FOLDER "/x86_plt_") + GetParam() + ".so";
  void* const handle = ::dlopen(path.c_str(), RTLD_LAZY);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  const auto call_all = reinterpret_cast<long (*)(long)>(::dlsym(handle, "plt_call_all"));
  expect_right(GetParam(),
               [&] {
                 for (long n = 0; n < 20; ++n) g_sum = g_sum + call_all(n);
               },
               {1});
  ::dlclose(handle);
}
INSTANTIATE_TEST_SUITE_P(Libraries, X86Linkage, testing::Values("lazy", "now", "ibt", "undescribed", "undescribed_ibt"),
                         [](const auto& info) { return std::string(info.param); });

int by_value(const void* a, const void* b) { return *static_cast<const int*>(a) - *static_cast<const int*>(b); }

// covers: LU20 XP04
TEST(X86Stepped, TheCLibraryHasNoWrongCaller) {
  const auto code = [] {
    std::array<char, 100> text;
    g_sum = g_sum + std::snprintf(text.data(), text.size(), "%d %s %g", 42, "walks", 2.5);
    std::array<int, 9> numbers{3, 1, 4, 1, 5, 9, 2, 6, 5};
    std::qsort(numbers.data(), numbers.size(), sizeof numbers[0], &by_value);
    g_sum = g_sum + ::syscall(SYS_gettid) + ::getppid() + numbers[0];
    const std::string copied(static_cast<std::size_t>(200 + numbers[0]), 'x');
    g_sum = g_sum + static_cast<std::int64_t>(std::strlen(copied.c_str()));
  };
  expect_right("the C library", code, {0.9});
}

/// The kernel's functions have no call frame information on this CPU, and C libraries call them by pointers.
// covers: LU20 XP04
TEST(X86Stepped, TheKernelsObjectHasNoWrongCaller) {
  void* const object = ::dlopen("linux-gate.so.1", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(object, nullptr) << ::dlerror();
  int (*volatile call)(clockid_t, timespec*) =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(object, "__vdso_clock_getres"));
  ASSERT_NE(call, nullptr) << ::dlerror();
  const auto code = [&] {
    timespec resolution{};
    for (int i = 0; i < 40; ++i) g_sum = g_sum + call(CLOCK_MONOTONIC, &resolution);
  };
  expect_right("the kernel's object", code, {1});
}

/// The library's copying functions have wrong information for some of their instructions, and the processor decides
/// which of them run: a walk ends there.
// covers: LU20 XP04
TEST(X86Stepped, WrongCallFrameInformationEndsAWalk) {
  std::array<char, 300> from{}, to{};
  const auto code = [&] {
    for (std::size_t size = 3; size < 256; size = 2 * size + 1) {
      std::memcpy(to.data(), from.data(), size);
      std::memmove(to.data() + 1, to.data(), size);
      std::memmove(to.data(), to.data() + 5, size);
      asm volatile("" ::"r"(to.data()) : "memory");
    }
  };
  expect_right("copying", code, {0});
}

}  // namespace
}  // namespace jitunwind::test
