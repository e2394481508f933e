// Code of asmjit in code segments.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_assembler.h"
#include "jitunwind/adapters/asmjit/asmjit_runtime.h"
#include "tests/asmjit/asmjit_names.h"
#include "tests/code_segments/symbols_of.h"

namespace jitunwind::test {
namespace {

using namespace asmjit::x86;

Addr address_of(const void* start) { return reinterpret_cast<std::uintptr_t>(start); }

/// A function that pushes rbx, and returns what it is called with.
void* add_identity(AsmjitRuntime& runtime, std::string_view name) {
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  a.push(rbx);
  a.mov(rax, rdi);
  a.pop(rbx);
  a.ret();
  void* start = nullptr;
  return runtime.add(&start, &code, name) == asmjit::kErrorOk ? start : nullptr;
}
int run(void* identity, int value) { return reinterpret_cast<int (*)(int)>(identity)(value); }

std::string name_of(std::size_t i) { return "function_" + std::to_string(i); }

/// Released functions give their room to the next ones, and those that stay are known by name and frame.
TEST(PublishedCode, TenThousandFunctionsOfTwoRuntimes) {
  CodeSegments segments, others;
  AsmjitRuntime runtime({.segments = &segments});
  AsmjitRuntime other({.segments = &others});
  const LibgccSearch search;
  const auto expect_known = [&](void* start, const std::string& name) {
    ASSERT_STREQ(symbol_at(address_of(start) + 2), name.c_str());
    ASSERT_EQ(search(address_of(start) + 2), address_of(start));
    ASSERT_EQ(run(start, 7), 7);
  };
  std::vector<void*> starts;
  for (std::size_t i = 0; i < 10000; ++i) {
    starts.push_back(add_identity(i % 4 == 0 ? other : runtime, name_of(i)));
    ASSERT_NE(starts.back(), nullptr);
  }
  EXPECT_EQ(segments.status().published, 7500u);
  EXPECT_EQ(others.status().published, 2500u);
  for (std::size_t i = 0; i < starts.size(); ++i) expect_known(starts[i], name_of(i));
  std::set<void*> released;
  for (std::size_t i = 1; i < starts.size(); i += 4) {
    ASSERT_EQ(runtime.release(starts[i]), asmjit::kErrorOk);
    ASSERT_EQ(symbol_at(address_of(starts[i])), nullptr);
    ASSERT_EQ(search(address_of(starts[i]) + 2), 0u);
    released.insert(starts[i]);
  }
  EXPECT_EQ(segments.status().published, 5000u);
  for (std::size_t i = 1; i < starts.size(); i += 4) {
    starts[i] = add_identity(runtime, name_of(i) + "_again");
    ASSERT_TRUE(released.contains(starts[i]));
  }
  for (std::size_t i = 0; i < starts.size(); ++i) expect_known(starts[i], name_of(i) + (i % 4 == 1 ? "_again" : ""));
  EXPECT_EQ(segments.status().refused + others.status().refused, 0u);
  runtime.reset();
  EXPECT_EQ(segments.status().published, 0u);
  EXPECT_LE(segments.status().segments, 1u);
  EXPECT_EQ(others.status().published, 2500u);
}

/// Data behind the code is aligned as asmjit's own memory is, and belongs to no function.
TEST(PublishedCode, SeveralProceduresAndTheirData) {
  CodeSegments segments;
  AsmjitRuntime runtime({.segments = &segments});
  ASSERT_NE(add_identity(runtime, "before"), nullptr);
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  const asmjit::Label data = a.JITUNWIND_ASMJIT(newLabel, new_label)();
  a.procedure("first");
  a.vmovaps(ymm0, ptr(data));
  a.vzeroupper();
  a.ret();
  const std::size_t second = a.offset();
  a.procedure("second");
  a.push(rbx);
  a.pop(rbx);
  a.ret();
  a.align(asmjit::AlignMode::kData, 32);
  a.bind(data);
  const std::size_t at = a.offset();
  const char zeros[32] = {};
  a.embed(zeros, sizeof zeros);
  void* start = nullptr;
  ASSERT_EQ(runtime.add(&start, &code), asmjit::kErrorOk);
  if (__builtin_cpu_supports("avx")) reinterpret_cast<void (*)()>(start)();
  EXPECT_EQ((address_of(start) + at) % 32, 0u);
  EXPECT_STREQ(symbol_at(address_of(start)), "first");
  EXPECT_STREQ(symbol_at(address_of(start) + second), "second");
  EXPECT_EQ(LibgccSearch()(address_of(start) + second + 1), address_of(start) + second);
  EXPECT_EQ(symbol_at(address_of(start) + at), nullptr);
  EXPECT_EQ(segments.status().published, 3u);
}

/// A child has the code of before, and may release it.
TEST(PublishedCode, InChildren) {
  CodeSegments segments;
  AsmjitRuntime runtime({.segments = &segments});
  void* const before = add_identity(runtime, "before");
  const pid_t child = ::fork();
  if (child == 0) {
    if (run(before, 5) != 5 || symbol_at(address_of(before)) != std::string("before")) ::_exit(1);
    void* const own = add_identity(runtime, "child's");
    if (run(own, 6) != 6 || symbol_at(address_of(own)) != std::string("child's")) ::_exit(2);
    if (runtime.release(before) != asmjit::kErrorOk || runtime.release(own) != asmjit::kErrorOk) ::_exit(3);
    ::_exit(runtime.registered() == 0 ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  EXPECT_STREQ(symbol_at(address_of(before)), "before");
}

}  // namespace
}  // namespace jitunwind::test
