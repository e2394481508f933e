// Mistakes that C allows and C++ types forbid: the result is a code and a sentence, and nothing else has happened.
#include <gtest/gtest.h>
#include <jitunwind/c.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "c_call_code.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/error.h"

namespace {

struct Error : ju_error {
  Error() { ju_error_init(this); }
};

/// Builders and descriptions that are freed at the end.
struct Builder {
  explicit Builder(ju_cpu cpu = JU_CPU_HOST) { EXPECT_EQ(ju_describe(cpu, "bad", &handle, nullptr), JU_OK); }
  ~Builder() { EXPECT_EQ(ju_builder_free(handle), JU_OK); }
  operator ju_builder*() const { return handle; }
  ju_builder* handle = nullptr;
};

ju_description* leaf(ju_cpu cpu = JU_CPU_HOST) {
  const Builder builder(cpu);
  ju_description* description = nullptr;
  EXPECT_EQ(ju_build(builder, &description, nullptr), JU_OK);
  return description;
}

template <class T>
T* as(void* handle) {
  return static_cast<T*>(handle);
}

/// Every code has a name and a sentence, and most have a remedy.
TEST(CErrors, AreWords) {
  for (const jitunwind::ErrorCode code : {
#define JITUNWIND_ERROR(name, ju_status, unw_error, text) jitunwind::ErrorCode::name,
#include "jitunwind/unwind_core/error_codes.def"
#undef JITUNWIND_ERROR
       }) {
    bool found = false;
    for (int number = JU_OK + 2; number < 200 && !found; ++number) {
      const auto status = static_cast<ju_status>(number);
      found = std::string(ju_status_name(status)) == jitunwind::error_name(code);
      if (found) {
        EXPECT_STREQ(ju_status_text(status), jitunwind::error_text(code));
      }
    }
    EXPECT_TRUE(found) << jitunwind::error_name(code);
  }
  EXPECT_STREQ(ju_status_name(JU_BAD_HANDLE), "bad_handle");
  EXPECT_STREQ(ju_status_name(JU_OK), "ok");
  EXPECT_STREQ(ju_status_name(static_cast<ju_status>(9999)), "unspecified");
  EXPECT_STRNE(ju_status_remedy(JU_IN_SIGNAL_HANDLER), "");
  EXPECT_STREQ(ju_status_remedy(JU_OK), "");
}

TEST(CErrors, SayWhatIsWrong) {
  Error error;
  ju_builder* builder = nullptr;
  EXPECT_EQ(ju_describe(static_cast<ju_cpu>(7), "x", &builder, &error), JU_BAD_VALUE);
  EXPECT_EQ(error.code, JU_BAD_VALUE);
  EXPECT_EQ(error.at, 7u);
  EXPECT_STREQ(error.place, "cpu");
  EXPECT_STREQ(error.text, "value that the enumeration does not have");
  EXPECT_STREQ(error.remedy, "Take one of the enumeration.");
  EXPECT_EQ(builder, nullptr);
}

TEST(CErrors, TextsOfTheBuilderAreItsOwn) {
  const Builder builder(JU_CPU_X86_64);
  ju_region(builder, 16);
  ju_add(builder, 0, JU_X86_64_RSP, -8);
  ju_spill_fp_rel(builder, 3, JU_X86_64_RBX, -8);
  ju_add(builder, 14, JU_X86_64_RSP, 8);
  Error error;
  ju_description* description = nullptr;
  EXPECT_EQ(ju_build(builder, &description, &error), JU_E_NO_FP);
  const std::string text =
      "region 0, directive 1 (SPILL_FP_REL rbx,-8 @3), offset +4: E_NO_FP: SPILL_FP_REL without a frame pointer\n";
  EXPECT_EQ(error.text, text);
  EXPECT_EQ(error.at, 4u);
  EXPECT_EQ(ju_builder_findings(builder), text);
  EXPECT_EQ(description, nullptr);
}

TEST(CErrors, SeveralWarningsHaveTheCodeOfTheFirst) {
  const Builder builder(JU_CPU_X86_64);
  ju_set_size(builder, 24);
  ju_push(builder, 0, 1, JU_X86_64_RBX);
  for (const int leaving : {10, 20}) {
    ju_remember(builder);
    ju_restore(builder, leaving, leaving + 1);
  }
  ju_pop(builder, 22, 23, JU_X86_64_RBX);
  Error error;
  ju_description* description = nullptr;
  EXPECT_EQ(ju_build(builder, &description, &error), JU_W_UNBALANCED);
  EXPECT_EQ(error.at, 10u);
  EXPECT_STREQ(error.remedy, "Say the missing pop or deallocate, or ju_ends_without_return().");
}

TEST(CErrors, LongTextsAreCutAndKeptWhole) {
  const Builder builder(JU_CPU_X86_64);
  for (int at = 0; at < 40; at += 2) ju_restore(builder, at, at + 1);
  Error error;
  ju_description* description = nullptr;
  EXPECT_EQ(ju_build(builder, &description, &error), JU_E_LABEL);
  EXPECT_EQ(std::strlen(error.text), std::size_t{JU_TEXT_SIZE - 1});
  EXPECT_GT(std::strlen(ju_builder_findings(builder)), 700u);
}

TEST(CBadInput, NullIsRefusedByWhoeverNeedsMore) {
  Error error;
  EXPECT_EQ(ju_describe(JU_CPU_HOST, nullptr, nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_push(nullptr, 0, 1, JU_X86_64_RBX), JU_NULL_POINTER);
  EXPECT_EQ(ju_row_at(nullptr, 0, "cfa=rsp+8"), JU_NULL_POINTER);
  EXPECT_EQ(ju_handled_by(nullptr, nullptr, nullptr, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_selector(nullptr, nullptr), 0);
  EXPECT_EQ(ju_builder_findings(nullptr), nullptr);
  EXPECT_EQ(ju_build(nullptr, nullptr, &error), JU_NULL_POINTER);
  EXPECT_STREQ(error.place, "builder");
  const Builder builder;
  EXPECT_EQ(ju_build(builder, nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_builder_copy(builder, nullptr, &error), JU_NULL_POINTER);
  ju_description* const description = leaf();
  ju_registration* registration = nullptr;
  EXPECT_EQ(ju_register(description, nullptr, &registration, &error), JU_NULL_POINTER);
  EXPECT_STREQ(error.place, "code");
  ju_code code;
  ju_code_init(&code, nullptr, 16);
  EXPECT_EQ(ju_register(nullptr, &code, &registration, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_register(description, &code, nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_register(description, &code, &registration, &error), JU_E_RANGE) << "code at null";
  EXPECT_EQ(ju_registration_range(nullptr, nullptr, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_registration_bytes(nullptr), 0u);
  EXPECT_EQ(ju_batch_new(nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_batch_cancel(nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_batch_size(nullptr), 0u);
  EXPECT_EQ(ju_object_register(nullptr, nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_object_count(nullptr, nullptr, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_description_name(nullptr, nullptr, 0, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_description_name(description, nullptr, 5, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_cursor_here(nullptr, &error), JU_NULL_POINTER);
  ju_cursor cursor;
  EXPECT_EQ(ju_cursor_at(&cursor, nullptr, JU_RETURNED_TO, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_cursor_step(nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_frame_pc(nullptr), 0u);
  EXPECT_EQ(ju_frame_user(nullptr), nullptr);
  EXPECT_EQ(ju_walk_here(nullptr, nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_walk_thread(1, 0, nullptr, 4, nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_backtrace_at(nullptr, JU_INTERRUPTED, nullptr, 3), 0u);
  EXPECT_EQ(ju_symbolise(0, 0, nullptr, 8, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_target_attach(1, JU_TO_COPY, nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_target_threads(nullptr), 0u);
  EXPECT_EQ(ju_target_process(nullptr), 0);
  EXPECT_EQ(ju_target_open_core(nullptr, nullptr, nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_statistics_get(nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_unwinder_status_get(nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_gdb_statistics_get(nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_perf_statistics_get(nullptr, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_passed_frame_get(nullptr, JU_X86_64_RBX, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_land_with(nullptr, JU_X86_64_RBX, 0), JU_NULL_POINTER);
  ju_catch_at(nullptr, 0);
  ju_clean_up_at(nullptr, 0);
  ju_land_with_sp(nullptr, 0);
  // Functions that free accept null, as free() does.
  EXPECT_EQ(ju_builder_free(nullptr), JU_OK);
  EXPECT_EQ(ju_description_free(nullptr), JU_OK);
  EXPECT_EQ(ju_cancel(nullptr, nullptr), JU_OK);
  EXPECT_EQ(ju_retire(nullptr, nullptr, nullptr), JU_OK);
  EXPECT_EQ(ju_reclaimed(nullptr), 1);
  EXPECT_EQ(ju_batch_free(nullptr, nullptr), JU_OK);
  EXPECT_EQ(ju_object_cancel(nullptr, nullptr), JU_OK);
  EXPECT_EQ(ju_target_free(nullptr), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

TEST(CBadInput, HandlesOfAnotherKind) {
  Error error;
  const Builder builder;
  ju_description* const description = leaf();
  ju_batch* batch = nullptr;
  ASSERT_EQ(ju_batch_new(&batch, nullptr), JU_OK);
  ju_cursor cursor;
  ASSERT_EQ(ju_cursor_here(&cursor, nullptr), JU_OK);
  void* const handles[] = {builder.handle, description, batch, &cursor};
  std::uint64_t words[160] = {1, 2, 3};
  ju_description* out = nullptr;
  ju_code code;
  ju_code_init(&code, words, 16);
  ju_registration* registration = nullptr;
  for (void* const handle : handles) {
    if (handle != builder.handle) {
      EXPECT_EQ(ju_build(as<ju_builder>(handle), &out, &error), JU_BAD_HANDLE);
      EXPECT_EQ(ju_push(as<ju_builder>(handle), 0, 1, JU_X86_64_RBX), JU_BAD_HANDLE);
      EXPECT_EQ(ju_builder_free(as<ju_builder>(handle)), JU_BAD_HANDLE);
    }
    if (handle != description) {
      EXPECT_EQ(ju_register(as<ju_description>(handle), &code, &registration, &error), JU_BAD_HANDLE);
      EXPECT_EQ(ju_description_free(as<ju_description>(handle)), JU_BAD_HANDLE);
    }
    if (handle != batch) {
      EXPECT_EQ(ju_batch_cancel(as<ju_batch>(handle), &error), JU_BAD_HANDLE);
      EXPECT_EQ(ju_batch_free(as<ju_batch>(handle), &error), JU_BAD_HANDLE);
    }
    if (handle != &cursor) {
      EXPECT_EQ(ju_cursor_step(as<ju_cursor>(handle), &error), JU_BAD_HANDLE);
    }
    EXPECT_EQ(ju_cancel(as<ju_registration>(handle), &error), JU_BAD_HANDLE);
    EXPECT_EQ(ju_retire(as<ju_registration>(handle), nullptr, &error), JU_BAD_HANDLE);
    EXPECT_EQ(ju_batch_add(batch, as<ju_registration>(handle), &error), JU_BAD_HANDLE);
    EXPECT_EQ(ju_object_cancel(as<ju_object>(handle), &error), JU_BAD_HANDLE);
    EXPECT_EQ(ju_target_free(as<ju_target>(handle)), JU_BAD_HANDLE);
    EXPECT_STREQ(error.text, "handle of another kind, or none at all");
  }
  EXPECT_EQ(ju_build(as<ju_builder>(words), &out, nullptr), JU_BAD_HANDLE);
  EXPECT_EQ(ju_build(as<ju_builder>(reinterpret_cast<char*>(words) + 1), &out, nullptr), JU_BAD_HANDLE)
      << "not aligned";
  EXPECT_EQ(ju_cancel(as<ju_registration>(reinterpret_cast<char*>(words) + 1), nullptr), JU_BAD_HANDLE);
  EXPECT_EQ(ju_batch_free(batch, nullptr), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);
  EXPECT_EQ(out, nullptr);
}

/// A descriptor that another owner has registered, and one that was registered: neither has an owner here.
TEST(CBadInput, RegistrationsThatAreNotOurs) {
  const unsigned char code[16] = {};
  unw_dyn_info_t info{};
  info.start_ip = reinterpret_cast<std::uintptr_t>(code);
  info.end_ip = info.start_ip + sizeof code;
  auto* const foreign = reinterpret_cast<ju_registration*>(&info);
  ju_batch* batch = nullptr;
  ASSERT_EQ(ju_batch_new(&batch, nullptr), JU_OK);
  const auto refused_by_all = [&] {
    Error error;
    EXPECT_EQ(ju_cancel(foreign, &error), JU_BAD_HANDLE);
    EXPECT_STREQ(error.place, "registration");
    EXPECT_STREQ(error.text, "nothing that is registered: never, or cancelled, retired or handed over before");
    EXPECT_EQ(error.at, reinterpret_cast<std::uintptr_t>(&info));
    EXPECT_EQ(ju_retire(foreign, nullptr, nullptr), JU_BAD_HANDLE);
    EXPECT_EQ(ju_batch_add(batch, foreign, nullptr), JU_BAD_HANDLE);
    EXPECT_EQ(ju_batch_size(batch), 0u);
    EXPECT_EQ(ju_registration_range(foreign, nullptr, nullptr), JU_BAD_HANDLE);
    EXPECT_EQ(ju_registration_bytes(foreign), 0u);
  };
  refused_by_all();
  ASSERT_TRUE(jitunwind::register_procedure(&info));
  refused_by_all();
  EXPECT_EQ(ju_may_be_registered(info.start_ip), 1);
  ASSERT_TRUE(jitunwind::cancel_procedure(&info)) << "it was left alone";
  refused_by_all();
  EXPECT_EQ(ju_batch_free(batch, nullptr), JU_OK);
}

/// Handlers mix up the handles that they are given.
TEST(CBadInput, DecisionsAndFramesThatAreNone) {
  const Builder builder;
  std::uint64_t value = 0;
  ju_passed_frame frame{};
  const ju_reg reg = ju_register_number(JU_CPU_HOST, 19);
  EXPECT_EQ(ju_passed_frame_get(&frame, reg, &value), JU_BAD_STRUCT_SIZE);
  EXPECT_EQ(ju_passed_frame_get(as<ju_passed_frame>(builder.handle), reg, &value), JU_BAD_STRUCT_SIZE);
  frame.struct_size = sizeof frame;
  EXPECT_EQ(ju_passed_frame_get(&frame, reg, &value), JU_NULL_POINTER);
  frame.frame = builder.handle;
  EXPECT_EQ(ju_passed_frame_get(&frame, reg, &value), JU_BAD_HANDLE);
  ju_catch_at(as<ju_decision>(builder.handle), 1);
  ju_clean_up_at(as<ju_decision>(builder.handle), 1);
  ju_land_with_sp(as<ju_decision>(builder.handle), 1);
  EXPECT_EQ(ju_land_with(as<ju_decision>(builder.handle), reg, 1), JU_BAD_HANDLE);
  ju_description* description = nullptr;
  EXPECT_EQ(ju_build(builder, &description, nullptr), JU_OK) << "it is as it was";
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

TEST(CBadInput, CursorsThatWereNeverBegun) {
  ju_cursor cursor;
  std::memset(&cursor, 0, sizeof cursor);
  EXPECT_EQ(ju_cursor_step(&cursor, nullptr), JU_BAD_HANDLE);
  EXPECT_EQ(ju_cursor_stop_reason(&cursor), JU_STOP_NONE);
  EXPECT_EQ(ju_frame_pc(&cursor), 0u);
  EXPECT_EQ(ju_frame_sp(&cursor), 0u);
  std::uint64_t value = 0;
  EXPECT_EQ(ju_frame_get_reg(&cursor, JU_X86_64_RBX, &value, nullptr), JU_BAD_HANDLE);
  EXPECT_EQ(ju_dump_walk(&cursor, 2), JU_BAD_HANDLE);
  EXPECT_EQ(ju_resume(&cursor, nullptr), JU_BAD_HANDLE);
}

TEST(CBadInput, CursorsThatAreNotAligned) {
  ju_cursor two[2];
  auto* const odd = as<ju_cursor>(reinterpret_cast<char*>(two) + 1);
  Error error;
  alignas(16) char context[1024];
  jitunwind_capture_context(context);
  EXPECT_EQ(ju_cursor_here(odd, &error), JU_BAD_HANDLE);
  EXPECT_STREQ(error.place, "cursor");
  EXPECT_EQ(ju_cursor_at(odd, context, JU_RETURNED_TO, &error), JU_BAD_HANDLE);
  ju_sample sample{};
  sample.struct_size = sizeof sample;
  ju_target* target = nullptr;
  ASSERT_EQ(ju_target_of_sample(&sample, nullptr, &target, &error), JU_OK);
  EXPECT_EQ(ju_target_cursor(target, 0, odd, &error), JU_BAD_HANDLE);
  EXPECT_EQ(ju_target_free(target), JU_OK);
}

TEST(CBadInput, SizesOfStructures) {
  ju_description* const description = leaf();
  ju_registration* registration = nullptr;
  Error error;
  const unsigned char bytes[16] = {};
  ju_code code;
  ju_code_init(&code, bytes, sizeof bytes);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{8}, sizeof code - 8, sizeof code + 4, std::size_t{1} << 20, SIZE_MAX}) {
    code.struct_size = size;
    EXPECT_EQ(ju_register(description, &code, &registration, &error), JU_BAD_STRUCT_SIZE) << size;
    EXPECT_EQ(error.at, size);
  }
  code.struct_size = sizeof code;
  ju_error unset;
  unset.struct_size = 3;
  EXPECT_EQ(ju_register(description, &code, &registration, &unset), JU_BAD_STRUCT_SIZE);
  EXPECT_EQ(registration, nullptr) << "nothing was registered";
  ju_statistics statistics;
  statistics.struct_size = 16;
  EXPECT_EQ(ju_statistics_get(&statistics, &error), JU_BAD_STRUCT_SIZE);
  ju_frame frames[2];
  frames[0].struct_size = 1;
  EXPECT_EQ(ju_walk_thread(gettid(), 1000000, frames, 2, nullptr, &error), JU_BAD_STRUCT_SIZE);
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

/// A program that was compiled with a later release's header passes such a structure.
struct LargerCode {
  ju_code code;
  std::uint64_t later;
};

TEST(CBadInput, StructuresOfLaterReleases) {
  ju_description* const description = leaf();
  ju_registration* registration = nullptr;
  Error error;
  const unsigned char bytes[16] = {};
  LargerCode larger{};
  ju_code_init(&larger.code, bytes, sizeof bytes);
  larger.code.struct_size = sizeof larger;
  larger.later = 1;
  EXPECT_EQ(ju_register(description, &larger.code, &registration, &error), JU_BAD_VERSION) << "what it asks for";
  larger.later = 0;
  EXPECT_EQ(ju_register(description, &larger.code, &registration, &error), JU_OK) << "what it does not use";
  EXPECT_EQ(ju_cancel(registration, &error), JU_OK);
  struct {
    ju_frame frame;
    std::uint64_t later;
  } frame;
  std::memset(&frame, 0xee, sizeof frame);
  frame.frame.struct_size = sizeof frame;
  ju_cursor cursor;
  ASSERT_EQ(ju_cursor_here(&cursor, nullptr), JU_OK);
  EXPECT_EQ(ju_frame_get(&cursor, &frame.frame, nullptr), JU_OK);
  EXPECT_EQ(frame.frame.struct_size, sizeof frame);
  EXPECT_EQ(frame.frame.pc, ju_frame_pc(&cursor));
  EXPECT_EQ(frame.later, 0xeeeeeeeeeeeeeeee);
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

TEST(CBadInput, VersionsThatDoNotFit) {
  Error error;
  EXPECT_EQ(ju_version(), unsigned{JITUNWIND_VERSION});
  EXPECT_EQ(ju_check_version(JITUNWIND_VERSION, &error), JU_OK);
  EXPECT_EQ(ju_check_version(JITUNWIND_VERSION + 1, &error), JU_BAD_VERSION);
  EXPECT_EQ(error.at, unsigned{JITUNWIND_VERSION + 1});
  EXPECT_EQ(ju_check_version(JITUNWIND_VERSION + 10000, &error), JU_BAD_VERSION) << "another major version";
}

TEST(CBadInput, RegistersOfAnotherCpu) {
  Error error;
  const Builder builder(JU_CPU_X86_64);
  EXPECT_EQ(ju_push(builder, 0, 1, JU_AARCH64_X29), JU_OTHER_CPU);
  EXPECT_EQ(ju_move_to(builder, 0, 1, JU_X86_64_RBX, 7), JU_OTHER_CPU);
  ju_description* description = nullptr;
  EXPECT_EQ(ju_build(builder, &description, &error), JU_OTHER_CPU);
  EXPECT_STREQ(error.text,
               "ju_push: other_cpu: x29 is a register of aarch64, not of x86-64\n"
               "ju_move_to: other_cpu: 0x7 is no register of x86-64\n");
  ju_cursor cursor;
  ASSERT_EQ(ju_cursor_here(&cursor, nullptr), JU_OK);
  std::uint64_t value = 0;
  EXPECT_EQ(ju_frame_get_reg(&cursor, c_interface::k_other_reg, &value, &error), JU_OTHER_CPU);
  EXPECT_EQ(ju_frame_set_reg(&cursor, c_interface::k_other_reg, 1, &error), JU_OTHER_CPU);
  EXPECT_EQ(ju_frame_saved_at(&cursor, JU_NO_REG, &value, &error), JU_OTHER_CPU);
  EXPECT_EQ(ju_frame_get_reg(&cursor, ju_register_number(JU_CPU_HOST, 999), &value, &error), JU_BAD_REGISTER);
}

TEST(CBadInput, InstructionsThatTheCpuDoesNotHave) {
  Error error;
  ju_description* description = nullptr;
  const Builder arm(JU_CPU_AARCH64);
  EXPECT_EQ(ju_push(arm, 0, 4, JU_AARCH64_X29), JU_NO_SUCH_INSTRUCTION);
  EXPECT_EQ(ju_leave(arm, 0, 4), JU_NO_SUCH_INSTRUCTION);
  EXPECT_EQ(ju_build(arm, &description, &error), JU_NO_SUCH_INSTRUCTION);
  EXPECT_STREQ(error.text,
               "ju_push: no_such_instruction: aarch64 has none\nju_leave: no_such_instruction: aarch64 has none\n");
  const Builder x86(JU_CPU_X86_64);
  EXPECT_EQ(ju_store_pair(x86, 0, 4, JU_X86_64_RBX, JU_X86_64_RBP, 8), JU_NO_SUCH_INSTRUCTION);
  EXPECT_EQ(ju_sign_return_address(x86, 0, 4), JU_NO_SUCH_INSTRUCTION);
  // The description of another CPU is good, but it cannot be registered here.
  ju_description* const of_other_cpu = leaf(c_interface::k_other_cpu);
  ju_code code;
  ju_code_init(&code, &code, 16);
  ju_registration* registration = nullptr;
  EXPECT_EQ(ju_register(of_other_cpu, &code, &registration, &error), JU_INVALID_ARGUMENT);
  EXPECT_STREQ(error.text, "described for another CPU than this process runs on");
  EXPECT_EQ(ju_description_free(of_other_cpu), JU_OK);
}

TEST(CBadInput, StringsWithoutEnd) {
  Error error;
  ju_builder* builder = nullptr;
  const std::string endless(70000, 'x');
  EXPECT_EQ(ju_describe(JU_CPU_HOST, endless.c_str(), &builder, &error), JU_BAD_STRING);
  EXPECT_STREQ(error.place, "name");
  // The string reaches up to the end of readable memory.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* const pages =
      static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages + page, page, PROT_NONE), 0);
  std::memset(pages, 'y', page);
  EXPECT_EQ(ju_describe(JU_CPU_HOST, pages + page - 5, &builder, &error), JU_BAD_STRING);
  for (const std::size_t at : {page, 2 * page - 1})
    EXPECT_EQ(ju_describe(JU_CPU_HOST, pages + at, &builder, &error), JU_BAD_STRING);
  const ju_source_line line{0, pages + page - 5, 1};
  EXPECT_EQ(ju_tell_perf_lines(pages, 16, &line, 1, &error), JU_BAD_STRING);
  EXPECT_STREQ(error.place, "lines");
  const Builder good;
  EXPECT_EQ(ju_row_at(good, 0, pages + page - 5), JU_BAD_STRING);
  EXPECT_EQ(ju_row_at(good, 0, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_register_by_name(JU_CPU_HOST, pages + page - 5), static_cast<ju_reg>(JU_NO_REG));
  ju_description* const description = leaf();
  ju_registration* registration = nullptr;
  ju_code code;
  ju_code_init(&code, pages, 16);
  code.name = endless.c_str();
  EXPECT_EQ(ju_register(description, &code, &registration, &error), JU_BAD_STRING);
  EXPECT_STREQ(error.place, "code.name");
  code.name = pages + page - 5;
  // A string may end at the end of a page, or continue on the next page.
  pages[page - 1] = '\0';
  EXPECT_EQ(ju_register(description, &code, &registration, &error), JU_OK) << error.text;
  EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
  ASSERT_EQ(mprotect(pages + page, page, PROT_READ | PROT_WRITE), 0);
  pages[page - 1] = 'y';
  EXPECT_EQ(ju_register(description, &code, &registration, &error), JU_OK) << error.text;
  EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);
  munmap(pages, 2 * page);
}

/// Strings in structures are 5 bytes in front of memory that cannot be read.
TEST(CBadInput, StringsInStructuresWithoutEnd) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* const pages =
      static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages + page, page, PROT_NONE), 0);
  std::memset(pages, 'y', page);
  const char* const endless = pages + page - 5;
  Error error;
  ju_target* target = nullptr;
  ju_sample sample{};
  sample.struct_size = sizeof sample;
  const ju_mapped_file file{0x1000, endless};
  for (const int which : {0, 1, 2}) {
    ju_folders folders{};
    folders.struct_size = sizeof folders;
    (which == 0 ? folders.root : folders.program) = which == 2 ? nullptr : endless;
    folders.files = &file;
    folders.file_count = which == 2 ? 1 : 0;
    EXPECT_EQ(ju_target_of_sample(&sample, &folders, &target, &error), JU_BAD_STRING) << which;
    EXPECT_STREQ(error.place, which == 0 ? "folders.root" : which == 1 ? "folders.program" : "folders.files");
    EXPECT_EQ(ju_target_open_core("/nonexistent", &folders, &target, &error), JU_BAD_STRING) << which;
  }
  sample.maps = endless;
  EXPECT_EQ(ju_target_of_sample(&sample, nullptr, &target, &error), JU_BAD_STRING);
  EXPECT_STREQ(error.place, "sample.maps");
  EXPECT_EQ(target, nullptr);
  sample.maps = "";
  ASSERT_EQ(ju_target_of_sample(&sample, nullptr, &target, &error), JU_OK);
  sample.maps = endless;
  EXPECT_EQ(ju_target_renew_sample(target, &sample, &error), JU_BAD_STRING);
  // Any length is good if the string has an end.
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "1000-2000 r-xp 00000000 00:00 0        /a/file/of/some/length\n";
  ASSERT_GT(many.size(), 65536u);
  sample.maps = many.c_str();
  EXPECT_EQ(ju_target_renew_sample(target, &sample, &error), JU_OK) << error.text;
  EXPECT_EQ(ju_target_free(target), JU_OK);
  const ju_range range{0x1000, 0x2000};
  const ju_function function{0x1000, 16, endless};
  ju_object_code code{};
  code.struct_size = sizeof code;
  code.code = &range;
  code.code_count = 1;
  code.functions = &function;
  code.function_count = 1;
  ju_object* object = nullptr;
  EXPECT_EQ(ju_object_register(&code, &object, &error), JU_BAD_STRING);
  EXPECT_STREQ(error.place, "object.functions");
  munmap(pages, 2 * page);
}

/// Counts of arrays that no memory has room for. A smaller wrong count makes the library read beyond the array, which
/// nobody notices.
TEST(CBadInput, CountsOfArrays) {
  const Builder builder;
  const void* const type = nullptr;
  EXPECT_EQ(ju_allows(builder, &type, SIZE_MAX), JU_OUT_OF_MEMORY);
  EXPECT_EQ(ju_allows(builder, nullptr, 1), JU_NULL_POINTER);
  Error error;
  ju_batch* batch = nullptr;
  ASSERT_EQ(ju_batch_new(&batch, nullptr), JU_OK);
  ju_description* const description = leaf();
  const ju_description* const descriptions = description;
  ju_code code;
  ju_code_init(&code, &code, sizeof code);
  EXPECT_EQ(ju_batch_register(batch, &descriptions, &code, SIZE_MAX, &error), JU_OUT_OF_MEMORY);
  EXPECT_STREQ(error.text, ju_status_text(JU_OUT_OF_MEMORY));
  EXPECT_EQ(ju_batch_free(batch, nullptr), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

TEST(CBadInput, ValuesThatEnumerationsDoNotHave) {
  Error error;
  ju_cursor cursor;
  alignas(16) char context[1024];
  jitunwind_capture_context(context);
  EXPECT_EQ(ju_cursor_at(&cursor, context, static_cast<ju_top>(2), &error), JU_BAD_VALUE);
  ASSERT_EQ(ju_cursor_at(&cursor, context, JU_RETURNED_TO, &error), JU_OK);
  EXPECT_EQ(ju_cursor_set_guesses(&cursor, static_cast<ju_guesses>(5)), JU_BAD_VALUE);
  ju_target* target = nullptr;
  EXPECT_EQ(ju_target_attach(1, static_cast<ju_hold>(9), &target, &error), JU_BAD_VALUE);
  EXPECT_EQ(ju_register_number(static_cast<ju_cpu>(4), 0), static_cast<ju_reg>(JU_NO_REG));
  EXPECT_STREQ(ju_register_name(12345), "");
}

TEST(CBadInput, WhatAnObjectDoesNotHave) {
  Error error;
  ju_object* object = nullptr;
  ju_object_code code{};
  EXPECT_EQ(ju_object_register(&code, &object, &error), JU_BAD_STRUCT_SIZE);
  code.struct_size = sizeof code;
  code.code_count = 1;
  EXPECT_EQ(ju_object_register(&code, &object, &error), JU_NULL_POINTER);
  EXPECT_STREQ(error.place, "object.code");
  const ju_range range{0x1000, 0x2000};
  code.code = &range;
  code.function_count = 1;
  EXPECT_EQ(ju_object_register(&code, &object, &error), JU_NULL_POINTER);
  const unsigned char broken[32] = {0x10, 0, 0, 0, 9};
  code.function_count = 0;
  code.eh_frame = {reinterpret_cast<std::uintptr_t>(broken), reinterpret_cast<std::uintptr_t>(broken) + sizeof broken};
  EXPECT_NE(ju_object_register(&code, &object, &error), JU_OK);
  EXPECT_NE(error.at, 0u);
  EXPECT_EQ(object, nullptr);
}

TEST(CBadInput, BatchesSayWhichItem) {
  Error error;
  ju_batch* batch = nullptr;
  ASSERT_EQ(ju_batch_new(&batch, nullptr), JU_OK);
  ju_description* const description = leaf();
  const ju_description* descriptions[] = {description, description, nullptr};
  const unsigned char bytes[64] = {};
  ju_code codes[3];
  for (int i = 0; i < 3; ++i) ju_code_init(&codes[i], bytes + 16 * i, 16);
  EXPECT_EQ(ju_batch_register(batch, descriptions, codes, 3, &error), JU_NULL_POINTER);
  EXPECT_EQ(error.at, 2u);
  EXPECT_EQ(ju_batch_register(batch, nullptr, codes, 3, &error), JU_NULL_POINTER);
  EXPECT_EQ(ju_batch_size(batch), 0u);
  EXPECT_EQ(ju_batch_register(batch, descriptions, codes, 2, &error), JU_OK);
  EXPECT_EQ(ju_batch_size(batch), 2u);
  EXPECT_EQ(ju_batch_free(batch, &error), JU_OK);
  EXPECT_EQ(ju_description_free(description), JU_OK);
}

}  // namespace
