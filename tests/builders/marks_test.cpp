// Marks: what their registrations own, what walks find, and what is refused, at once or at a look-up.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "jitunwind/builders/registration.h"
#include "tests/builders/described.h"
#include "tests/builders/registered_code.h"
#include "tests/support/counted_allocations.h"

namespace jitunwind {
namespace {

using namespace x86_64;

// Addresses that no code of this process has, so that only registrations know them.
constexpr Addr k_code = 0x7a00'0000'0000;

const test::RegisteredCode k_registered;

/// One way to say things to both kinds of builders.
template <class Recorder>
void say_two_returns(Recorder& b) {
  b.push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).push({4, 5}, rbx).allocate({5, 9}, 24);
  b.remember().deallocate({20, 24}, 24).pop({24, 25}, rbx).pop({25, 26}, rbp).restore({26, 27});
  b.deallocate({-7, -3}, 24).pop({-3, -2}, rbx).pop({-2, -1}, rbp);
}

/// Returns the rows of a registered procedure, in the form of Description::to_text(), or an error.
std::string rows_of(const Registration& live) {
  const AddrRange range = live.range();
  std::string text, last;
  for (Addr at = range.begin; at != range.end; ++at) {
    const std::string row = k_registered.row_at(at);
    if (row != last) text += "+" + std::to_string(at - range.begin) + ": " + row + "\n";
    last = row;
  }
  return text;
}

/// Compares the rows of marks with those of build(). Both are registered, in turn.
template <class Say>
void expect_same_rows(const char* what, Say say, std::uint64_t size) {
  Builder builder;
  say(builder);
  const auto built = builder.build();
  ASSERT_TRUE(built) << what << "\n" << built.error().text();
  const auto described = register_code(*built, {.start = k_code, .size = size});
  ASSERT_TRUE(described) << what << ": " << described.error().text();
  const std::string expected = rows_of(*described);
  Marks marks;
  say(marks);
  const auto marked = register_code(marks, {.start = k_code, .size = size});
  ASSERT_TRUE(marked) << what << ": " << marked.error().text();
  EXPECT_EQ(rows_of(*marked), expected) << what;
  EXPECT_EQ(expected.find("error"), std::string::npos) << what << "\n" << expected;
}

#define EXPECT_SAME_ROWS(size, ...) \
  expect_same_rows(                 \
      #__VA_ARGS__, [](auto& b) { b.__VA_ARGS__; }, size)

std::string refused(Marks& marks, const Code& code) {
  const auto live = register_code(marks, code);
  return live ? "registered" : error_name(live.error().code) + (": " + std::string(live.error().what));
}

// Random procedures are in random_frames_test.cpp; these are the idioms and directives that they do not have.
TEST(Marks, HaveTheRowsOfBuild) {
  expect_same_rows(
      "two returns", [](auto& b) { say_two_returns(b); }, 64);
  EXPECT_SAME_ROWS(32, ends_without_return());
  EXPECT_SAME_ROWS(32, move_to({0, 3}, rbx, r8).reload({8, 11}, rbx).ends_without_return());
  EXPECT_SAME_ROWS(32, push({0, 1}, rbp)
                           .set_frame_pointer({1, 6}, rbp, 8)
                           .move_frame_pointer({6, 9}, rbp, -8)
                           .restore_sp({-5, -2}, rbp)
                           .pop({-2, -1}, rbp));
  EXPECT_SAME_ROWS(
      64,
      set_frame_pointer({0, 3}, rax).allocate({3, 7}, 96).realign({7, 11}).store_sp({11, 16}, 64).reload_sp({-6, -1}));
  EXPECT_SAME_ROWS(64, probe_loop({.bound = {0, 8}, .first_step = {8, 15}, .back = {20, 22}, .bytes = 65536}, r11)
                           .deallocate({-8, -1}, 65536));
  EXPECT_SAME_ROWS(
      32, add(0, rsp, -8).spill_sp_rel(0, rbx, 0).label_state(7).add(9, rsp, 8).copy_state(12, 7).add(30, rsp, 8));
  EXPECT_SAME_ROWS(32, push({0, 1}, rbp).save_reg(3, rsp, rbp).spill_fp_rel(6, rbx, -8).ends_without_return());
  // Labels of remember() and of directives do not meet.
  EXPECT_SAME_ROWS(32, push({0, 1}, rbx)
                           .label_state(1, 1)
                           .remember()
                           .pop({4, 5}, rbx)
                           .restore({5, 6})
                           .push({6, 7})
                           .copy_state(9, 1)
                           .pop({-2, -1}, rbx));
}

/// Traces, on-stack replacements and cold parts: the frame of other code, and what the code itself does to it.
TEST(Marks, BeginWithAFrameThatIsBuiltElsewhere) {
  EXPECT_SAME_ROWS(16, entry_state("cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]").ends_without_return());
  EXPECT_SAME_ROWS(16, entry_state("cfa=rsp+24 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]")
                           .allocate({0, 4}, 16)
                           .deallocate({-6, -3}, 16)
                           .pop({-3, -2}, rbx)
                           .pop({-2, -1}, rbp));
  EXPECT_SAME_ROWS(16, entry_state("cfa=rbp+16 rbx=[cfa-24] rbp=[cfa-16] ra=[cfa-8]", 24)
                           .remember()
                           .pop({4, 5}, rbx)
                           .pop({5, 6}, rbp)
                           .restore({6, 7})
                           .pop({-3, -2}, rbx)
                           .pop({-2, -1}, rbp));
  EXPECT_SAME_ROWS(16, entry_state("cfa=[rsp+64]+16 rbx=[cfa-16] ra=[cfa-8]").push({0, 1}).ends_without_return());
  EXPECT_SAME_ROWS(16, entry_state("cfa=rbp+16 rbx=[rsp+24] rbp=[cfa-16] ra=[cfa-8]").ends_without_return());
  EXPECT_SAME_ROWS(16, personality(0x5000).lsda(0x6000).entry_state("cfa=rsp ra=rcx").ends_without_return());
  Marks marks;
  marks.entry_state("cfa=rsp+32 ra=[cfa-8]");
  Marks copy = marks;
  for (Marks* each : {&copy, &marks}) {
    const auto live = register_code(*each, {.start = k_code, .size = 16});
    ASSERT_TRUE(live);
    EXPECT_EQ(rows_of(*live), "+0: dyn_directives: cfa=rsp+32 ra=[cfa-8]\n");
    EXPECT_TRUE(validate(*live->info(), arch::x86_64, {.ends_without_return = true}).empty());
  }
}

TEST(Marks, AreRefusedWithAnEntryStateThatTheyCannotHave) {
  const Code code{.start = k_code, .size = 16};
  Marks marks;
  EXPECT_EQ(refused(marks.push({0, 1}).entry_state("cfa=rsp+8 ra=[cfa-8]"), code),
            "invalid_argument: entry_state() must come first");
  EXPECT_EQ(refused(marks.entry_state("cfa=rsp+16 ra=[cfa-8]").entry_state("cfa=rsp+8 ra=[cfa-8]"), code),
            "invalid_argument: entry_state() must come first");
  EXPECT_EQ(refused(marks.entry_state("cfa=[rbp-8] ra=[cfa-8]"), code),
            "invalid_argument: directives have no such CFA rule");
  EXPECT_EQ(refused(marks.entry_state("cfa=rsp+16 rbx=undefined ra=[cfa-8]"), code),
            "invalid_argument: directives cannot say this row");
  const std::string unreadable = refused(marks.entry_state("cfa=rsp+16 ra"), code);
  ExpressionPool pool;
  EXPECT_EQ(unreadable,
            "invalid_argument: " + std::string(parse_row("cfa=rsp+16 ra", arch::x86_64, pool).error().what));
  {
    const test::NoMemory none;
    marks.entry_state("cfa=rsp+16 ra=[cfa-8]");
  }
  EXPECT_EQ(refused(marks, code), "out_of_memory: no memory for the entry state");
  EXPECT_EQ(refused(marks, code), "registered");
}

TEST(Marks, CostOneAllocationAndNoneWhileRecording) {
  const std::size_t before = test::allocations();
  Marks marks;
  say_two_returns(marks);
  EXPECT_EQ(test::allocations(), before);
  const auto one = register_code(marks, {.start = k_code, .size = 64});
  EXPECT_EQ(test::allocations(), before + 1);
  say_two_returns(marks.personality(0x5000).lsda(0x6000));
  const auto two = register_code(marks, {.start = k_code + 64, .size = 64, .name = "with a name"});
  EXPECT_EQ(test::allocations(), before + 2);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->bytes(), sizeof(unw_dyn_info_t) + 24 + _U_dyn_region_info_size(14));
  EXPECT_EQ(two->bytes(), one->bytes() + 48 + sizeof "with a name");
  EXPECT_EQ(rows_of(*one), rows_of(*two));
}

TEST(Marks, GrowBeyondTheirFirstMemory) {
  constexpr int k_many = 200;
  const auto say = [](auto& b) {
    for (int i = 0; i < k_many; ++i) b.push({2 * i, 2 * i + 1}).pop({2 * i + 1, 2 * i + 2});
  };
  expect_same_rows("many", say, 2 * k_many + 1);
  Marks marks;
  say(marks);
  {
    const test::NoMemory none;
    for (int i = 0; i < 2 * k_many; ++i) marks.push({0, 1});
  }
  EXPECT_EQ(refused(marks, {.start = k_code, .size = 4096}), "out_of_memory: no memory for more directives");
  const std::size_t before = test::allocations();
  say(marks);
  EXPECT_EQ(test::allocations(), before) << "memory is kept for the next procedure";
}

TEST(Marks, CarryTheFactsOfTheProcedure) {
  Marks marks;
  const auto live = register_code(marks.personality(0x5000).lsda(0x6000).gp(0x7000),
                                  {.start = k_code, .size = 16, .name = "marked", .user = &marks});
  ASSERT_TRUE(live);
  const auto info = k_registered.procedure_at(k_code + 1);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->handler, 0x5000u);
  EXPECT_EQ(info->lsda, 0x6000u);
  EXPECT_EQ(info->user, reinterpret_cast<std::uintptr_t>(&marks));
  EXPECT_EQ(live->info()->gp, 0x7000u);
  EXPECT_EQ(k_registered.name_at(k_code), "marked");
  // Nothing of it is left for the next procedure.
  const auto next = register_code(marks, {.start = k_code + 16, .size = 32, .lsda = 0x8000, .landing_pad_base = 9});
  ASSERT_TRUE(next);
  EXPECT_EQ(next->info()->u.pi.handler, 0u);
  EXPECT_EQ(next->info()->gp, 0u);
  EXPECT_EQ(lsda_extension(*next->info()).lsda, 0x8000u);
  EXPECT_EQ(lsda_extension(*next->info()).landing_pad_base, 9u);
  EXPECT_TRUE(validate(*next->info(), arch::x86_64).empty());
}

TEST(Marks, OfACopyAreIndependent) {
  Marks marks;
  marks.push({0, 1}, rbx);
  Marks copy = marks;
  copy.push({1, 2}, rbp);
  const auto one = register_code(marks, {.start = k_code, .size = 16});
  const auto other = register_code(copy, {.start = k_code + 16, .size = 16});
  ASSERT_TRUE(one && other);
  EXPECT_EQ(rows_of(*one),
            "+0: dyn_directives: cfa=rsp+8 ra=[cfa-8]\n+1: dyn_directives: cfa=rsp+16 rbx=[cfa-16] ra=[cfa-8]\n");
  EXPECT_EQ(k_registered.row_at(k_code + 20), "dyn_directives: cfa=rsp+24 rbx=[cfa-16] rbp=[cfa-24] ra=[cfa-8]");
}

TEST(Marks, AreRefusedAtOnceWhereTheyHaveNoPlaceOrRegister) {
  const Code code{.start = k_code, .size = 16};
  const auto refused_at_16 = [&](auto say) {
    Marks marks;
    say(marks);
    return refused(marks, code);
  };
  EXPECT_EQ(refused_at_16([](auto& b) { b.push({16, 17}); }), "e_when: behind the end of the procedure");
  EXPECT_EQ(refused_at_16([](auto& b) { b.add(16, rsp, -8); }), "e_when: behind the end of the procedure");
  EXPECT_EQ(refused_at_16([](auto& b) { b.pop({-17, -16}); }), "e_when: in front of the procedure");
  EXPECT_EQ(refused_at_16([](auto& b) { b.pop({-1, 1}); }), "e_when: reaches across the end of the procedure");
  EXPECT_EQ(refused_at_16([](auto& b) { b.pop({2, 2}); }), "e_range: no bytes between begin and end");
  EXPECT_EQ(refused_at_16([](auto& b) { b.pop({2, std::int64_t{1} << 32}); }), "e_range: code offset beyond 2 GiB");
  EXPECT_EQ(refused_at_16([](auto& b) {
              b.push({8, 9}).pop({-9, -8});
            }),
            "e_overlap: offsets from the end lie in front of offsets from the start");
  EXPECT_EQ(refused_at_16([](auto& b) {
              b.push({0, 1}, Reg(99));
            }),
            "e_reg: no such register, or none that directives can name");
  EXPECT_EQ(refused_at_16([](auto& b) {
              b.move_to({0, 1}, rbx, Reg(0xffff));
            }),
            "e_reg: no such register, or none that directives can name");
  EXPECT_EQ(refused_at_16([](auto& b) { b.restore({0, 1}); }), "e_label: restore(): nothing was remembered");
  EXPECT_EQ(refused_at_16([](auto& b) { b.size(17); }), "e_range: described for another size");
  EXPECT_EQ(refused_at_16([](auto& b) {
              for (int i = 0; i < 65537; ++i) b.push({0, 1});
            }),
            "too_deep: more directives than one region holds; build() makes several");
  Marks marks;
  EXPECT_EQ(refused(marks, {.start = k_code, .size = 0}), "e_range: size 0, or not a multiple of the instruction unit");
  EXPECT_EQ(refused(marks, {.start = 0, .size = 16}), "e_range: code that starts at a null pointer");
  EXPECT_EQ(refused(marks, {.start = ~Addr{0} - 10, .size = 16}), "e_range: code range wraps around");
  aarch64::Marks of_other_cpu;
  const auto other = register_code(of_other_cpu, code);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::invalid_argument);
  {
    const test::NoMemory none;
    EXPECT_EQ(register_code(marks, code).error().code, ErrorCode::out_of_memory);
  }
  // The first mistake is reported, and forgotten with the rest.
  marks.pop({2, 2}).restore({0, 1});
  EXPECT_EQ(refused(marks, code), "e_range: no bytes between begin and end");
  EXPECT_EQ(refused(marks, code), "registered");
  EXPECT_EQ(k_registered.row_at(k_code + 1), "no row");
}

TEST(Marks, ThatBuildWouldRefuseEndALookUpWithTheReason) {
  const auto expect_reason = [](ErrorCode reason, auto say) {
    Builder builder;
    say(builder);
    EXPECT_NE(codes_of(builder.size(16)).find(error_name(reason)), std::string::npos) << codes_of(builder);
    Marks marks;
    say(marks);
    const auto live = register_code(marks, {.start = k_code, .size = 16});
    ASSERT_TRUE(live) << live.error().text();
    FrameRow row;
    const Status found =
        directive_row(*live->info(), arch::x86_64, CodeAddress::interrupted(k_code + 15), nullptr, row);
    ASSERT_FALSE(found) << error_name(reason);
    EXPECT_EQ(found.error().code, reason) << found.error().text();
    EXPECT_EQ(k_registered.row_at(k_code + 15), std::string("error: ") + found.error().what);
    const auto findings = validate(*live->info(), arch::x86_64);
    EXPECT_EQ(std::ranges::count(findings, reason, &Finding::code), 1) << error_name(reason);
  };
  expect_reason(ErrorCode::e_no_fp, [](auto& b) { b.save_at_fp({0, 1}, rbx, -8); });
  expect_reason(ErrorCode::e_sp_high, [](auto& b) { b.deallocate({0, 1}, 8); });
  expect_reason(ErrorCode::e_sp_lost, [](auto& b) { b.realign({0, 4}); });
  expect_reason(ErrorCode::e_add_reg, [](auto& b) { b.move_frame_pointer({0, 4}, rbx, 8); });
  expect_reason(ErrorCode::e_label, [](auto& b) { b.copy_state(3); });
  expect_reason(ErrorCode::e_reg, [](auto& b) { b.move_to({0, 4}, rbx, rip); });
}

}  // namespace
}  // namespace jitunwind
