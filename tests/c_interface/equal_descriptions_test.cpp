// C and C++ programs that make the same statements get the same description: one shape, one table of handlers, one
// text.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "jitunwind/builders/draft/handler_draft_p.h"
#include "jitunwind/sdk/c/describing/builder_p.h"
#include "tests/c_interface/examples.h"
#include "tests/c_interface/examples_in_cpp.h"
#include "tests/support/texts.h"

namespace {

/// Returns null, and fails the test, if it is refused.
ju_description* described(const example_in_c& example) {
  ju_builder* builder = nullptr;
  EXPECT_EQ(ju_describe(example.cpu, example.name, &builder, nullptr), JU_OK);
  example.describe(builder, examples_type_a, examples_type_b);
  ju_error error;
  ju_error_init(&error);
  ju_description* description = nullptr;
  EXPECT_EQ(ju_build(builder, &description, &error), JU_OK) << example.name << ": " << error.text;
  EXPECT_STREQ(ju_builder_findings(builder), "");
  EXPECT_EQ(ju_builder_free(builder), JU_OK);
  return description;
}

std::vector<std::byte> table_of(const jitunwind::Description& description) {
  return description.handlers() ? description.handlers()->table : std::vector<std::byte>{};
}

TEST(CDescriptions, AreThoseOfCpp) {
  ASSERT_GT(examples_in_c_count, 40u);
  ASSERT_EQ(examples_in_c_count, examples_in_cpp().size());
  for (std::size_t i = 0; i < examples_in_c_count; ++i) {
    const ExampleInCpp& in_cpp = examples_in_cpp()[i];
    ASSERT_STREQ(examples_in_c[i].name, in_cpp.name);
    const auto expected = in_cpp.build();
    ASSERT_TRUE(expected) << in_cpp.name << ": " << expected.error().text();
    ju_description* const handle = described(examples_in_c[i]);
    ASSERT_NE(handle, nullptr);
    const jitunwind::Description& got = handle->description;
    // One shape: structurally equal, byte for byte, and interned.
    EXPECT_EQ(got.shape(), expected->shape()) << in_cpp.name << "\n" << got.to_text() << expected->to_text();
    EXPECT_EQ(table_of(got), table_of(*expected)) << in_cpp.name;
    EXPECT_EQ(got.name(), expected->name());
    EXPECT_EQ(got.size(), expected->size()) << in_cpp.name;
    EXPECT_EQ(got.min_size(), expected->min_size()) << in_cpp.name;
    EXPECT_EQ(got.personality(), expected->personality()) << in_cpp.name;
    EXPECT_EQ(got.gp(), expected->gp()) << in_cpp.name;
    EXPECT_EQ(got.warnings().size(), expected->warnings().size()) << in_cpp.name;
    EXPECT_EQ(ju_description_free(handle), JU_OK);
  }
}

/// Returns the whole text of a text function of the interface.
template <class Write>
std::string whole(Write write) {
  size_t length = 0;
  EXPECT_EQ(write(nullptr, 0, &length), JU_OK);
  std::string text(length + 1, '?');
  EXPECT_EQ(write(text.data(), text.size(), &length), JU_OK);
  EXPECT_EQ(text.back(), '\0');
  text.resize(length);
  return text;
}

TEST(CDescriptions, SayWhatCppSays) {
  for (std::size_t i = 0; i < examples_in_c_count; ++i) {
    const auto expected = examples_in_cpp()[i].build();
    ju_description* const handle = described(examples_in_c[i]);
    ASSERT_TRUE(expected && handle);
    ju_description* copy = nullptr;
    ASSERT_EQ(ju_description_copy(handle, &copy, nullptr), JU_OK);
    EXPECT_EQ(ju_description_free(handle), JU_OK);
    EXPECT_EQ(whole([&](char* into, size_t room, size_t* length) {
                return ju_description_rows(copy, 0, into, room, length);
              }),
              expected->to_text());
    EXPECT_EQ(whole([&](char* into, size_t room, size_t* length) {
                return ju_description_rows(copy, expected->size().value_or(200), into, room, length);
              }),
              expected->to_text(expected->size().value_or(200)));
    EXPECT_EQ(whole([&](char* into, size_t room, size_t* length) {
                return ju_description_directives(copy, into, room, length);
              }),
              expected->shape().directives_text());
    EXPECT_EQ(
        whole([&](char* into, size_t room, size_t* length) { return ju_description_name(copy, into, room, length); }),
        expected->name());
    std::string warnings;
    for (const auto& warning : expected->warnings()) warnings += warning.text() + "\n";
    EXPECT_EQ(whole([&](char* into, size_t room, size_t* length) {
                return ju_description_warnings(copy, into, room, length);
              }),
              warnings);
    ju_description_facts facts;
    facts.struct_size = sizeof facts;
    EXPECT_EQ(ju_description_get(copy, &facts, nullptr), JU_OK);
    EXPECT_EQ(facts.size, expected->size().value_or(0));
    EXPECT_EQ(facts.min_size, expected->min_size());
    EXPECT_EQ(facts.format, expected->format());
    EXPECT_EQ(facts.cpu, examples_in_c[i].cpu);
    EXPECT_EQ(facts.warnings, expected->warnings().size());
    EXPECT_EQ(facts.shape_users, expected->shape().users());
    EXPECT_EQ(facts.shape_bytes, expected->shape().bytes());
    EXPECT_EQ(ju_description_free(copy), JU_OK);
  }
}

/// The Rust crates compare their descriptions with this text: scenarios.rs.
TEST(CDescriptions, AreThoseOfTheCrates) {
  std::string said;
  for (std::size_t i = 0; i < examples_in_c_count; ++i) {
    ju_description* const handle = described(examples_in_c[i]);
    ASSERT_NE(handle, nullptr);
    ju_description_facts facts;
    facts.struct_size = sizeof facts;
    ASSERT_EQ(ju_description_get(handle, &facts, nullptr), JU_OK);
    said += std::string("== ") + examples_in_c[i].name + "\n";
    said += whole(
        [&](char* into, size_t room, size_t* length) { return ju_description_rows(handle, 0, into, room, length); });
    said += "-- " + std::to_string(facts.size != 0 ? facts.size : 200) + "\n";
    said += whole(
        [&](char* into, size_t room, size_t* length) { return ju_description_directives(handle, into, room, length); });
    said += whole(
        [&](char* into, size_t room, size_t* length) { return ju_description_warnings(handle, into, room, length); });
    EXPECT_EQ(ju_description_free(handle), JU_OK);
  }
  const std::string here = JITUNWIND_SOURCE_DIR "/tests/c_interface/";
  EXPECT_EQ(jitunwind::test::text_of_file(here + "scenarios.txt"), said)
      << "written anew where descriptions have changed on purpose";
  // The crate has all examples, by their names.
  const std::string scenarios = jitunwind::test::text_of_file(here + "scenarios.rs");
  for (std::size_t i = 0; i < examples_in_c_count; ++i)
    EXPECT_NE(scenarios.find("\"" + std::string(examples_in_c[i].name) + "\""), std::string::npos);
}

TEST(CDescriptions, RowsOneByOne) {
  const auto expected = examples_in_cpp()[0].build();
  ju_description* const handle = described(examples_in_c[0]);
  ASSERT_TRUE(expected && handle);
  char text[100];
  for (std::uint64_t at = 0; at < 14; ++at) {
    ASSERT_EQ(ju_description_row(handle, at, 14, text, sizeof text, nullptr), JU_OK);
    EXPECT_EQ(text, jitunwind::to_text(*expected->row(at, 14), expected->arch()));
  }
  EXPECT_EQ(ju_description_row(handle, 14, 14, text, sizeof text, nullptr), JU_E_RANGE);
  EXPECT_EQ(ju_description_check_size(handle, 14, nullptr), JU_OK);
  EXPECT_EQ(ju_description_check_size(handle, 15, nullptr), JU_E_RANGE);
  // The text is cut to the room.
  EXPECT_EQ(ju_description_row(handle, 0, 14, text, 4, nullptr), JU_OK);
  EXPECT_STREQ(text, "cfa");
  EXPECT_EQ(ju_description_free(handle), JU_OK);
}

TEST(CDescriptions, SelectorsAreThoseOfCpp) {
  ju_builder* builder = nullptr;
  ASSERT_EQ(ju_describe(JU_CPU_HOST, nullptr, &builder, nullptr), JU_OK);
  EXPECT_EQ(ju_selector(builder, examples_type_a), 1);
  EXPECT_EQ(ju_selector(builder, nullptr), 2);
  EXPECT_EQ(ju_selector(builder, examples_type_b), 3);
  EXPECT_EQ(ju_selector(builder, examples_type_a), 1);
  EXPECT_EQ(ju_builder_free(builder), JU_OK);
}

TEST(CDescriptions, CopiesOfBuildersAreIndependent) {
  ju_builder* builder = nullptr;
  ju_builder* copy = nullptr;
  ASSERT_EQ(ju_describe(JU_CPU_X86_64, "a", &builder, nullptr), JU_OK);
  ju_push(builder, 0, 1, JU_X86_64_RBX);
  ASSERT_EQ(ju_builder_copy(builder, &copy, nullptr), JU_OK);
  ju_pop(builder, -2, -1, JU_X86_64_RBX);
  ju_description* one = nullptr;
  EXPECT_EQ(ju_build(builder, &one, nullptr), JU_OK);
  EXPECT_EQ(ju_build(copy, &one, nullptr), JU_W_UNBALANCED);
  EXPECT_EQ(ju_builder_free(builder), JU_OK);
  EXPECT_EQ(ju_ends_without_return(copy), JU_OK);
  ju_description* other = nullptr;
  EXPECT_EQ(ju_build(copy, &other, nullptr), JU_OK);
  EXPECT_EQ(ju_builder_free(copy), JU_OK);
  EXPECT_FALSE(one->description.shape() == other->description.shape());
  size_t shapes = 0, bytes = 0;
  ju_frame_shapes(&shapes, &bytes);
  EXPECT_GE(shapes, 2u);
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(ju_description_free(one), JU_OK);
  EXPECT_EQ(ju_description_free(other), JU_OK);
}

}  // namespace
