// Wrong marks, of the kinds that JIT authors made. Registering takes them without a word. The check names each that the
// code shows; JITUNWIND_CHECK refuses the others too, by the sentence of build().
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/builders/registers_x86_64.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/dyn_info/check_procedure.h"
#include "jitunwind/dyn_info/registry/registration_checks_internal.h"
#include "tests/builders/placed_eh_frame.h"
#include "tests/support/counted_allocations.h"

extern "C" void __register_frame(const void*);
extern "C" void __deregister_frame(const void*);

namespace jitunwind::test {
namespace {

using namespace x86_64;

struct Wrong {
  const char* mistake;
  std::vector<unsigned char> code;
  void (*say)(Marks&);
  const char* finding;
};

// push rbx; nop; pop rbx; ret
const std::vector<unsigned char> k_saves{0x53, 0x90, 0x5b, 0xc3};
// push rbx; test edi,edi; je +9; pop rbx; ret; pop rbx; ret
const std::vector<unsigned char> k_returns_early{0x53, 0x85, 0xff, 0x74, 0x02, 0x5b, 0xc3, 0x5b, 0xc3};
// push rbp; mov rbp,rsp; sub rsp,16; lea rsp,[rbp+8]; mov rbp,[rsp-8]; ret
const std::vector<unsigned char> k_reloads_late{0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0x48,
                                                0x8d, 0x65, 0x08, 0x48, 0x8b, 0x6c, 0x24, 0xf8, 0xc3};
// sub rsp,16; add rsp,16; ret
const std::vector<unsigned char> k_allocates{0x48, 0x83, 0xec, 0x10, 0x48, 0x83, 0xc4, 0x10, 0xc3};

const std::vector<Wrong> k_wrong{
    {"nothing is said", k_saves, [](Marks&) {}, "+0x1: the row says cfa=rsp+8, but rsp is cfa-16, since"},
    {"no epilogue", k_saves,
     [](Marks& f) {
       f.push({0, 1}, rbx);
     },
     "+0x3: the row says cfa=rsp+16, but rsp is cfa-8, since"},
    {"no prologue", k_saves,
     [](Marks& f) {
       f.pop({2, 3}, rbx);
     },
     "+0x1: the row says cfa=rsp+8, but rsp is cfa-16, since"},
    {"another register", k_saves,
     [](Marks& f) {
       f.push({0, 1}, rbp).pop({2, 3}, rbp);
     },
     "+0x1: the row says rbp=[cfa-16], but that word holds the caller's rbx, since"},
    {"a byte too late", k_saves,
     [](Marks& f) {
       f.push({1, 2}, rbx).pop({2, 3}, rbx);
     },
     "+0x1: the row says cfa=rsp+8, but rsp is cfa-16, since"},
    {"another size", k_allocates,
     [](Marks& f) {
       f.allocate({0, 4}, 8).deallocate({4, 8}, 8);
     },
     "+0x4: the row says cfa=rsp+16, but rsp is cfa-24, since"},
    {"no remember()", k_returns_early,
     [](Marks& f) {
       f.push({0, 1}, rbx).pop({5, 6}, rbx).pop({7, 8}, rbx);
     },
     "+0x7: the row says cfa=rsp+8, but rsp is cfa-16, since"},
    {"a reload behind the release", k_reloads_late,
     [](Marks& f) {
       f.push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).allocate({4, 8}, 16).restore_sp({8, 12}, rbp, 8);
     },
     "+0xc: the row says rbp=same, but rbp is cfa-16, since"},
};

TEST(WrongMarks, AreTakenAndNamedByTheCheck) {
  for (const Wrong& wrong : k_wrong) {
    SCOPED_TRACE(wrong.mistake);
    const Addr start = reinterpret_cast<std::uintptr_t>(wrong.code.data());
    Marks marks;
    wrong.say(marks);
    const auto live = register_code(marks, Code{.start = start, .size = wrong.code.size()});
    ASSERT_TRUE(live);
    const CheckReport report = check(*live->info());
    EXPECT_EQ(report.verdict, Verdict::disagrees);
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(text(report.findings.front(), arch::x86_64, start).rfind(wrong.finding, 0), 0u)
        << text(report.findings.front(), arch::x86_64, start);
  }
}

/// The slot that is released counts until the register is loaded from it.
TEST(WrongMarks, SayTheReloadBehindTheRelease) {
  Marks marks;
  marks.push({0, 1}, rbp).set_frame_pointer({1, 4}, rbp).allocate({4, 8}, 16).restore_sp({8, 12}, rbp, 8);
  marks.spill_sp_rel(11, rbp, -8).reload({12, 17}, rbp);
  const Addr start = reinterpret_cast<std::uintptr_t>(k_reloads_late.data());
  const auto live = register_code(marks, Code{.start = start, .size = k_reloads_late.size()});
  ASSERT_TRUE(live);
  EXPECT_EQ(check(*live->info()).verdict, Verdict::agrees);
}

/// JITUNWIND_CHECK=refuse while it exists, as if the environment had it.
class Refusing {
 public:
  Refusing() { add_to_log_words(k_check_refuses); }
  ~Refusing() { __atomic_fetch_and(&log_topics, ~k_check_refuses, __ATOMIC_RELAXED); }
  Refusing(const Refusing&) = delete;

  /// Registers at an address without code, so that only what is said can be judged, unless there are `bytes`. Returns
  /// the error and the line that tells it, without the range.
  template <class Said>
  std::string refusal(Said& said, const std::vector<unsigned char>& bytes = {}) {
    const Addr start = bytes.empty() ? Addr{0x7a00'0000'0000} : reinterpret_cast<std::uintptr_t>(bytes.data());
    const Code code{.start = start, .size = bytes.empty() ? 64 : bytes.size()};
    testing::internal::CaptureStderr();
    const auto live = register_code(said, code);
    const std::string line = testing::internal::GetCapturedStderr();
    if (live) return "registered";
    const std::string told = line.empty() ? "told before" : line.substr(line.find(' ', line.find("0x")) + 1);
    return std::string(error_name(live.error().code)) + ": " + told;
  }
};

/// Says the same to marks and to a builder, and expects the refusal to be the finding of build().
template <class Say>
void expect_refusal_of_build(const std::string& finding, Say say) {
  SCOPED_TRACE(finding);
  Refusing refusing;
  Marks marks;
  say(marks);
  Builder builder;
  say(builder.size(64));
  const auto built = builder.build();
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().findings.front().text().rfind(finding, 0), 0u) << built.error().text();
  const Finding& first = built.error().findings.front();
  EXPECT_EQ(refusing.refusal(marks), error_name(first.code) + (": " + first.text() + "\n"));
  EXPECT_EQ(refusing.refusal(marks), "registered") << "marks are forgotten, mistakes with them";
}

TEST(WrongMarks, AreRefusedByTheSentenceOfBuild) {
  expect_refusal_of_build("deallocate({8, 12}, 8): E_SP_HIGH: ", [](auto& f) {
    f.push({0, 1}, rbp).deallocate({4, 8}, 8).deallocate({8, 12}, 8);
  });
  expect_refusal_of_build("pop({8, 9}, rbx): E_POP_REG: rbx was not saved", [](auto& f) {
    f.push({0, 1}, rbp).deallocate({4, 8}, 8).pop({8, 9}, rbx);
  });
  expect_refusal_of_build("pop({8, 9}, rbp): E_POP_REG: what is there was saved by push({1, 2}, rbx)", [](auto& f) {
    f.push({0, 1}, rbp).push({1, 2}, rbx).pop({8, 9}, rbp).pop({9, 10}, rbx);
  });
  expect_refusal_of_build("set_frame_pointer({1, 4}, rbp, 0): E_FP_CLOBBER: ", [](auto& f) {
    f.push({0, 1}).set_frame_pointer({1, 4}, rbp).leave({8, 9});
  });
  expect_refusal_of_build("procedure: W_UNBALANCED: ends with the frame still allocated", [](auto& f) {
    f.push({0, 1}, rbx);
  });
  expect_refusal_of_build("save_at_sp({4, 9}, rbx, 0): E_SLOT_TWICE: rbp is in this slot", [](auto& f) {
    f.push({0, 1}, rbp).save_at_sp({4, 9}, rbx, 0).pop({9, 10}, rbp);
  });
  expect_refusal_of_build("push({0, 2}, rbx): E_SAME_BYTES: ", [](auto& f) {
    f.push({0, 1}, rbp).push({0, 2}, rbx).pop({8, 9}, rbx).pop({9, 10}, rbp);
  });
  expect_refusal_of_build("procedure: INVALID_ARGUMENT: lsda() without personality()", [](auto& f) { f.lsda(0x6000); });
  // Directives without an idiom have no text of their own.
  expect_refusal_of_build("region 0, directive 0 (ADD rsp,8 @0), offset +1: E_SP_HIGH: ",
                          [](auto& f) { f.add(0, rsp, 8); });
}

/// A description that walks cannot read, and no builder has made.
TEST(WrongMarks, AreRefusedInADescriptorOfOnesOwn) {
  Refusing refusing;
  Marks marks;
  marks.deallocate({0, 4}, 8);
  std::array<std::byte, 256> memory{};
  auto* const region = reinterpret_cast<unw_dyn_region_info_t*>(memory.data());
  ASSERT_TRUE(marks.recorder().settle(16));
  region->insn_count = marks.recorder().insn_count();
  region->op_count = static_cast<std::uint32_t>(marks.recorder().ops().size());
  std::ranges::copy(marks.recorder().ops(), region->op);
  unw_dyn_info_t info{};
  info.start_ip = 0x7a00'0000'0000;
  info.end_ip = info.start_ip + 16;
  info.u.pi.regions = region;
  testing::internal::CaptureStderr();
  const Status registered = register_procedure(&info);
  const std::string line = testing::internal::GetCapturedStderr();
  ASSERT_FALSE(registered);
  EXPECT_EQ(registered.error().code, ErrorCode::e_sp_high);
  EXPECT_EQ(registered.error().at, info.start_ip + 4);
  EXPECT_NE(line.find(" region 0, directive 0 (ADD rsp,8 @3), offset +4: E_SP_HIGH: "), std::string::npos) << line;
}

// push rbx; nop; pop rbx; ret; int3; int3; nop
const std::vector<unsigned char> k_padded{0x53, 0x90, 0x5b, 0xc3, 0xcc, 0xcc, 0x90};
// push rbx; pop rbx; jmp to itself; nop
const std::vector<unsigned char> k_endless{0x53, 0x5b, 0xeb, 0xfe, 0x90};

TEST(WrongMarks, AreRefusedWhereTheRangeTakesPaddingAlong) {
  Refusing refusing;
  Marks marks;
  marks.push({0, 1}, rbx).pop({2, 3}, rbx);
  EXPECT_EQ(refusing.refusal(marks, k_padded),
            "code_disagrees: +0x4: nothing but padding up to the end of the range, 3 bytes\n");
  marks.push({0, 1}, rbx).pop({1, 2}, rbx);
  EXPECT_EQ(refusing.refusal(marks, k_endless),
            "code_disagrees: +0x4: nothing but padding up to the end of the range, 1 bytes\n");
  marks.push({0, 1}, rbx).pop({2, 3}, rbx);
  EXPECT_EQ(refusing.refusal(marks, k_saves), "registered");
  // Offsets from such an end are beside their instructions.
  marks.push({0, 1}, rbx).pop({-2, -1}, rbx);
  EXPECT_EQ(refusing.refusal(marks, k_padded).rfind("code_disagrees: +0x3: the row says cfa=rsp+16", 0), 0u);
}

/// The first wrong row stands behind more places that cannot be decided than a report has findings.
TEST(WrongMarks, AreRefusedBehindManyUndecidedPlaces) {
  constexpr std::size_t k_undecided = 2 * CheckReport::k_most_findings;
  // test edi,edi; je to the push; jmp rax; data that ret follows; push rbx; pop rbx; ret
  std::vector<unsigned char> code{0x85, 0xff, 0x0f, 0x84, 2 * k_undecided % 256 + 2, 2 * k_undecided / 256,
                                  0,    0,    0xff, 0xe0};
  for (std::size_t i = 0; i < k_undecided; ++i) code.insert(code.end(), {0x06, 0xc3});
  code.insert(code.end(), {0x53, 0x5b, 0xc3});
  Refusing refusing;
  Marks marks;
  EXPECT_EQ(refusing.refusal(marks, code),
            "code_disagrees: +0x10b: the row says cfa=rsp+8, but rsp is cfa-16, since the instruction at +0x10a\n");
}

/// The bytes of `code`, up to a multiple of 16 with padding, and those of `more`.
std::vector<unsigned char> followed_by(std::vector<unsigned char> code, std::initializer_list<unsigned char> more) {
  code.resize((code.size() + 15) / 16 * 16, 0xcc);
  code.insert(code.end(), more);
  return code;
}

TEST(WrongMarks, AreRefusedWhereTheRangeTakesAnotherFunctionOrAPltAlong) {
  Refusing refusing;
  const auto refusal_of = [&](const std::vector<unsigned char>& code) {
    Marks marks;
    marks.push({0, 1}, rbx).pop({1, 2}, rbx);
    return refusing.refusal(marks, code);
  };
  const std::vector<unsigned char> own{0x53, 0x5b, 0xc3};  // push rbx; pop rbx; ret
  const auto refusal_behind_restore = [&](std::initializer_list<unsigned char> more) {
    Marks marks;
    marks.push({0, 1}, rbx).remember().pop({1, 2}, rbx).restore({2, 3}).ends_without_return();
    return refusing.refusal(marks, followed_by(own, more));
  };
  const auto told = [](const char* bytes) {
    return "code_disagrees: +0x10: nothing leads to the code from here up to the end of the range, and its rows are "
           "not "
           "right there, as where another function or a PLT is taken along, " +
           std::string(bytes) + " bytes\n";
  };
  // push rbp; mov rbp,rsp; pop rbp; ret
  EXPECT_EQ(refusal_of(followed_by(own, {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3})), told("6"));
  // sub rsp,8; add rsp,8; ret
  EXPECT_EQ(refusal_behind_restore({0x48, 0x83, 0xec, 8, 0x48, 0x83, 0xc4, 8, 0xc3}), told("9"));
  // Dead code of the procedure: pop rbx; ret. push rax; call rax.
  EXPECT_EQ(refusal_behind_restore({0x5b, 0xc3}), "registered");
  EXPECT_EQ(refusal_behind_restore({0x50, 0xff, 0xd0}), "registered");
  // A PLT: push [rip+8]; jmp [rip+16]; nop. jmp [rip+16]; push 0; jmp to its begin.
  EXPECT_EQ(refusal_of(followed_by(own, {0xff, 0x35, 8,  0, 0, 0, 0xff, 0x25, 16, 0, 0, 0,    0x0f, 0x1f, 0x40, 0,
                                         0xff, 0x25, 16, 0, 0, 0, 0x68, 0,    0,  0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff})),
            told("32"));
  // endbr64; jmp [rip+16]; nop
  EXPECT_EQ(
      refusal_of(followed_by(own, {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 16, 0, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0, 0})),
      told("16"));
  // A leaf, for which the rows are right, and numbers: 1.0, 2.0.
  EXPECT_EQ(refusal_of(followed_by(own, {0x89, 0xf8, 0xc3})), "registered");
  EXPECT_EQ(refusal_of(followed_by(own, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40})), "registered");
}

/// Behind the ud2 nothing leads to the epilogue, whose rows nobody has said.
TEST(WrongMarks, AreNotThoseOfADeadEpilogue) {
  Refusing refusing;
  Marks marks;
  marks.push({0, 1}, rbx).ends_without_return();
  EXPECT_EQ(refusing.refusal(marks, {0x53, 0xff, 0xd0, 0x0f, 0x0b, 0x5b, 0xc3}), "registered");
}

/// Code that is entered from outside has rows of its own.
TEST(WrongMarks, AreNotThoseOfAPartWithASecondEntry) {
  Refusing refusing;
  Marks marks;
  marks.push({0, 1}, rbx).pop({1, 2}, rbx).push({16, 17}, rbp).pop({17, 18}, rbp);
  EXPECT_EQ(refusing.refusal(marks, followed_by({0x53, 0x5b, 0xc3}, {0x55, 0x5d, 0xc3})), "registered");
}

/// Marks that are right stay so, in copies as well.
TEST(WrongMarks, AreNotThoseOfRightCode) {
  Refusing refusing;
  Marks marks;
  marks.push({0, 1}, rbx).remember().pop({5, 6}, rbx).restore({6, 7}).pop({7, 8}, rbx);
  Marks copy = marks;
  EXPECT_EQ(refusing.refusal(marks, k_returns_early), "registered");
  EXPECT_EQ(refusing.refusal(copy, k_returns_early), "registered");
  marks.push({0, 1}, rbx).call({1, 2}).ends_without_return();
  EXPECT_EQ(refusing.refusal(marks), "registered");
}

// push rbx; xor eax,eax; pop rbx; ret
const std::vector<unsigned char> k_zero{0x53, 0x31, 0xc0, 0x5b, 0xc3};
// push rbx; xor eax,eax; nop; ret
const std::vector<unsigned char> k_forgets{0x53, 0x31, 0xc0, 0x90, 0xc3};

/// Only both together have passed: neither other code with this description, nor this code with another one.
TEST(CheckedCode, IsComparedOnceForEachPairOfCodeAndDescription) {
  Refusing refusing;
  const auto right = describe().push({0, 1}, rbx).pop({3, 4}, rbx).build();
  const auto wrong = describe().push({0, 1}, rbp).pop({3, 4}, rbp).build();
  const std::vector<unsigned char> copy = k_zero;
  const auto registered = [](const Description& description, const std::vector<unsigned char>& bytes) {
    const std::size_t before = allocations();
    const auto live = register_code(description, bytes.data(), bytes.size());
    return live ? std::optional(allocations() - before) : std::nullopt;
  };
  EXPECT_GT(registered(*right, k_zero), std::size_t{1});
  EXPECT_EQ(registered(*right, copy), std::size_t{1});
  EXPECT_FALSE(registered(*wrong, copy));
  EXPECT_FALSE(registered(*right, k_forgets));
  EXPECT_FALSE(registered(*wrong, copy)) << "what has not passed is compared again";
}

/// An FDE is compared once for each pair, too, wherever it is told.
TEST(CheckedCode, IsComparedOnceIfItIsTold) {
  Refusing refusing;
  const Bytes right{0x41, 0x0e, 16, 0x83, 2, 0x43, 0x0e, 8, 0xc3}, wrong{0x41, 0x0e, 16, 0x83, 3, 0x43, 0x0e, 8, 0xc3};
  const auto told = [&](const Bytes& instructions, std::span<const unsigned char> bytes) {
    EhFrame frame;
    (void)frame.section.fde(frame.cie(), reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size(), instructions);
    frame.section.terminator();
    const auto* const at = reinterpret_cast<const void*>(frame.placed().begin);
    const std::size_t before = allocations();
    __register_frame(at);
    const std::size_t made = allocations() - before;
    __deregister_frame(at);
    return made;
  };
  std::vector<unsigned char> twice = k_zero;
  twice.insert(twice.end(), k_zero.begin(), k_zero.end());
  const std::span first = std::span(twice).first(k_zero.size()), second = std::span(twice).last(k_zero.size());
  EXPECT_GT(told(right, first), 0u);
  EXPECT_EQ(told(right, second), 0u);
  EXPECT_GT(told(right, k_forgets), 0u);
  EXPECT_GT(told(wrong, first), 0u);
  // DW_CFA_set_loc has an address.
  const Bytes to_second = Bytes{0x01}
                              .u64(reinterpret_cast<std::uintptr_t>(second.data()) + 1)
                              .add({0x0e, 16, 0x83, 2, 0x43, 0x0e, 8, 0xc3});
  EXPECT_GT(told(to_second, second), 0u);
  EXPECT_GT(told(to_second, first), 0u) << "no row begins in it";
}

/// Procedures that are registered together are compared once for each distance: they may jump to each other.
TEST(CheckedCode, IsComparedOnceIfItIsRegisteredTogether) {
  Refusing refusing;
  const auto description = describe().push({0, 1}, rbx).pop({3, 4}, rbx).build();
  ASSERT_TRUE(description);
  std::vector<unsigned char> memory(64, 0xcc);
  const auto registered = [&](std::size_t first, std::size_t second) {
    std::ranges::copy(k_zero, memory.begin() + static_cast<std::ptrdiff_t>(first));
    std::ranges::copy(k_zero, memory.begin() + static_cast<std::ptrdiff_t>(second));
    const auto code = [&](std::size_t at) {
      return Code{.start = reinterpret_cast<std::uintptr_t>(&memory[at]), .size = k_zero.size()};
    };
    const std::array<RegistrationBatch::Item, 2> items{{{&*description, code(first)}, {&*description, code(second)}}};
    RegistrationBatch batch;
    const std::size_t before = allocations();
    return batch.register_code(items) ? std::optional(allocations() - before) : std::nullopt;
  };
  const std::optional<std::size_t> compared = registered(0, 16);
  EXPECT_LT(registered(16, 32), compared);
  EXPECT_EQ(registered(0, 32), compared);
}

/// Code that is too long to be followed is not read.
TEST(CheckedCode, IsNotReadIfItIsNotFollowed) {
  constexpr std::size_t k_size = 4 * k_most_checked_code;
  void* const code = ::mmap(nullptr, k_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  const auto faults = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  Refusing refusing;
  const auto description = describe().build();
  const long before = faults();
  EXPECT_TRUE(register_code(*description, code, k_size));
  EXPECT_LT(faults() - before, 256) << "of " << k_size / 4096 << " pages";
  ::munmap(code, k_size);
}

}  // namespace
}  // namespace jitunwind::test
