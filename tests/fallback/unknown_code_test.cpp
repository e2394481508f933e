// Walks from every instruction of code that has no unwind information, and of what it calls, against the stack of calls
// that the instructions have made: whatever a walk returns is a caller, and who says that a stack is complete has all
// of it.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <libunwind.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "jitunwind/adapters/testing/instruction_p.h"
#include "jitunwind/builders/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/walk.h"
#include "tests/registry/every_instruction.h"

using Helper = std::int64_t (*)(std::int64_t);

#define UNKNOWN(variant)                          \
  extern "C" std::int64_t run_##variant(Helper);  \
  extern "C" const std::byte __start_##variant[]; \
  extern "C" const std::byte __stop_##variant[];
#include "tests/fallback/data/unknown_code.def"
#undef UNKNOWN

extern "C" std::int64_t unknown_all(Helper helper, std::int64_t n, void* end_of_other_stack);
extern "C" const std::byte __start_unknown_code[];
extern "C" const std::byte __stop_unknown_code[];
extern "C" const std::uint32_t unknown_starts[];
extern "C" const std::uint32_t unknown_starts_end[];

namespace jitunwind::test {
using namespace stepping;
namespace {

Addr addr_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// Addresses, innermost first. Of fixed size: it is filled in signal handlers.
class Addresses {
 public:
  void add(Addr at) {
    if (count_ != list_.size()) list_[count_++] = at;
  }
  void clear() { count_ = 0; }
  std::span<const Addr> all() const { return {list_.data(), count_}; }

 private:
  std::array<Addr, 256> list_;
  std::size_t count_ = 0;
};

/// Calls that were made and have not returned, as the instructions tell.
class Calls {
 public:
  /// Before the instruction at pc is executed.
  void follow(Addr pc, Addr sp) {
    while (count_ != 0 && calls_[count_ - 1].slot < sp) --count_;
    // A call of what comes next, for its own address, is no call.
    const bool was_called = next_.slot != 0 && sp == next_.slot && pc != next_.return_address;
    if (was_called && count_ != calls_.size()) calls_[count_++] = next_;
    const auto* const code = reinterpret_cast<const std::byte*>(pc);
    const auto instruction = decode_instruction({code, k_max_instruction_bytes});
    is_call_ = instruction && instruction->flow == stepping::MachineInstruction::Flow::call;
    next_ = is_call_ ? Call{pc + instruction->length, sp - sizeof(Addr)} : Call{};
  }
  bool empty() const { return count_ == 0; }
  bool is_call() const { return is_call_; }
  /// Of the code at pc; `outer`: callers of the code that the calls began in.
  void list(Addr pc, std::span<const Addr> outer, Addresses& out) const {
    out.clear();
    out.add(pc);
    for (std::size_t i = count_; i != 0; --i) out.add(calls_[i - 1].return_address);
    for (const Addr caller : outer) out.add(caller);
  }

 private:
  struct Call {
    Addr return_address = 0;
    Addr slot = 0;
  };
  std::array<Call, 200> calls_;
  std::size_t count_ = 0;
  Call next_{};
  bool is_call_ = false;
};

/// How many walks of one kind went how.
struct Figures {
  std::size_t complete = 0;  ///< and right
  std::size_t early = 0;     ///< right as far as they go
  std::size_t wrong = 0;
  Addr first_wrong_at = 0;
  std::size_t first_wrong_frame = 0;

  void add(std::span<const Addr> truth, std::span<const Addr> walk, bool says_complete) {
    const std::size_t common = std::min(truth.size(), walk.size());
    const auto difference =
        std::mismatch(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(common), walk.begin());
    const auto right = static_cast<std::size_t>(difference.first - truth.begin());
    if (right == walk.size() && right == truth.size() && says_complete)
      ++complete;
    else if (right == walk.size() && !says_complete)
      ++early;
    else if (wrong++ == 0)
      first_wrong_at = truth[0], first_wrong_frame = right;
  }
  std::string text(const char* name) const {
    std::array<char, 200> line;
    const std::size_t all = complete + early + wrong;
    std::snprintf(line.data(), line.size(), "%s: %zu walks, %.1f %% complete, %zu wrong", name, all,
                  all == 0 ? 0 : 100.0 * static_cast<double>(complete) / static_cast<double>(all), wrong);
    return line.data();
  }
};

struct Scene {
  Calls calls;
  Addresses outer;  ///< callers of the code that is watched
  Addresses truth;
  Addresses walk;
  Figures steps, listed, by_libunwind, through_signal, bold;
  std::size_t wrong_and_unmarked = 0;  ///< bold walks with a wrong frame behind none that says it is a guess
};

bool walk_by_steps(Walk walk, Addresses& out) {
  out.clear();
  for (const Frame& frame : walk) out.add(frame.pc());
  return walk.stop_reason() == StopReason::outermost;
}

void judge_steps(Scene& scene, const ucontext_t& at) {
  const bool whole = walk_by_steps(walk_interrupted(&at), scene.walk);
  scene.steps.add(scene.truth.all(), scene.walk.all(), whole);
}

/// Lists say nothing of their end: they are complete where steps are.
void judge_lists(Scene& scene, const ucontext_t& at) {
  const bool whole = walk_by_steps(walk_interrupted(&at), scene.walk);
  std::array<void*, 256> list;
  const std::size_t count = backtrace(&at, Cursor::Top::interrupted, list);
  scene.walk.clear();
  for (std::size_t i = 0; i < count; ++i) scene.walk.add(addr_of(list[i]));
  scene.listed.add(scene.truth.all(), scene.walk.all(), whole);
}

void judge_libunwind(Scene& scene, const ucontext_t& at) {
  unw_cursor_t cursor;
  unw_init_local2(&cursor, const_cast<ucontext_t*>(&at), UNW_INIT_SIGNAL_FRAME);
  scene.walk.clear();
  int moved = 0;
  do {
    unw_word_t ip = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &ip);
    scene.walk.add(ip);
  } while ((moved = unw_step(&cursor)) > 0);
  scene.by_libunwind.add(scene.truth.all(), scene.walk.all(), moved == 0);
}

/// From the handler, whose own frames come first.
void judge_through_signal(Scene& scene) {
  Addresses all;
  const bool whole = walk_by_steps(walk_here(), all);
  const auto pc = std::ranges::find(all.all(), scene.truth.all()[0]);
  scene.walk.clear();
  for (auto at = pc; at != all.all().end(); ++at) scene.walk.add(*at);
  scene.through_signal.add(scene.truth.all(), scene.walk.all(), whole);
}

void judge_bold(Scene& scene, const ucontext_t& at) {
  bool marked = false, whole = false;
  scene.walk.clear();
  Walk walk = walk_interrupted(&at, Guesses::bold);
  const auto truth = scene.truth.all();
  std::size_t i = 0;
  for (const Frame& frame : walk) {
    const bool wrong = i >= truth.size() || frame.pc() != truth[i];
    if (wrong && !marked) ++scene.wrong_and_unmarked;
    if (wrong) marked = true;  // counted once
    marked = marked || frame.is_guess();
    scene.walk.add(frame.pc());
    ++i;
  }
  whole = walk.stop_reason() == StopReason::outermost;
  scene.bold.add(truth, scene.walk.all(), whole);
}

void judge(void* argument) {
  Scene& scene = *static_cast<Scene*>(argument);
  const ucontext_t& at = *registry_test::EveryInstruction::interrupted();
  const auto pc = static_cast<Addr>(at.uc_mcontext.gregs[REG_RIP]);
  scene.calls.follow(pc, static_cast<Addr>(at.uc_mcontext.gregs[REG_RSP]));
  if (scene.calls.empty()) {
    // Code of this program, which has unwind information: what it calls has its callers behind it.
    if (!scene.calls.is_call()) return;
    (void)walk_by_steps(walk_interrupted(&at), scene.walk);
    scene.outer.clear();
    for (const Addr caller : scene.walk.all().subspan(1)) scene.outer.add(caller);
    return;
  }
  scene.calls.list(pc, scene.outer.all(), scene.truth);
  judge_steps(scene, at);
  judge_lists(scene, at);
  judge_libunwind(scene, at);
  judge_through_signal(scene);
  judge_bold(scene, at);
}

/// Their callers, by another unwinder: libgcc's, which glibc asks.
[[gnu::noinline]] bool ends_as_libgcc_says(std::span<const Addr> callers) {
  std::array<void*, 128> list;
  const int count = ::backtrace(list.data(), static_cast<int>(list.size()));
  std::size_t same = 0;
  for (int i = count; i != 0 && same < callers.size(); --i, ++same)
    if (addr_of(list[static_cast<std::size_t>(i - 1)]) != callers[callers.size() - 1 - same]) break;
  return same >= 3;  // main() and what called it
}

struct Expected {
  double complete;  ///< at least so much of the walks by steps, 0 to 1
};

void expect_right(const char* name, const std::function<void()>& code, Expected expected) {
  static Scene scene;
  scene = {};
  registry_test::EveryInstruction every;
  const std::size_t instructions = every.run(&judge, &scene, code);
  EXPECT_GT(instructions, 500u);
  const auto walks = [](const Figures& f) { return f.complete + f.early + f.wrong; };
  EXPECT_GT(walks(scene.steps), instructions / 2);
  EXPECT_TRUE(ends_as_libgcc_says(scene.outer.all()));
  struct Way {
    const char* name;
    const Figures& figures;
  };
  for (const Way& way : {Way{"steps", scene.steps}, Way{"backtrace()", scene.listed},
                         Way{"unw_step", scene.by_libunwind}, Way{"from the handler", scene.through_signal}}) {
    EXPECT_EQ(way.figures.wrong, 0u) << way.name << ": frame " << way.figures.first_wrong_frame << " of a walk from "
                                     << std::hex << way.figures.first_wrong_at;
    EXPECT_EQ(walks(way.figures), walks(scene.steps)) << way.name;
    EXPECT_EQ(way.figures.complete, scene.steps.complete) << way.name;
  }
  EXPECT_GE(static_cast<double>(scene.steps.complete), expected.complete * static_cast<double>(walks(scene.steps)));
  EXPECT_EQ(scene.wrong_and_unmarked, 0u);
  std::printf("%s: %s; %s\n", name, scene.steps.text("steps").c_str(), scene.bold.text("bold").c_str());
}

std::int64_t helper(std::int64_t x) { return x / 2 + 1; }

alignas(64) std::array<std::byte, 64 << 10> g_other_stack;
void* end_of_other_stack() { return g_other_stack.data() + g_other_stack.size(); }

/// Keeps calls from becoming jumps.
volatile std::int64_t g_sum = 0;

// covers: LU20
TEST(UnknownCode, WrittenByHandHasNoWrongCaller) {
  expect_right("written by hand",
               [] {
                 for (std::int64_t n = 0; n < 4; ++n) g_sum = g_sum + unknown_all(&helper, n, end_of_other_stack());
               },
               {0.5});
}

// covers: LU20
TEST(UnknownCode, CalledByAPointerHasNoWrongCaller) {
  std::int64_t (*volatile call)(Helper, std::int64_t, void*) = &unknown_all;
  expect_right("called by a pointer",
               [&] {
                 for (std::int64_t n = 0; n < 4; ++n) g_sum = g_sum + call(&helper, n, end_of_other_stack());
               },
               {0});
}

/// A copy of the code that is written by hand, in memory of its own.
class CopiedCode {
 public:
  CopiedCode() : memory_(::mmap(nullptr, k_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) std::abort();
    std::memcpy(memory_, __start_unknown_code, k_size);
    if (::mprotect(memory_, k_size, PROT_READ | PROT_EXEC) != 0) std::abort();
  }
  ~CopiedCode() { ::munmap(memory_, k_size); }
  CopiedCode(const CopiedCode&) = delete;
  CopiedCode& operator=(const CopiedCode&) = delete;

  Addr begin() const { return addr_of(memory_); }
  decltype(&unknown_all) all() const {
    const Addr offset = addr_of(reinterpret_cast<const void*>(&unknown_all)) - addr_of(__start_unknown_code);
    return reinterpret_cast<decltype(&unknown_all)>(begin() + offset);
  }

 private:
  const std::size_t k_size = static_cast<std::size_t>(__stop_unknown_code - __start_unknown_code);
  void* const memory_;
};

void expect_right_in(const char* name, const CopiedCode& code, Expected expected) {
  const volatile auto call = code.all();  // by memory: no register tells later where the call went
  const auto run = [&] {
    for (std::int64_t n = 0; n < 4; ++n) g_sum = g_sum + call(&helper, n, end_of_other_stack());
  };
  expect_right(name, run, expected);
}

// covers: LU20
TEST(UnknownCode, MadeAtRunTimeHasNoWrongCaller) { expect_right_in("made at run time", CopiedCode(), {0}); }

/// Somebody told where each procedure begins and ends, and nothing else: those that are called by a pointer have
/// callers, too. Pieces of an interpreter have names as well, and none.
TEST(UnknownCode, WhoseNamesAreKnownHasNoWrongCaller) {
  const CopiedCode code;
  std::vector<unw_dyn_info_t> named;
  for (const std::uint32_t* start = unknown_starts; start + 1 != unknown_starts_end; ++start)
    named.push_back(procedure_of_fde({code.begin() + start[0], code.begin() + start[1]}, 0, addr_of("named")));
  for (unw_dyn_info_t& info : named) ASSERT_TRUE(register_procedure(&info));
  expect_right_in("names alone", code, {0.5});
  for (unw_dyn_info_t& info : named) ASSERT_TRUE(cancel_procedure(&info));
}

struct Variant {
  const char* name;
  void (*run)();
};

constexpr Variant k_variants[] = {
#define UNKNOWN(variant) {#variant, [] { g_sum = g_sum + run_##variant(&helper); }},
#include "tests/fallback/data/unknown_code.def"
#undef UNKNOWN
};

class CompiledUnknownCode : public testing::TestWithParam<Variant> {};

// covers: LU20
TEST_P(CompiledUnknownCode, HasNoWrongCaller) { expect_right(GetParam().name, GetParam().run, {0.5}); }

INSTANTIATE_TEST_SUITE_P(Variants, CompiledUnknownCode, testing::ValuesIn(k_variants),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace jitunwind::test
