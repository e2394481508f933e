// Calls each function of the C interface with arguments that C++ types forbid: the result is a code and a sentence, and
// nothing else has happened.
#include "tests/c_interface/every_function.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "tests/listen/written_for_perf.h"

namespace {

using every::Arguments;
using every::Function;
using Names = std::set<std::string>;

struct Error : ju_error {
  Error() { ju_error_init(this); }
};

/// Room for anything that a function writes or reads. It is all zeros, like a structure whose size was never set.
struct Memory {
  Memory() : bytes(std::size_t{1} << 16) {}
  std::vector<unsigned char> bytes;
};

/// Checks the error's text beside its code.
void expect_said(const Function& function, ju_status status, const ju_error& error) {
  if (!function.has_error) return;
  EXPECT_EQ(error.code, status) << function.name;
  EXPECT_STRNE(error.text, "") << function.name;
}

/// A handle of each kind, and memory that is no handle.
struct Handles {
  Handles() {
    EXPECT_EQ(ju_describe(JU_CPU_HOST, "kind", &builder, nullptr), JU_OK);
    EXPECT_EQ(ju_build(builder, &description, nullptr), JU_OK);
    EXPECT_EQ(ju_batch_new(&batch, nullptr), JU_OK);
    EXPECT_EQ(ju_cursor_here(&cursor, nullptr), JU_OK);
    EXPECT_EQ(ju_code_new(nullptr, &segments, nullptr), JU_OK);
    ju_code code;
    ju_code_init(&code, code_bytes.data(), code_bytes.size());
    EXPECT_EQ(ju_register(description, &code, &registration, nullptr), JU_OK);
    ju_sample sample{};
    sample.struct_size = sizeof sample;
    EXPECT_EQ(ju_target_of_sample(&sample, nullptr, &target, nullptr), JU_OK);
  }
  ~Handles() {
    EXPECT_EQ(ju_cancel(registration, nullptr), JU_OK);
    EXPECT_EQ(ju_target_free(target), JU_OK);
    EXPECT_EQ(ju_code_free(segments), JU_OK);
    EXPECT_EQ(ju_batch_free(batch, nullptr), JU_OK);
    EXPECT_EQ(ju_description_free(description), JU_OK);
    EXPECT_EQ(ju_builder_free(builder), JU_OK);
  }
  std::array<unsigned char, 64> code_bytes{};
  std::array<std::uint64_t, 160> no_handle{1, 2, 3};
  ju_builder* builder = nullptr;
  ju_description* description = nullptr;
  ju_batch* batch = nullptr;
  ju_cursor cursor;
  ju_registration* registration = nullptr;
  ju_target* target = nullptr;
  ju_code_segments* segments = nullptr;
};

/// The files that one of the functions begins go with the program.
struct PerfFilesGo {
  ~PerfFilesGo() {
    (void)ju_detach_perf(nullptr);
    jitunwind::test::remove_written_for_perf(::getpid());
  }
} const perf_files_go;

TEST(CEveryFunction, TakesNull) {
  // These free, or need none of the pointers that they take.
  const Names good{"ju_attach_gdb",       "ju_attach_perf",   "ju_detach_perf",   "ju_batch_free",
                   "ju_builder_free",     "ju_cancel",        "ju_check_version", "ju_code_free",
                   "ju_description_free", "ju_detach_gdb",    "ju_dump_registry", "ju_flush_gdb",
                   "ju_keep_at_least",    "ju_object_cancel", "ju_retire",        "ju_statistics_text",
                   "ju_target_free",      "ju_why_stopped"};
  for (const Function& function : every::functions) {
    Error error;
    Arguments arguments;
    if (function.has_error) arguments.error = &error;
    const ju_status status = function.call(arguments);
    if (status == every::k_no_status) continue;
    if (std::string(function.name) == "ju_symbolise" || std::string(function.name) == "ju_walk_thread") {
      EXPECT_NE(status, JU_OK) << function.name << ": there is room for nothing, and nothing to tell";
    } else if (good.count(function.name) != 0) {
      EXPECT_EQ(status, JU_OK) << function.name;
    } else {
      EXPECT_EQ(status, JU_NULL_POINTER) << function.name;
      expect_said(function, status, error);
    }
  }
  EXPECT_EQ(ju_detach_gdb(nullptr), JU_OK);
}

/// Libraries that check handles are tested, and others: with numbers, with bytes that look like a registered handle,
/// zeros, ones.
TEST(CEveryFunction, RefusesWhatIsNoHandle) {
  Handles handles;
  Memory memory;
  std::array<std::uint64_t, 160> like_a_registration{};
  std::memcpy(like_a_registration.data(), handles.registration, sizeof(unw_dyn_info_t));
  std::array<std::uint64_t, 160> ones;
  ones.fill(~std::uint64_t{0});
  for (std::array<std::uint64_t, 160> none :
       {handles.no_handle, like_a_registration, std::array<std::uint64_t, 160>{}, ones}) {
    const std::array<std::uint64_t, 160> before = none;
    for (const Function& function : every::functions) {
      if (function.kind == every::Kind::none) continue;
      Error error;
      Arguments arguments;
      arguments.handle = none.data();
      arguments.memory = memory.bytes.data();
      arguments.text = "";
      if (function.has_error) arguments.error = &error;
      const ju_status status = function.call(arguments);
      EXPECT_EQ(none, before) << function.name;
      if (status == every::k_no_status) continue;
      EXPECT_EQ(status, JU_BAD_HANDLE) << function.name;
      expect_said(function, status, error);
    }
  }
}

/// Functions of another kind refuse a handle, and it stays as it is.
TEST(CEveryFunction, RefusesHandlesOfOtherKinds) {
  Handles handles;
  Memory memory;
  struct Kind {
    void* handle;
    every::Kind kind;
  };
  const Kind kinds[] = {
      {handles.builder, every::Kind::builder},       {handles.description, every::Kind::description},
      {handles.batch, every::Kind::batch},           {&handles.cursor, every::Kind::cursor},
      {handles.target, every::Kind::target},         {handles.registration, every::Kind::registration},
      {handles.segments, every::Kind::code_segments}};
  int refused = 0;
  for (const Function& function : every::functions) {
    for (const Kind& other : kinds) {
      if (function.kind == every::Kind::none || function.kind == other.kind) continue;
      Error error;
      Arguments arguments;
      arguments.handle = other.handle;
      arguments.memory = memory.bytes.data();
      arguments.text = "";
      if (function.has_error) arguments.error = &error;
      const ju_status status = function.call(arguments);
      if (status == every::k_no_status) continue;
      EXPECT_EQ(status, JU_BAD_HANDLE) << function.name;
      expect_said(function, status, error);
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(CEveryFunction, RefusesTextsWithoutEnd) {
  constexpr std::size_t k_size = 4096;
  void* const pages = mmap(nullptr, 2 * k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<char*>(pages) + k_size, k_size, PROT_NONE), 0);
  std::memset(pages, 'x', k_size);
  Handles handles;
  Memory memory;
  int refused = 0;
  for (const Function& function : every::functions) {
    if (!function.has_text) continue;
    Arguments arguments;
    arguments.handle = handles.builder;
    arguments.memory = memory.bytes.data();
    arguments.text = static_cast<const char*>(pages);
    const ju_status status = function.call(arguments);
    if (status == every::k_no_status) continue;
    EXPECT_EQ(status, JU_BAD_STRING) << function.name;
    ++refused;
  }
  EXPECT_EQ(refused, 5) << "ju_describe, three of rows, ju_target_open_core";
  ASSERT_EQ(munmap(pages, 2 * k_size), 0);
}

TEST(CEveryFunction, RefusesRegistersOfAnotherCpu) {
  Handles handles;
  const ju_reg other = ju_host_cpu() == JU_CPU_X86_64 ? ju_reg{JU_AARCH64_X19} : ju_reg{JU_X86_64_RBX};
  int refused = 0;
  for (const Function& function : every::functions) {
    if (function.kind != every::Kind::builder || !function.has_reg) continue;
    Arguments arguments;
    arguments.handle = handles.builder;
    arguments.reg = other;
    const ju_status status = function.call(arguments);
    // An instruction that the CPU lacks is refused even with the CPU's own register.
    EXPECT_TRUE(status == JU_OTHER_CPU || status == JU_NO_SUCH_INSTRUCTION) << function.name << " " << status;
    ++refused;
  }
  EXPECT_GT(refused, 20);
  ju_description* description = nullptr;
  EXPECT_EQ(ju_build(handles.builder, &description, nullptr), JU_OTHER_CPU);
}

}  // namespace
