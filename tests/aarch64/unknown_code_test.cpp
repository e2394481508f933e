// Walks from every instruction of compiled code whose call frame information is not asked, against walks by that: each
// instruction is a breakpoint until it was met often enough.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/walk/cursor.h"

using Helper = std::int64_t (*)(std::int64_t);

#define JUDGED(variant)                          \
  extern "C" std::int64_t run_##variant(Helper); \
  extern "C" std::uint32_t __start_##variant[];  \
  extern "C" std::uint32_t __stop_##variant[];
#include "compiled_variants.def"
#undef JUDGED

namespace jitunwind::test {
namespace {

std::int64_t helper(std::int64_t x) { return x / 2 + 1; }

Addr addr_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

/// Knows everything that this process knows of its code, except for some of it.
class OtherSources final : public RowSource {
 public:
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    if (hidden.contains(lookup.at.lookup())) return false;
    return local_space().find_row(lookup, out);
  }

  AddrRange hidden{};
};

struct Counts {
  std::size_t walks = 0;
  std::size_t complete = 0;  ///< that left the code
  std::size_t frames = 0;    ///< that were guessed, and are right
  std::size_t wrong = 0;
  std::size_t with_registers = 0;  ///< of these frames, with all that calls preserve
  std::array<std::string, 5> first_wrong{};
};

class Judge {
 public:
  void walk(const void* ucontext) {
    Cursor right(local_space(), ucontext, Cursor::Top::interrupted);
    Cursor guessed(space_, ucontext, Cursor::Top::interrupted);
    ++counts.walks;
    for (Addr at = right.pc(); sources_.hidden.contains(at); at = right.pc() - 1) {
      FrameRow row, guess;
      const bool has_row = bool(right.find_row(row)), has_guess = bool(guessed.find_row(guess));
      const auto moved = right.step(), moved_by_guess = guessed.step();
      if (!moved_by_guess || !*moved_by_guess) return;
      const std::string difference = !has_row || !has_guess || !moved || !*moved ? "no frame" : compare(right, guessed);
      if (!difference.empty() || row.rule(k_arch.sign_state) != guess.rule(k_arch.sign_state))
        return note(difference, row, guess);
      ++counts.frames;
    }
    ++counts.complete;
  }

  void hide(AddrRange code) { sources_.hidden = code; }
  Counts counts{};

 private:
  std::string compare(const Cursor& right, const Cursor& guessed) {
    if (right.pc() != guessed.pc()) return "pc";
    if (right.sp() != guessed.sp()) return "SP";
    bool has_all = true;
    for (const RegisterInfo& reg : k_arch.registers) {
      if (!reg.preserved) continue;
      const auto value = guessed.get(reg.dwarf), wanted = right.get(reg.dwarf);
      has_all = has_all && (value || !wanted);
      if (value && (!wanted || *value != *wanted)) return reg.name;
    }
    counts.with_registers += has_all;
    return {};
  }
  void note(const std::string& what, const FrameRow& row, const FrameRow& guess) {
    if (counts.wrong < counts.first_wrong.size())
      counts.first_wrong[counts.wrong] = what + ": " + to_text(row, k_arch) + ", guessed: " + to_text(guess, k_arch);
    ++counts.wrong;
  }

  const Arch& k_arch = local_space().arch;
  OtherSources sources_;
  std::array<const RowSource*, 1> rows_{&sources_};
  AddressSpace space_{
      k_arch,  local_space().memory, local_space().modules, rows_, {}, nullptr, local_space().guess_sources,
      nullptr, local_space().keys};
};

/// Makes code stop at each of its instructions, a given number of times, while this exists.
class Breakpoints {
 public:
  Breakpoints(std::span<std::uint32_t> code, int times, Judge& judge)
      : code_(code), original_(code.begin(), code.end()), left_(code.size(), times), judge_(judge) {
    const Addr begin = page_of(addr_of(code.data()));
    const Addr end = addr_of(code.data() + code.size());
    EXPECT_EQ(::mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    current_ = this;
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t*, void* ucontext) { current_->stop(static_cast<ucontext_t*>(ucontext)); };
    ::sigaction(SIGTRAP, &action, &before_);
    arm(code.size());
  }
  ~Breakpoints() {
    write(original_);
    ::sigaction(SIGTRAP, &before_, nullptr);
  }

 private:
  void stop(ucontext_t* ucontext) {
    const std::size_t at = (ucontext->uc_mcontext.pc - addr_of(code_.data())) / sizeof(std::uint32_t);
    write(original_);
    judge_.walk(ucontext);
    --left_.at(at);
    arm(at);
  }
  /// Arms all breakpoints but one, at which the code continues.
  void arm(std::size_t but) {
    constexpr std::uint32_t k_brk = 0xd420'0000;
    std::vector<std::uint32_t> armed = original_;
    for (std::size_t i = 0; i < armed.size(); ++i)
      if (i != but && left_[i] > 0) armed[i] = k_brk;
    write(armed);
  }
  void write(const std::vector<std::uint32_t>& words) {
    std::ranges::copy(words, code_.begin());
    __builtin___clear_cache(reinterpret_cast<char*>(code_.data()),
                            reinterpret_cast<char*>(code_.data() + code_.size()));
  }

  static inline Breakpoints* current_ = nullptr;
  std::span<std::uint32_t> code_;
  const std::vector<std::uint32_t> original_;
  std::vector<int> left_;
  Judge& judge_;
  struct sigaction before_ {};
};

struct Variant {
  const char* name;
  std::int64_t (*run)();  ///< by a direct call
  std::uint32_t* begin;
  std::uint32_t* end;
};
constexpr Variant k_variants[] = {
#define JUDGED(variant) {#variant, [] { return run_##variant(&helper) + 0; }, __start_##variant, __stop_##variant},
#include "compiled_variants.def"
#undef JUDGED
};

class UnknownA64Code : public testing::TestWithParam<Variant> {};

// covers: LU20 RG14
TEST_P(UnknownA64Code, HasNoWrongCaller) {
  const Variant& variant = GetParam();
  const std::int64_t expected = variant.run();
  Judge judge;
  judge.hide({addr_of(variant.begin), addr_of(variant.end)});
  {
    constexpr int k_times = 3;
    const Breakpoints stops({variant.begin, variant.end}, k_times, judge);
    EXPECT_EQ(variant.run(), expected);
  }
  const Counts& counts = judge.counts;
  std::printf("%s: %zu walks, %zu complete, %zu frames, %zu with all registers, %zu wrong\n", variant.name,
              counts.walks, counts.complete, counts.frames, counts.with_registers, counts.wrong);
  EXPECT_EQ(counts.wrong, 0u) << testing::PrintToString(counts.first_wrong);
  EXPECT_GT(counts.walks, 400u);
  EXPECT_GT(counts.complete, counts.walks * 9 / 10);
  EXPECT_GT(counts.with_registers, counts.frames * 9 / 10);
}

INSTANTIATE_TEST_SUITE_P(Variants, UnknownA64Code, testing::ValuesIn(k_variants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace jitunwind::test
