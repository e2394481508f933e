// Small complete programs in the words of a JIT author; docs/builders.md shows parts of them.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/sdk/walk.h"

namespace {

std::vector<std::string> names;

[[gnu::noinline]] void record_names() {
  names.clear();
  for (const jitunwind::Frame& frame : jitunwind::walk_here()) names.push_back(frame.name());
}

// void call_back(void (*f)()): rbp is a general register, rbx is saved.
constexpr unsigned char k_code[] = {
    0x55,                    // 0  push rbp
    0x53,                    // 1  push rbx
    0x50,                    // 2  push rax
    0x31, 0xed,              // 3  xor ebp,ebp
    0xff, 0xd7,              // 5  call rdi
    0x48, 0x83, 0xc4, 0x08,  // 7  add rsp,8
    0x5b,                    // b  pop rbx
    0x5d,                    // c  pop rbp
    0xc3,                    // d  ret
};

TEST(BuilderExample, DescribeRegisterWalk) {
  void* const code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  std::memcpy(code, k_code, sizeof k_code);

  using namespace jitunwind::x86_64;
  const auto call_back = describe("call_back")
                             .push({0, 1}, rbp)
                             .push({1, 2}, rbx)
                             .allocate({2, 3}, 8)
                             .deallocate({7, 11}, 8)
                             .pop({11, 12}, rbx)
                             .pop({12, 13}, rbp)
                             .size(sizeof k_code)
                             .build();
  ASSERT_TRUE(call_back) << call_back.error().text();
  auto live = jitunwind::register_code(*call_back, code, sizeof k_code);
  ASSERT_TRUE(live) << live.error().what;

  reinterpret_cast<void (*)(void (*)())>(code)(record_names);
  ASSERT_GE(names.size(), 3u);
  EXPECT_EQ(names[1], "call_back");
  EXPECT_NE(names[2].find("DescribeRegisterWalk"), std::string::npos) << names[2];

  EXPECT_EQ(call_back->to_text(), R"(+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+2: cfa=rsp+24 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+3: cfa=rsp+32 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+b: cfa=rsp+24 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]
+c: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]
+d: cfa=rsp+8 ra=[cfa-8]
)");
  EXPECT_TRUE(live->cancel());
  munmap(code, 4096);
}

TEST(BuilderExample, RegisterWithoutBuild) {
  void* const code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  std::memcpy(code, k_code, sizeof k_code);
  const auto start = reinterpret_cast<std::uintptr_t>(code);

  using namespace jitunwind::x86_64;
  Marks marks;  // serves one procedure after the other
  marks.push({0, 1}, rbp).push({1, 2}, rbx).allocate({2, 3}, 8);
  marks.deallocate({7, 11}, 8).pop({11, 12}, rbx).pop({12, 13}, rbp);
  auto live = jitunwind::register_code(marks, {.start = start, .size = sizeof k_code, .name = "call_back"});
  ASSERT_TRUE(live) << live.error().what;

  reinterpret_cast<void (*)(void (*)())>(code)(record_names);
  ASSERT_GE(names.size(), 3u);
  EXPECT_EQ(names[1], "call_back");
  EXPECT_NE(names[2].find("RegisterWithoutBuild"), std::string::npos) << names[2];
  EXPECT_TRUE(live->cancel());
  munmap(code, 4096);
}

TEST(BuilderExample, OneShapeForAnyBody) {
  using namespace jitunwind::x86_64;
  const auto framed = describe()
                          .push({0, 1}, rbp)
                          .set_frame_pointer({1, 4}, rbp)
                          .push({4, 5}, rbx)
                          .push({5, 7}, r12)
                          .pop({-5, -3}, r12)  // the last bytes of the procedure, whatever its size
                          .pop({-3, -2}, rbx)
                          .pop({-2, -1}, rbp)
                          .build();
  ASSERT_TRUE(framed) << framed.error().text();
  jitunwind::RegistrationBatch batch;
  const jitunwind::RegistrationBatch::Item functions[] = {
      {&*framed, {.start = 0x10000, .size = 23, .name = "first"}},
      {&*framed, {.start = 0x20000, .size = 29, .name = "second"}},
  };
  EXPECT_TRUE(batch.register_code(functions));
  EXPECT_EQ(framed->shape().users(), 3u);
  EXPECT_TRUE(batch.cancel());
}

TEST(BuilderExample, RefusalsSayWhere) {
  using namespace jitunwind::x86_64;
  const auto wrong = describe().region(16).add(0, rsp, -8).spill_fp_rel(3, rbx, -8).add(14, rsp, 8).build();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(
      wrong.error().text(),
      "region 0, directive 1 (SPILL_FP_REL rbx,-8 @3), offset +4: E_NO_FP: SPILL_FP_REL without a frame pointer\n");
}

}  // namespace
