// Code with call frame information of its own: every function of an object as a procedure.
#include "jitunwind/builders/object_registration.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/builders/placed_eh_frame.h"
#include "tests/builders/registered_code.h"
#include "tests/support/cfi_assembler.h"

namespace jitunwind::test {
namespace {

constexpr Addr k_code = 0x5'0000'0000;
constexpr AddrRange k_section{k_code, k_code + 0x1000};

constexpr const char* k_row = "dyn_table: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]";

// covers: DY46
TEST(ObjectRegistration, IsAProcedureForEachFunction) {
  EhFrame frames;
  frames.fde(k_code, 0x10);
  frames.fde(k_code + 0x20, 0x20);
  const std::vector<ObjectFunction> functions{{k_code + 0x20, 0x20, "second"}, {k_code, 0x10, "first"}};
  auto object = register_object({{&k_section, 1}, frames.placed(), functions});
  ASSERT_TRUE(object);
  ASSERT_EQ(object->procedures().size(), 2u);
  EXPECT_TRUE(object->undescribed().empty());
  const RegisteredCode code;
  EXPECT_EQ(code.row_at(k_code + 2), k_row);
  EXPECT_EQ(code.row_at(k_code + 0x3f), k_row);
  EXPECT_EQ(code.row_at(k_code + 0x10), "no row");
  EXPECT_EQ(code.name_at(k_code + 2), "first");
  EXPECT_EQ(code.name_at(k_code + 0x3f), "second");
  EXPECT_EQ(code.name_at(k_code + 0x10), "");
  const auto procedure = code.procedure_at(k_code + 0x21);
  ASSERT_TRUE(procedure);
  EXPECT_EQ(procedure->range, (AddrRange{k_code + 0x20, k_code + 0x40}));
  ASSERT_TRUE(object->cancel());
  EXPECT_EQ(code.row_at(k_code + 2), "no row");
}

TEST(ObjectRegistration, FunctionsWithoutFdeHaveNamesOnly) {
  EhFrame frames;
  frames.fde(k_code + 0x20, 0x10);
  // The functions end by their size, at the next symbol, at the next FDE, and at the section's end. The alias is not
  // another function.
  const std::vector<ObjectFunction> functions{{k_code, 4, "sized"},
                                              {k_code + 4, 0, "next"},
                                              {k_code + 8, 0x100, "before"},
                                              {k_code + 8, 8, "alias"},
                                              {k_code + 0x28, 8, "inside"},
                                              {k_code + 0x30, 0, "last"},
                                              {k_code + 0x2000, 8, "elsewhere"}};
  auto object = register_object({{&k_section, 1}, frames.placed(), functions});
  ASSERT_TRUE(object);
  ASSERT_EQ(object->procedures().size(), 5u);
  const auto undescribed = object->undescribed();
  ASSERT_EQ(undescribed.size(), 4u);
  const Addr ends[] = {4, 8, 0x20, 0x1000};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(undescribed[i].end_ip, k_code + ends[i]);
  const RegisteredCode code;
  EXPECT_EQ(code.name_at(k_code + 3), "sized");
  EXPECT_EQ(code.row_at(k_code + 3), "no row");
  EXPECT_EQ(code.name_at(k_code + 0x1f), "before");
  EXPECT_EQ(code.name_at(k_code + 0x28), "");
  EXPECT_EQ(code.row_at(k_code + 0x28), k_row);
  EXPECT_EQ(code.name_at(k_code + 0xfff), "last");
}

TEST(ObjectRegistration, NothingNeedsToBeNearAnything) {
  EhFrame frames;  // the kernel puts it at the top of the address space, the code is near its bottom
  constexpr AddrRange sections[] = {{0x1000, 0x2000}, {0x7000'0000'0000, 0x7000'0000'1000}};
  frames.fde(0x1000, 0x10);
  frames.fde(0x7000'0000'0ff0, 0x10);
  auto object = register_object({sections, frames.placed(), {}});
  ASSERT_TRUE(object);
  EXPECT_EQ(RegisteredCode().row_at(0x100f), k_row);
  EXPECT_EQ(RegisteredCode().row_at(0x7000'0000'0fff), k_row);
}

TEST(ObjectRegistration, FdesForNoCodeAreLeftOut) {
  EhFrame frames;
  frames.fde(0, 0);
  frames.fde(k_code, 0x10);
  frames.section.terminator();
  frames.fde(1, 1);  // behind the terminator
  auto object = register_object({{&k_section, 1}, frames.placed(), {}});
  ASSERT_TRUE(object);
  EXPECT_EQ(object->procedures().size(), 1u);
}

Error error_of(EhFrame& frames) {
  const auto object = register_object({{&k_section, 1}, frames.placed(), {}});
  EXPECT_FALSE(object);
  EXPECT_EQ(registry_statistics().registered, 0u);
  return object ? Error{} : object.error();
}

TEST(ObjectRegistration, BrokenEhFrameIsAnErrorThatSaysWhere) {
  EhFrame foreign;
  foreign.fde(k_code, 8);
  Addr at = foreign.fde(k_section.end - 8, 9);
  EXPECT_EQ(error_of(foreign), (Error{ErrorCode::e_range, at, ""}));

  EhFrame unknown_opcode;
  at = unknown_opcode.section.fde(unknown_opcode.cie(), k_code, 8, Bytes{0x41, 0x3f});
  EXPECT_EQ(error_of(unknown_opcode).code, ErrorCode::bad_opcode);
  EXPECT_GT(error_of(unknown_opcode).at, at);

  EhFrame too_long;
  at = too_long.fde(k_code, 8);
  too_long.section.data().put(at - too_long.placed().begin, 0x10000, 4);
  EXPECT_EQ(error_of(too_long), (Error{ErrorCode::truncated, at, ""}));

  EhFrame no_cie;
  at = no_cie.fde(k_code, 8);
  no_cie.section.data().put(at - no_cie.placed().begin + 4, at - no_cie.placed().begin + 4 - 1, 4);
  EXPECT_FALSE(register_object({{&k_section, 1}, no_cie.placed(), {}}));
}

TEST(ObjectRegistration, NothingAtAllIsNothing) {
  auto object = register_object({});
  ASSERT_TRUE(object);
  EXPECT_TRUE(object->procedures().empty());
  EXPECT_TRUE(object->cancel());
}

TEST(ObjectRegistration, MovesAndEndsWithItsLastOwner) {
  EhFrame frames;
  frames.fde(k_code, 8);
  {
    std::vector<ObjectRegistration> kept;
    for (int i = 0; i < 3; ++i) {
      auto object = register_object({{&k_section, 1}, frames.placed(), {}});
      ASSERT_TRUE(object);
      kept.push_back(std::move(*object));
    }
    kept.erase(kept.begin());
    EXPECT_EQ(registry_statistics().registered, 2u);
  }
  EXPECT_EQ(registry_statistics().registered, 0u);
}

TEST(ObjectRegistration, ThreadsRegisterAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      EhFrame frames;
      const Addr code = k_code + 0x10000 * static_cast<Addr>(t);
      const AddrRange section{code, code + 0x1000};
      frames.fde(code, 8);
      const AddrRange placed = frames.placed();
      for (int i = 0; i < 200; ++i) {
        auto object = register_object({{&section, 1}, placed, {}});
        ASSERT_TRUE(object);
        EXPECT_EQ(RegisteredCode().row_at(code + 4), k_row);
        ASSERT_TRUE(object->cancel());
        EXPECT_EQ(RegisteredCode().row_at(code + 4), "no row");
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace jitunwind::test
