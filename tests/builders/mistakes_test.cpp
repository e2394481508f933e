// Mistakes that people make, and the errors that name them in the author's words.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "jitunwind/builders/registers_aarch64.h"
#include "jitunwind/builders/registration.h"
#include "tests/builders/described.h"
#include "tests/builders/mistake.h"

namespace jitunwind {
namespace {

using namespace x86_64;

const Mistake k_mistakes[] = {
    {"NoBytes", in_47_bytes().push({1, 1}, rbx), "push({1, 1}, rbx): E_RANGE: no bytes between begin and end\n"},
    {"BytesInverted", in_47_bytes().push({1, 0}, rbx).pop({-2, -1}, rbx),
     "push({1, 0}, rbx): E_RANGE: no bytes between begin and end\n"},
    {"BytesInvertedToTheEnd", in_47_bytes().push({5, -1}, rbx).pop({-2, -1}, rbx),
     "push({5, -1}, rbx): E_RANGE: no bytes between begin and end\n"},
    {"BytesAcrossTheEnd", in_47_bytes().push({0, 1}, rbx).pop({-2, 5}, rbx),
     "pop({-2, 5}, rbx): E_WHEN: reaches across the end of the procedure\n"},
    {"BehindTheEnd", in_47_bytes().push({0, 1}, rbx).pop({0x40, 0x41}, rbx),
     "pop({64, 65}, rbx): E_WHEN: behind the end of the procedure, which has 47 bytes\n"},
    {"TooFar", describe().push({std::int64_t{1} << 40, (std::int64_t{1} << 40) + 1}, rbx),
     "push({1099511627776, 1099511627777}, rbx): E_RANGE: code offset beyond 2 GiB\n"},
    {"Overlapping", in_47_bytes().push({0, 3}, rbx).push({1, 2}, r12).pop({-3, -2}, r12).pop({-2, -1}, rbx),
     "push({1, 2}, r12): E_SAME_BYTES: these bytes are those of push({0, 3}, rbx)\n"},
    {"ThreeInTheSameBytes",
     describe()
         .push({0, 1}, rbx)
         .push({0, 1}, r12)
         .push({0, 1}, r13)
         .pop({-6, -4}, r13)
         .pop({-4, -2}, r12)
         .pop({-2, -1}, rbx),
     "push({0, 1}, r12): E_SAME_BYTES: these bytes are those of push({0, 1}, rbx)\n"
     "push({0, 1}, r13): E_SAME_BYTES: these bytes are those of push({0, 1}, r12)\n"},
    {"SameBytesFromBothEnds", in_47_bytes().push({0, 1}, rbx).deallocate({40, 45}, 0).pop({-6, -1}, rbx),
     "pop({-6, -1}, rbx): E_SAME_BYTES: these bytes are those of deallocate({40, 45}, 0)\n"},
    {"SavedTwice", in_47_bytes().push({0, 1}, rbx).push({3, 4}, rbx).pop({-3, -2}, rbx).pop({-2, -1}, rbx),
     "push({3, 4}, rbx): E_SLOT_TWICE: rbx was saved already, by push({0, 1}, rbx); for any other value of it use "
     "push(at) "
     "or say nothing\n"},
    {"TwoInOneSlot",
     in_47_bytes().allocate({0, 4}, 16).save_at_sp({4, 9}, rbx, 0).save_at_sp({9, 14}, r12, 0).deallocate({-5, -1}, 16),
     "save_at_sp({9, 14}, r12, 0): E_SLOT_TWICE: rbx is in this slot, by save_at_sp({4, 9}, rbx, 0)\n"},
    {"SlotsOverlap",
     in_47_bytes().allocate({0, 4}, 16).save_at_sp({4, 9}, rbx, 0).save_at_sp({9, 14}, r12, 4).deallocate({-5, -1}, 16),
     "save_at_sp({9, 14}, r12, 4): E_SLOT_TWICE: rbx is in this slot, by save_at_sp({4, 9}, rbx, 0)\n"},
    {"PopsSwapped", in_47_bytes().push({0, 1}, rbx).push({1, 3}, r12).pop({-4, -3}, rbx).pop({-3, -1}, r12),
     "pop({-4, -3}, rbx): E_POP_REG: what is there was saved by push({1, 3}, r12); if r12 has its value again, say so "
     "by "
     "reload()\n"
     "pop({-3, -1}, r12): E_POP_REG: what is there was saved by push({0, 1}, rbx); if rbx has its value again, say so "
     "by "
     "reload()\n"},
    {"PopOfWhatWasNotSaved", in_47_bytes().push({0, 1}).pop({-2, -1}, rbx),
     "pop({-2, -1}, rbx): E_POP_REG: rbx was not saved\n"},
    {"TooManyPops", in_47_bytes().push({0, 1}, rbx).pop({-3, -2}, rbx).pop({-2, -1}, rcx),
     "pop({-2, -1}, rcx): E_SP_HIGH: stack pointer raised above its value at entry; behind an early return the frame "
     "is "
     "there again: remember() in front of its epilogue, restore() with its ret\n"
     "region 1, offset +2f: W_UNBALANCED: the last region ends with the frame still allocated\n"},
    {"EarlyReturnNotRemembered",
     in_47_bytes()
         .push({0, 1}, rbx)
         .allocate({1, 5}, 16)
         .deallocate({0x10, 0x14}, 16)
         .pop({0x14, 0x15}, rbx)
         .deallocate({-6, -2}, 16)
         .pop({-2, -1}),
     "deallocate({-6, -2}, 16): E_SP_HIGH: stack pointer raised above its value at entry; behind an early return the "
     "frame "
     "is there again: remember() in front of its epilogue, restore() with its ret\n"
     "region 1, offset +2f: W_UNBALANCED: the last region ends with the frame still allocated\n"},
    {"ReturnAddressSaved", in_47_bytes().push({0, 1}, Reg(16)).pop({-2, -1}),
     "pop({-2, -1}): E_RA_LOST: takes away the return address that push({0, 1}, rip) saved: use pop_return_address(), "
     "or "
     "push(at)\n"},
    {"NoSuchRegister", in_47_bytes().push({0, 1}, Reg(99)).pop({-2, -1}),
     "push({0, 1}, Reg(99)): E_REG: x86-64 has no register with DWARF number 99\n"},
    {"FramePointerNotSaved", in_47_bytes().set_frame_pointer({0, 3}, rbp).restore_sp({-5, -2}, rbp),
     "set_frame_pointer({0, 3}, rbp, 0): E_FP_CLOBBER: frame pointer register overwritten before it is saved\n"},
    {"LeaveWithoutFramePointer", in_47_bytes().push({0, 1}, rbp).leave({-2, -1}),
     "leave({-2, -1}): E_NO_FP: SP can be reloaded only from the frame pointer or its slot\n"},
    {"OddSize", in_47_bytes().allocate({0, 4}, 12).deallocate({-5, -1}, 12),
     "allocate({0, 4}, 12): E_ADD_ALIGN: not a multiple of 8 bytes\n"
     "deallocate({-5, -1}, 12): E_ADD_ALIGN: not a multiple of 8 bytes\n"},
    {"OverTheReturnAddress", in_47_bytes().allocate({0, 4}, 16).save_at_sp({4, 9}, rbx, 16).deallocate({-5, -1}, 16),
     "save_at_sp({4, 9}, rbx, 16): E_SPILL_RA: slot overlaps the return address\n"},
    {"BelowTheRedZone", in_47_bytes().save_at_sp({0, 4}, rbx, -256),
     "save_at_sp({0, 4}, rbx, -256): E_SPILL_LOW: slot at SP-256, red zone 128 bytes\n"},
    {"NothingRemembered", in_47_bytes().push({0, 1}, rbx).pop({5, 6}, rbx).restore({6, 7}),
     "restore(): E_LABEL: nothing was remembered\n"},
    {"MissingPop", in_47_bytes().push({0, 1}, rbx).push({1, 3}, r12).pop({-2, -1}),
     "procedure: W_UNBALANCED: ends with the frame still allocated: is a pop or deallocate missing? If it ends in a "
     "jump "
     "or in a call that does not return, say ends_without_return()\n"},
    {"MissingPopOfTheLatest", in_47_bytes().push({0, 1}, rbx).push({1, 3}, r12).pop({-2, -1}, rbx),
     "pop({-2, -1}, rbx): E_POP_REG: what is there was saved by push({1, 3}, r12); if r12 has its value again, say so "
     "by reload()\n"},
    {"SizeOfTheLastReturnNotSaid", describe().push({0, 1}, rbx).remember().pop({8, 9}, rbx).restore({9, 10}),
     "procedure: W_UNBALANCED: ends with the frame still allocated: is a pop or deallocate missing? If it ends in a "
     "jump or in a call that does not return, say ends_without_return(); if it ends with a restore(), say its "
     "size()\n"},
    {"MissingPops", in_47_bytes().push({0, 1}, rbx),
     "procedure: W_UNBALANCED: ends with the frame still allocated: is a pop or deallocate missing? If it ends in a "
     "jump or in a call that does not return, say ends_without_return()\n"},
    {"PopInPlaceOfTheReturn", in_47_bytes().push({0, 1}, rbx).pop({-1, 0}, rbx),
     "procedure: W_UNBALANCED: ends with the frame still allocated: is a pop or deallocate missing? If it ends in a "
     "jump or in a call that does not return, say ends_without_return()\n"},
    {"PoppedTwice", in_47_bytes().push({0, 1}, rbx).pop({-3, -2}, rbx).pop({-2, -1}, rbx),
     "pop({-2, -1}, rbx): E_POP_REG: rbx has its value again since pop({-3, -2}, rbx); behind an early return the "
     "frame is there again: remember() in front of its epilogue, restore() with its ret\n"},
    {"EarlyReturnOfASavedRegisterNotRemembered",
     in_47_bytes()
         .push({0, 1}, rbx)
         .allocate({1, 5}, 16)
         .deallocate({0x10, 0x14}, 16)
         .pop({0x14, 0x15}, rbx)
         .deallocate({-6, -2}, 16)
         .pop({-2, -1}, rbx),
     "pop({-2, -1}, rbx): E_POP_REG: rbx has its value again since pop({20, 21}, rbx); behind an early return the "
     "frame is there again: remember() in front of its epilogue, restore() with its ret\n"},
    {"ReloadBehindTheReleaseOfTheSlot",
     in_47_bytes()
         .push({0, 1}, rbp)
         .set_frame_pointer({1, 4}, rbp)
         .restore_sp({0x20, 0x24}, rbp, 8)
         .reload({0x24, 0x29}, rbp),
     "reload({36, 41}, rbp): E_POP_REG: rbp counts as given back since restore_sp({32, 36}, rbp, 8), which releases "
     "its "
     "slot; say by row_at() that it is read from below SP; behind an early return the frame is there again: remember() "
     "in front of its epilogue, restore() with its ret\n"},
    {"FramePointerNotSavedAndLeave", in_47_bytes().set_frame_pointer({0, 3}, rbp).leave({-2, -1}),
     "set_frame_pointer({0, 3}, rbp, 0): E_FP_CLOBBER: frame pointer register overwritten before it is saved\n"
     "leave({-2, -1}): E_SP_HIGH: stack pointer raised above its value at entry; behind an early return the frame is "
     "there again: remember() in front of its epilogue, restore() with its ret\n"
     "region 1, offset +2f: W_UNBALANCED: the last region ends with the frame still allocated\n"},
    {"ThreeInTheSameBytesAndOneRelease",
     in_47_bytes().push({0, 1}, rbx).push({0, 1}, r12).push({0, 1}, r13).deallocate({-2, -1}, 24),
     "push({0, 1}, r12): E_SAME_BYTES: these bytes are those of push({0, 1}, rbx)\n"
     "push({0, 1}, r13): E_SAME_BYTES: these bytes are those of push({0, 1}, r12)\n"},
    {"LabelNobodySetAndPopFrames", describe().region(5).add(0, rsp, -8).copy_state(7).region(-5).pop_frames(3, 1),
     "region 0, directive 1 (COPY_STATE 7), offset +0: W_UNSORTED: directives are not in the order of their "
     "instructions\n"
     "region 0, directive 1 (COPY_STATE 7), offset +0: E_LABEL: COPY_STATE of an unknown or later label\n"},
    {"DataThatNobodyReads", in_47_bytes().push({0, 1}, rbx).lsda(0x1234).pop({-2, -1}, rbx),
     "procedure: INVALID_ARGUMENT: lsda() without personality(): nobody would read it\n"},
};

TEST_P(Mistakes, AreNamedInTheirWords) { EXPECT_EQ(what_is_said_of(GetParam()), GetParam().text); }

INSTANTIATE_TEST_SUITE_P(Builders, Mistakes, testing::ValuesIn(k_mistakes), test_name);

// Statements that look like mistakes but are right for some code: the description says what such code does.

const Mistake k_accepted[] = {
    {"ScratchRegisterPushed", in_47_bytes().push({0, 2}, r10).pop({-3, -1}, r10),
     "built\n+0: cfa=rsp+8 ra=[cfa-8]\n+2: cfa=rsp+16 r10=[cfa-16] ra=[cfa-8]\n+2e: cfa=rsp+8 ra=[cfa-8]\n"},
    {"SpPushedAndPopped", in_47_bytes().push({0, 1}, rsp).pop({-2, -1}, rsp),
     "built\n+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 ra=[cfa-8]\n+2e: cfa=rsp+8 ra=[cfa-8]\n"},
    {"SlotAtAnyByte", in_47_bytes().allocate({0, 4}, 16).save_at_sp({4, 9}, rbx, 3).deallocate({-5, -1}, 16),
     "built\n+0: cfa=rsp+8 ra=[cfa-8]\n+4: cfa=rsp+24 ra=[cfa-8]\n+9: cfa=rsp+24 rbx=[cfa-21] ra=[cfa-8]\n"
     "+2e: cfa=rsp+8 ra=[cfa-8]\n"},
    {"RememberedForNothing", in_47_bytes().push({0, 1}, rbx).remember().pop({-2, -1}, rbx),
     "built\n+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+2e: cfa=rsp+8 ra=[cfa-8]\n"},
    {"SeveralInstructionsThatEndInAPush", in_47_bytes().push({0, 32}, rbx).pop({-2, -1}, rbx),
     "built\n+0: cfa=rsp+8 ra=[cfa-8]\n+20: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+2e: cfa=rsp+8 ra=[cfa-8]\n"},
    {"MovedToAScratchRegister", in_47_bytes().move_to({0, 3}, rbx, rax).reload({5, 8}, rbx),
     "built\n+0: cfa=rsp+8 ra=[cfa-8]\n+3: cfa=rsp+8 rbx=rax ra=[cfa-8]\n+8: cfa=rsp+8 ra=[cfa-8]\n"},
    {"ProbedBesideAFramePointer",
     in_47_bytes()
         .push({0, 1}, rbp)
         .set_frame_pointer({1, 4}, rbp)
         .probe_loop({{4, 8}, {8, 12}, {12, 14}, 8192}, r11)
         .deallocate({-8, -4}, 8192)
         .pop({-2, -1}, rbp),
     "built\n+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]\n+4: cfa=rbp+16 rbp=[cfa-16] "
     "ra=[cfa-8]\n+8: cfa=r11+8208 rbp=[cfa-16] ra=[cfa-8]\n+e: cfa=rsp+8208 rbp=[cfa-16] ra=[cfa-8]\n+2b: "
     "cfa=rsp+16 rbp=[cfa-16] ra=[cfa-8]\n+2e: cfa=rsp+8 ra=[cfa-8]\n"},
    {"IdiomsInGivenRegions", describe().region(10).push({0, 1}, rbx).region(-5).pop({-2, -1}, rbx),
     "built\n+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+e: cfa=rsp+8 ra=[cfa-8]\n"},
    {"InForceBeforeTheFirstInstruction", describe().region(0).add(5, rsp, -8).region(-5).add(3, rsp, 8),
     "built\n+0: cfa=rsp+16 ra=[cfa-8]\n+4: cfa=rsp+8 ra=[cfa-8]\n"},
    {"Nothing", describe(), "built\n"},
};

INSTANTIATE_TEST_SUITE_P(ThatAreNone, Mistakes, testing::ValuesIn(k_accepted), test_name);

/// An epilogue that is counted from the start is where it is said to be, whatever the size.
TEST(NoMistakes, EpilogueFromTheStartInCodeOfAnySize) {
  const Description body = describe().push({0, 1}, rbx).pop({5, 6}, rbx).build().value();
  for (const std::uint64_t size : {7u, 47u})
    EXPECT_EQ(body.to_text(size),
              "+0: cfa=rsp+8 ra=[cfa-8]\n+1: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n+6: cfa=rsp+8 ra=[cfa-8]\n");
}

/// Descriptions that resemble the mistakes above but are right.
TEST(NoMistakes, AreTakenForOne) {
  EXPECT_EQ(codes_of(in_47_bytes().push({0, 1}, rsp).pop({-2, -1})), "built");
  EXPECT_EQ(rows_of(in_47_bytes().push({0, 1}, rsp).pop({-2, -1}), 0x2f), R"(
+0: cfa=rsp+8 ra=[cfa-8]
+1: cfa=rsp+16 ra=[cfa-8]
+2e: cfa=rsp+8 ra=[cfa-8]
)");
  // A register that is saved may be used for anything; the one that is popped into may be any that is not kept.
  EXPECT_EQ(codes_of(in_47_bytes().push({0, 1}, rbx).push({3, 4}).pop({5, 6}, rbx).pop({-2, -1}, rbx)), "built");
  EXPECT_EQ(codes_of(in_47_bytes().push({0, 1}, rbx).push({3, 4}).pop({5, 6}, rcx).pop({-2, -1}, rbx)), "built");
  // Here the register is reloaded before its slot is popped; there it is saved anew after it was reloaded, and after
  // its epilogue.
  EXPECT_EQ(codes_of(in_47_bytes().push({0, 1}, rbx).reload({5, 9}, rbx).pop({-2, -1}, rcx)), "built");
  EXPECT_EQ(codes_of(in_47_bytes().push({0, 1}, rbx).pop({5, 6}, rbx).push({7, 8}, rbx).pop({-2, -1}, rbx)), "built");
  EXPECT_EQ(codes_of(in_47_bytes().push({0, 1}, rbx).remember().pop({5, 6}, rbx).restore({6, 7}).pop({-2, -1}, rbx)),
            "built");
  EXPECT_EQ(codes_of(in_47_bytes().pop({-2, -1}, rbx).push({0, 1}, rbx)), "built") << "told in another order";
  EXPECT_EQ(codes_of(in_47_bytes().pop_return_address({-4, -3}, rcx)), "built") << "ends above where it began";
}

TEST(Mistakes, OfSizesNameBoth) {
  const Description fixed = in_47_bytes().push({0, 1}, rbx).pop({-2, -1}, rbx).build().value();
  EXPECT_STREQ(fixed.check_size(0x30).error().what, "described for 47 bytes, registered with 48");
  const Description any = describe().push({0, 1}, rbx).pop({-2, -1}, rbx).build().value();
  EXPECT_STREQ(any.check_size(1).error().what, "what is described takes 3 bytes, more than 1");
  const auto at_null = register_code(any, Code{0, 16});
  ASSERT_FALSE(at_null);
  EXPECT_EQ(at_null.error().text(), "code that starts at a null pointer (e_range)");
}

/// The code itself is not read, so it may be anywhere.
TEST(Mistakes, OfRegistrations) {
  const Description any = describe().push({0, 1}, rbx).pop({-2, -1}, rbx).build().value();
  const Description fixed = in_47_bytes().push({0, 1}, rbx).pop({-2, -1}, rbx).build().value();
  const Description other_cpu = aarch64::describe().build().value();
  struct Case {
    const Description& description;
    Code code;
    const char* text;
  };
  const Case cases[] = {
      {any, {0x1000, 0}, "procedure without code (e_range)"},
      {any, {0x1000, 1}, "what is described takes 3 bytes, more than 1 (e_overlap, at 0x1)"},
      {any, {0x1000, ~std::uint64_t{0}}, "code range wraps around (e_range, at 0x1000)"},
      {any, {~Addr{0} - 8, 47}, "code range wraps around (e_range, at 0xfffffffffffffff7)"},
      {any, {0, 47}, "code that starts at a null pointer (e_range)"},
      {fixed, {0x1000, 48}, "described for 47 bytes, registered with 48 (e_range, at 0x30)"},
      {other_cpu, {0x1000, 48}, "described for another CPU than this process runs on (invalid_argument, at 0x1000)"},
      {any, {0x1000, 47}, "registered"},                 // where nothing is mapped
      {any, {0x1234'5678'1234'5678, 47}, "registered"},  // no canonical address
      {any, {0x1000, std::uint64_t{1} << 63}, "registered"},
  };
  for (const Case& one : cases) {
    const auto live = register_code(one.description, one.code);
    EXPECT_EQ(live ? "registered" : live.error().text(), one.text);
  }
}

/// A name ends with its first NUL. Everything else is the author's choice, who may mangle it.
TEST(NoMistakes, OfNames) {
  using namespace std::string_literals;
  const std::pair<std::string, std::string> names[] = {
      {"", ""},
      {"a\x01\x1b[31mred\n\xff", "a\x01\x1b[31mred\n\xff"},
      {"ab\0cd"s, "ab"},
      {std::string(1 << 20, 'x'), std::string(1 << 20, 'x')},
      {"_ZN3foo3barEv", "_ZN3foo3barEv"},
      {"_Z", "_Z"},
      {"\xce\xbb", "\xce\xbb"},
  };
  for (const auto& [given, kept] : names) {
    const auto live = register_code(describe(given).build().value(), Code{0x1000, 16});
    ASSERT_TRUE(live);
    const auto* const name = reinterpret_cast<const char*>(live->info()->u.pi.name_ptr);
    EXPECT_EQ(name == nullptr ? "" : std::string(name), kept);
  }
}

TEST(Mistakes, EndWhoUsesAFailedBuild) {
  const auto failed = describe().leave({0, 1}).build();
  ASSERT_FALSE(failed);
  const char* const text = "leave\\(\\{0, 1\\}\\): E_NO_FP: SP can be reloaded only from the frame pointer or its slot";
  EXPECT_DEATH((void)*failed, text);
  EXPECT_DEATH((void)failed->name(), text);
  EXPECT_DEATH((void)failed.value(), text);
}

}  // namespace
}  // namespace jitunwind
