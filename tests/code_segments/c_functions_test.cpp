// Code in segments by the C interface.
#include <gtest/gtest.h>
#include <jitunwind/c.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/c_interface/live.h"
#include "tests/code_segments/symbols_of.h"

namespace {

using c_interface::Error, c_interface::k_call, c_interface::Seen;
using jitunwind::Addr, jitunwind::test::LibgccSearch, jitunwind::test::symbol_at;

struct Segments {
  explicit Segments(const ju_code_options* options = nullptr) {
    EXPECT_EQ(ju_code_new(options, &handle, nullptr), JU_OK);
  }
  ~Segments() { EXPECT_EQ(ju_code_free(handle), JU_OK); }
  ju_code_status status() const {
    ju_code_status now;
    now.struct_size = sizeof now;
    EXPECT_EQ(ju_code_status_get(handle, &now, nullptr), JU_OK);
    return now;
  }
  /// Room with a copy of the code in it.
  ju_code_room written() const {
    Error error;
    ju_code_room room{};
    EXPECT_EQ(ju_code_allocate(handle, sizeof k_call, &room, &error), JU_OK) << error.text;
    EXPECT_GE(room.size, sizeof k_call);
    std::memcpy(room.writable, k_call, sizeof k_call);
    return room;
  }
  ju_code_segments* handle = nullptr;
};

struct Described {
  ju_description* handle = c_interface::built(c_interface::said("described"));
  ~Described() { EXPECT_EQ(ju_description_free(handle), JU_OK); }
};

struct Marks {
  Marks() { EXPECT_EQ(ju_describe_marks(JU_CPU_HOST, &handle, nullptr), JU_OK); }
  ~Marks() { EXPECT_EQ(ju_builder_free(handle), JU_OK); }
  ju_builder* handle = nullptr;
};

ju_code code_at(const void* start, const char* name) {
  ju_code code;
  ju_code_init(&code, start, sizeof k_call);
  code.name = name;
  return code;
}

Addr address(const void* start) { return reinterpret_cast<std::uintptr_t>(start); }

Seen walked_through(void* start) {
  Seen seen;
  reinterpret_cast<c_interface::Call>(start)(c_interface::walk_by_callback, &seen);
  return seen;
}

TEST(CCodeSegments, CodeIsSeenUntilItIsReleased) {
  const Segments segments;
  const Described description;
  EXPECT_EQ(segments.status().segments, 0u);
  EXPECT_STREQ(segments.status().why, "");
  const ju_code_room room = segments.written();
  const ju_code code = code_at(room.start, "jit_of_c");
  ASSERT_EQ(ju_code_commit(segments.handle, description.handle, &code, nullptr), JU_OK);
  EXPECT_STREQ(symbol_at(address(room.start) + 1), "jit_of_c");
  EXPECT_EQ(LibgccSearch()(address(room.start) + 1), address(room.start));
  const Seen seen = walked_through(room.start);
  EXPECT_TRUE(c_interface::is_complete(seen));
  EXPECT_EQ(std::count(seen.names.begin(), seen.names.end(), "jit_of_c"), 1);
  const ju_code_status now = segments.status();
  EXPECT_EQ(now.functions, 1u);
  EXPECT_EQ(now.published, 1u) << now.why;
  EXPECT_EQ(now.files, 1u);
  EXPECT_EQ(now.latest_refusal, JU_OK);

  std::array<char, 400> folder{};
  std::size_t length = 0;
  EXPECT_EQ(ju_code_folder(segments.handle, folder.data(), folder.size(), &length), JU_OK);
  EXPECT_NE(std::string(folder.data()).find("/jitunwind-code-"), std::string::npos) << folder.data();
  EXPECT_EQ(length, std::strlen(folder.data()));
  std::array<char, 4> cut{};
  EXPECT_EQ(ju_code_folder(segments.handle, cut.data(), cut.size(), nullptr), JU_OK);
  EXPECT_EQ(cut.data(), std::string(folder.data(), 3));

  EXPECT_EQ(ju_code_release(segments.handle, room.start, nullptr), JU_OK);
  EXPECT_EQ(symbol_at(address(room.start)), nullptr);
  EXPECT_EQ(segments.status().functions, 0u);
  EXPECT_EQ(segments.written().start, room.start);
}

TEST(CCodeSegments, MarksServeOneFunctionAfterTheOther) {
  const Segments segments;
  const Marks marks;
  for (const char* const name : {"first", "second"}) {
    const ju_code_room room = segments.written();
    const ju_code code = code_at(room.start, name);
    c_interface::describe_call(marks.handle);
    ASSERT_EQ(ju_code_commit_marks(segments.handle, marks.handle, &code, nullptr), JU_OK);
    EXPECT_STREQ(symbol_at(address(room.start) + 1), name);
    EXPECT_TRUE(c_interface::is_complete(walked_through(room.start))) << name;
    EXPECT_EQ(segments.status().sealed, 0u);
    EXPECT_EQ(ju_code_seal(segments.handle, nullptr), JU_OK);
    EXPECT_EQ(segments.status().sealed, 1u);
  }
  EXPECT_EQ(segments.status().published, 2u);
}

/// A function gets nothing that was recorded for code whose room was refused.
TEST(CCodeSegments, MarksForgetWhatIsRefused) {
  const Segments segments;
  const Marks marks;
  const ju_code_room room = segments.written();
  ju_code code = code_at(static_cast<char*>(room.start) + 16, "nowhere");
  ju_allocate(marks.handle, 0, 1, 64);
  EXPECT_EQ(ju_code_commit_marks(segments.handle, marks.handle, &code, nullptr), JU_NOT_REGISTERED);
  code = code_at(room.start, "large");
  code.size = room.size + 1;
  ju_allocate(marks.handle, 0, 1, 64);
  EXPECT_EQ(ju_code_commit_marks(segments.handle, marks.handle, &code, nullptr), JU_E_OVERLAP);
  code = code_at(room.start, "right");
  c_interface::describe_call(marks.handle);
  ASSERT_EQ(ju_code_commit_marks(segments.handle, marks.handle, &code, nullptr), JU_OK);
  EXPECT_TRUE(c_interface::is_complete(walked_through(room.start)));
}

/// Functions that are registered one by one, behind each other in one room.
TEST(CCodeSegments, FunctionsOfOneRoomArePublished) {
  const Segments segments;
  const Described description;
  ju_code_room room{};
  constexpr std::size_t k_apart = 64;
  ASSERT_EQ(ju_code_allocate_functions(segments.handle, 3 * k_apart, 2, 4096, &room, nullptr), JU_OK);
  EXPECT_EQ(address(room.start) % 4096, 0u);
  std::array<ju_registration*, 3> registrations{};
  for (std::size_t i = 0; i < 3; ++i) {
    std::memcpy(static_cast<char*>(room.writable) + i * k_apart, k_call, sizeof k_call);
    const std::string name = "function " + std::to_string(i);
    const ju_code code = code_at(static_cast<char*>(room.start) + i * k_apart, name.c_str());
    ASSERT_EQ(ju_register(description.handle, &code, &registrations[i], nullptr), JU_OK);
  }
  EXPECT_EQ(segments.status().published, 0u);
  ASSERT_EQ(ju_code_publish(segments.handle, room.start, 3 * k_apart, nullptr), JU_OK);
  EXPECT_EQ(segments.status().published, 3u) << segments.status().why;
  for (std::size_t i = 0; i < 3; ++i) {
    char* const start = static_cast<char*>(room.start) + i * k_apart;
    EXPECT_EQ(symbol_at(address(start) + 1), "function " + std::to_string(i));
    EXPECT_EQ(LibgccSearch()(address(start) + 1), address(start));
    EXPECT_TRUE(c_interface::is_complete(walked_through(start)));
    EXPECT_EQ(ju_cancel(registrations[i], nullptr), JU_OK);
  }
  EXPECT_EQ(ju_code_release(segments.handle, room.start, nullptr), JU_OK);
  EXPECT_EQ(symbol_at(address(room.start)), nullptr);
  Error error;
  EXPECT_EQ(ju_code_publish(segments.handle, room.start, 1, &error), JU_NOT_REGISTERED);
  EXPECT_STREQ(error.place, "start");
  EXPECT_EQ(ju_code_allocate_functions(segments.handle, 64, 0, 24, &room, nullptr), JU_E_RANGE);
  EXPECT_EQ(ju_code_allocate_functions(segments.handle, 64, 64, 16, &room, nullptr), JU_E_RANGE);
}

/// The environment is read once, so children ask. A handle that was freed leaves the code there.
TEST(CCodeSegments, HandlesOfTheEnvironmentLeaveItsAllocator) {
  const auto in_child = [](bool publishes) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::unsetenv("JITUNWIND_PUBLISH");
      if (publishes) ::setenv("JITUNWIND_PUBLISH", "1", 1);
      ju_code_segments *first = nullptr, *second = nullptr;
      if (ju_code_of_environment(&first, nullptr) != JU_OK || ju_code_of_environment(&second, nullptr) != JU_OK)
        ::_exit(1);
      if (first == nullptr) ::_exit(second == nullptr ? 2 : 3);
      ju_code_room room;
      if (ju_code_allocate(first, sizeof k_call, &room, nullptr) != JU_OK) ::_exit(4);
      std::memcpy(room.writable, k_call, sizeof k_call);
      const Described description;
      const ju_code code = code_at(room.start, "of the environment");
      if (ju_code_commit(first, description.handle, &code, nullptr) != JU_OK) ::_exit(5);
      if (ju_code_free(first) != JU_OK || symbol_at(address(room.start)) != std::string("of the environment"))
        ::_exit(6);
      std::exit(ju_code_release(second, room.start, nullptr) == JU_OK && ju_code_free(second) == JU_OK ? 0 : 7);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  };
  EXPECT_EQ(in_child(true), 0);
  EXPECT_EQ(in_child(false), 2);
}

TEST(CCodeSegments, OptionsAreThoseOfCpp) {
  ju_code_options options{};
  ju_code_segments* none = nullptr;
  Error error;
  EXPECT_EQ(ju_code_new(&options, &none, &error), JU_BAD_STRUCT_SIZE);
  EXPECT_STREQ(error.place, "options");
  options.struct_size = sizeof options;
  options.functions = 2;
  const Segments segments(&options);
  const Described description;
  for (int i = 0; i < 3; ++i) {
    const ju_code code = code_at(segments.written().start, nullptr);
    ASSERT_EQ(ju_code_commit(segments.handle, description.handle, &code, nullptr), JU_OK);
  }
  EXPECT_EQ(segments.status().files, 2u);
  options.changes_code = 1;
  const Segments changing(&options);
  const ju_code code = code_at(changing.written().start, nullptr);
  ASSERT_EQ(ju_code_commit(changing.handle, description.handle, &code, nullptr), JU_OK);
  EXPECT_EQ(ju_code_seal(changing.handle, nullptr), JU_OK);
  EXPECT_EQ(changing.status().sealed, 0u);
}

TEST(CCodeSegments, MistakesAreErrors) {
  const Segments segments;
  const Described description;
  ju_builder* const builder = c_interface::said("not marks");
  Error error;
  ju_code_room room{};
  EXPECT_EQ(ju_code_allocate(segments.handle, 0, &room, &error), JU_E_RANGE);
  EXPECT_STREQ(error.place, "size");
  EXPECT_EQ(ju_code_allocate(segments.handle, (std::size_t{1} << 30) + 1, &room, nullptr), JU_E_RANGE);
  EXPECT_EQ(ju_code_allocate(segments.handle, 1, nullptr, nullptr), JU_NULL_POINTER);
  room = segments.written();
  ju_code code = code_at(room.start, "mistaken");
  EXPECT_EQ(ju_code_commit(segments.handle, nullptr, &code, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_code_commit(segments.handle, reinterpret_cast<ju_description*>(builder), &code, &error), JU_BAD_HANDLE);
  EXPECT_STREQ(error.place, "description");
  EXPECT_EQ(ju_code_commit(segments.handle, description.handle, nullptr, nullptr), JU_NULL_POINTER);
  EXPECT_EQ(ju_code_commit_marks(segments.handle, builder, &code, &error), JU_BAD_VALUE);
  EXPECT_STREQ(error.place, "marks");
  code.size = room.size + 1;
  EXPECT_EQ(ju_code_commit(segments.handle, description.handle, &code, &error), JU_E_OVERLAP);
  EXPECT_STREQ(error.place, "code");
  EXPECT_EQ(ju_code_release(segments.handle, static_cast<char*>(room.start) + 16, &error), JU_NOT_REGISTERED);
  EXPECT_STREQ(error.place, "start");
  EXPECT_EQ(segments.status().functions, 0u);
  ju_code_status status{};
  EXPECT_EQ(ju_code_status_get(segments.handle, &status, nullptr), JU_BAD_STRUCT_SIZE);
  EXPECT_EQ(ju_builder_free(builder), JU_OK);
}

}  // namespace
