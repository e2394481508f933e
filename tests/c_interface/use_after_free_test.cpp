// A library that checks handles notices every use of one that was freed, however late it comes.
#include <gtest/gtest.h>
#include <jitunwind/c.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "c_call_code.h"
#include "tests/c_interface/every_function.h"

namespace {

ju_builder* builder() {
  ju_builder* made = nullptr;
  EXPECT_EQ(ju_describe(JU_CPU_HOST, "freed", &made, nullptr), JU_OK);
  return made;
}

ju_description* description() {
  ju_builder* const from = builder();
  ju_description* made = nullptr;
  EXPECT_EQ(ju_build(from, &made, nullptr), JU_OK);
  EXPECT_EQ(ju_builder_free(from), JU_OK);
  return made;
}

const unsigned char code_bytes[64] = {};

ju_registration* registration(const ju_description* of, std::size_t at = 0) {
  ju_code code;
  ju_code_init(&code, code_bytes + at, 16);
  ju_registration* made = nullptr;
  EXPECT_EQ(ju_register(of, &code, &made, nullptr), JU_OK);
  return made;
}

/// Makes the heap reuse freed memory.
void use_the_heap() {
  for (int i = 0; i < 100; ++i) {
    ju_description* const one = description();
    EXPECT_EQ(ju_description_free(one), JU_OK);
  }
}

TEST(CUseAfterFree, OfBuilders) {
  ju_builder* const freed = builder();
  ASSERT_EQ(ju_builder_free(freed), JU_OK);
  use_the_heap();
  EXPECT_EQ(ju_call(freed, 0, 1), JU_FREED_HANDLE);
  ju_description* out = nullptr;
  ju_error error;
  ju_error_init(&error);
  EXPECT_EQ(ju_build(freed, &out, &error), JU_FREED_HANDLE);
  EXPECT_STREQ(error.place, "builder");
  EXPECT_STREQ(error.remedy, "A handle is void once it was freed, cancelled, retired or handed over.");
  EXPECT_EQ(ju_builder_findings(freed), nullptr);
  EXPECT_EQ(ju_builder_free(freed), JU_FREED_HANDLE);
}

TEST(CUseAfterFree, OfDescriptions) {
  ju_description* const freed = description();
  ASSERT_EQ(ju_description_free(freed), JU_OK);
  use_the_heap();
  EXPECT_EQ(ju_description_check_size(freed, 16, nullptr), JU_FREED_HANDLE);
  ju_code code;
  ju_code_init(&code, code_bytes, 16);
  ju_registration* out = nullptr;
  EXPECT_EQ(ju_register(freed, &code, &out, nullptr), JU_FREED_HANDLE);
  EXPECT_EQ(ju_description_free(freed), JU_FREED_HANDLE);
}

TEST(CUseAfterFree, OfRegistrations) {
  ju_description* const of = description();
  ju_registration* const cancelled = registration(of);
  ASSERT_EQ(ju_cancel(cancelled, nullptr), JU_OK);
  EXPECT_EQ(ju_cancel(cancelled, nullptr), JU_FREED_HANDLE);
  EXPECT_EQ(ju_registration_range(cancelled, nullptr, nullptr), JU_FREED_HANDLE);
  EXPECT_EQ(ju_registration_bytes(cancelled), 0u);
  ju_registration* const retired = registration(of);
  ASSERT_EQ(ju_retire(retired, nullptr, nullptr), JU_OK);
  EXPECT_EQ(ju_retire(retired, nullptr, nullptr), JU_FREED_HANDLE);
  // The registration is handed over to a batch.
  ju_batch* batch = nullptr;
  ASSERT_EQ(ju_batch_new(&batch, nullptr), JU_OK);
  ju_registration* const added = registration(of, 16);
  ASSERT_EQ(ju_batch_add(batch, added, nullptr), JU_OK);
  EXPECT_EQ(ju_cancel(added, nullptr), JU_FREED_HANDLE);
  EXPECT_EQ(ju_batch_add(batch, added, nullptr), JU_FREED_HANDLE);
  EXPECT_EQ(ju_batch_size(batch), 1u);
  ASSERT_EQ(ju_batch_free(batch, nullptr), JU_OK);
  EXPECT_EQ(ju_batch_size(batch), 0u);
  EXPECT_EQ(ju_batch_cancel(batch, nullptr), JU_FREED_HANDLE);
  EXPECT_EQ(ju_batch_free(batch, nullptr), JU_FREED_HANDLE);
  // This memory was never a handle.
  std::vector<std::uint64_t> words(64);
  EXPECT_EQ(ju_cancel(reinterpret_cast<ju_registration*>(words.data()), nullptr), JU_BAD_HANDLE);
  EXPECT_EQ(ju_description_free(of), JU_OK);
}

TEST(CUseAfterFree, OfObjectsAndTargets) {
  const ju_range range{reinterpret_cast<std::uintptr_t>(code_bytes), reinterpret_cast<std::uintptr_t>(code_bytes) + 64};
  const ju_function function{range.begin, 16, "named"};
  ju_object_code code{};
  code.struct_size = sizeof code;
  code.code = &range;
  code.code_count = 1;
  code.functions = &function;
  code.function_count = 1;
  ju_object* object = nullptr;
  ASSERT_EQ(ju_object_register(&code, &object, nullptr), JU_OK);
  ASSERT_EQ(ju_object_cancel(object, nullptr), JU_OK);
  EXPECT_EQ(ju_object_cancel(object, nullptr), JU_FREED_HANDLE);
  EXPECT_EQ(ju_object_count(object, nullptr, nullptr), JU_FREED_HANDLE);
  ju_sample sample{};
  sample.struct_size = sizeof sample;
  ju_target* target = nullptr;
  ASSERT_EQ(ju_target_of_sample(&sample, nullptr, &target, nullptr), JU_OK);
  ASSERT_EQ(ju_target_free(target), JU_OK);
  EXPECT_EQ(ju_target_threads(target), 0u);
  ju_cursor cursor;
  EXPECT_EQ(ju_target_cursor(target, 0, &cursor, nullptr), JU_FREED_HANDLE);
  EXPECT_EQ(ju_target_free(target), JU_FREED_HANDLE);
}

/// A cursor becomes invalid with the target that it walks, and when that target is renewed.
TEST(CUseAfterFree, OfTargetsByTheirCursors) {
  const std::uint64_t stack[4] = {};
  const ju_reg_value registers[] = {{c_interface::k_sp, reinterpret_cast<std::uintptr_t>(stack)}};
  ju_sample sample{};
  sample.struct_size = sizeof sample;
  sample.registers = registers;
  sample.register_count = 1;
  sample.stack_address = registers[0].value;
  sample.stack = stack;
  sample.stack_size = sizeof stack;
  ju_target* target = nullptr;
  ASSERT_EQ(ju_target_of_sample(&sample, nullptr, &target, nullptr), JU_OK);
  ju_cursor before, cursor;
  ASSERT_EQ(ju_target_cursor(target, 0, &before, nullptr), JU_OK);
  EXPECT_EQ(ju_frame_sp(&before), registers[0].value);
  ASSERT_EQ(ju_target_renew_sample(target, &sample, nullptr), JU_OK);
  ASSERT_EQ(ju_target_cursor(target, 0, &cursor, nullptr), JU_OK);
  const auto expect_void = [](ju_cursor of) {
    ju_error error;
    ju_error_init(&error);
    EXPECT_EQ(ju_cursor_step(&of, &error), JU_FREED_HANDLE);
    EXPECT_STREQ(error.place, "cursor");
    EXPECT_EQ(ju_frame_sp(&of), 0u);
    EXPECT_EQ(ju_frame_demangled_name(&of, nullptr, 0, nullptr), JU_FREED_HANDLE);
  };
  expect_void(before);
  EXPECT_EQ(ju_frame_sp(&cursor), registers[0].value);
  ASSERT_EQ(ju_target_free(target), JU_OK);
  use_the_heap();
  expect_void(cursor);
  expect_void(before);
}

/// Calls each function with a freed handle of the right kind.
TEST(CUseAfterFree, ByEveryFunction) {
  ju_builder* const freed_builder = builder();
  ju_description* const freed_description = description();
  ju_description* const of = description();
  ju_registration* const cancelled = registration(of);
  ju_batch* batch = nullptr;
  ju_target* target = nullptr;
  ju_sample sample{};
  sample.struct_size = sizeof sample;
  ju_code_segments* segments = nullptr;
  ASSERT_EQ(ju_batch_new(&batch, nullptr), JU_OK);
  ASSERT_EQ(ju_code_new(nullptr, &segments, nullptr), JU_OK);
  ASSERT_EQ(ju_target_of_sample(&sample, nullptr, &target, nullptr), JU_OK);
  ASSERT_EQ(ju_builder_free(freed_builder), JU_OK);
  ASSERT_EQ(ju_description_free(freed_description), JU_OK);
  ASSERT_EQ(ju_cancel(cancelled, nullptr), JU_OK);
  ASSERT_EQ(ju_batch_free(batch, nullptr), JU_OK);
  ASSERT_EQ(ju_target_free(target), JU_OK);
  ASSERT_EQ(ju_code_free(segments), JU_OK);
  use_the_heap();
  std::vector<unsigned char> memory(std::size_t{1} << 16);
  int refused = 0;
  for (const every::Function& function : every::functions) {
    every::Arguments arguments;
    switch (function.kind) {
      case every::Kind::builder:
        arguments.handle = freed_builder;
        break;
      case every::Kind::description:
        arguments.handle = freed_description;
        break;
      case every::Kind::registration:
        arguments.handle = cancelled;
        break;
      case every::Kind::batch:
        arguments.handle = batch;
        break;
      case every::Kind::target:
        arguments.handle = target;
        break;
      case every::Kind::code_segments:
        arguments.handle = segments;
        break;
      case every::Kind::none:
      case every::Kind::object:
      case every::Kind::cursor:
      case every::Kind::decision:
        continue;  // OfObjectsAndTargets; nothing frees a cursor, or what a handler is handed
    }
    arguments.memory = memory.data();
    arguments.text = "";
    const ju_status status = function.call(arguments);
    if (status == every::k_no_status) continue;
    EXPECT_EQ(status, JU_FREED_HANDLE) << function.name;
    ++refused;
  }
  EXPECT_GT(refused, 80);
  EXPECT_EQ(ju_description_free(of), JU_OK);
}

TEST(CCheckedLibrary, RefusesNamesOfCodeThatCannotBeRead) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  auto* const end = static_cast<char*>(pages) + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  std::memset(pages, 'y', page);
  ju_description* const of = description();
  ju_registration* made = nullptr;
  ju_error error;
  ju_error_init(&error);
  for (const char* name : {end - 5, end}) {
    ju_code code;
    ju_code_init(&code, code_bytes, 16);
    code.name = name;
    EXPECT_EQ(ju_register(of, &code, &made, &error), JU_BAD_STRING);
    EXPECT_STREQ(error.place, "code.name");
  }
  EXPECT_EQ(ju_description_free(of), JU_OK);
  munmap(pages, 2 * page);
}

}  // namespace
