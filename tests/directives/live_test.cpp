// The code of the row cases is copied into executable memory, registered, and run instruction by instruction: the
// engine's caller is the true one at each.
#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <memory>

#include "jitunwind/adapters/testing/single_step_p.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/walk.h"
#include "tests/rows/row_case.h"

extern "C" const std::byte live_code[], live_code_end[];
#define LIVE_SYMBOLS(X)              \
  X(example1)                        \
  X(clone)                           \
  X(example2)                        \
  X(example4_body_11)                \
  X(example4_body_17)                \
  X(example4_no_body)                \
  X(alloca)                          \
  X(leave)                           \
  X(enter)                           \
  X(realigned_without_frame_pointer) \
  X(realigned_with_saves)            \
  X(whole_probe_loop)                \
  X(endbr64)                         \
  X(callee_pops_arguments)           \
  X(return_through_register)         \
  X(tail_call_with_more_arguments)   \
  X(tail_call_with_fewer_arguments)  \
  X(call_on_another_stack)           \
  X(red_zone_save)                   \
  X(call_in_the_prologue)            \
  X(data_between_code)               \
  X(two_entry_points) X(hot_part) X(cold_part_of_it) X(interpreted_loop) X(replaced_loop) X(owned_frame_pointer)
#define DECLARE(name) extern "C" const std::byte live_##name[], live_##name##_end[];
LIVE_SYMBOLS(DECLARE)
#undef DECLARE
extern "C" const std::byte live_with_two_words[], live_keeping_rbp[], live_second_entry_point[], live_plain[];

namespace jitunwind::test {
using namespace stepping;
namespace {

struct Symbol {
  const std::byte* begin;
  const std::byte* end;
};
const std::map<std::string, Symbol> k_symbols{
#define ENTRY(name) {#name, {live_##name, live_##name##_end}},
    LIVE_SYMBOLS(ENTRY)
#undef ENTRY
};

/// The code at another address, where nothing static describes it.
class Code {
 public:
  Code() : size_(static_cast<std::size_t>(live_code_end - live_code)) {
    memory_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memcpy(memory_, live_code, size_);
    mprotect(memory_, size_, PROT_READ | PROT_EXEC);
  }
  ~Code() { munmap(memory_, size_); }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  Addr address(const std::byte* symbol) const {
    return reinterpret_cast<std::uintptr_t>(memory_) + static_cast<Addr>(symbol - live_code);
  }
  template <class... Args>
  long call(const std::byte* symbol, Args... args) const {
    return reinterpret_cast<long (*)(Args...)>(address(symbol))(args...);
  }

 private:
  std::size_t size_;
  std::byte* memory_;
};

/// One case registered for a symbol.
class LiveProcedure {
 public:
  LiveProcedure(const Code& code, const std::string& file, const std::string& name, const std::string& symbol) {
    const Symbol& s = k_symbols.at(symbol);
    range = {code.address(s.begin), code.address(s.end)};
    const auto cases = rows::load_cases(file);
    for (const rows::RowCase& c : cases->cases) {
      if (c.name != name) continue;
      EXPECT_EQ(c.range.size(), range.size()) << name;
      procedure_ = std::make_unique<rows::CaseProcedure>(c.regions, range);
    }
    info_ = procedure_ ? procedure_->info() : unw_dyn_info_t{};
    EXPECT_TRUE(register_procedure(&info_)) << name;
  }
  LiveProcedure(const Code& code, const std::string& symbol, std::vector<rows::CaseRegion> regions) {
    const Symbol& s = k_symbols.at(symbol);
    range = {code.address(s.begin), code.address(s.end)};
    procedure_ = std::make_unique<rows::CaseProcedure>(regions, range);
    info_ = procedure_->info();
    EXPECT_TRUE(register_procedure(&info_));
  }
  ~LiveProcedure() { EXPECT_TRUE(cancel_procedure(&info_)); }

  AddrRange range;

 private:
  std::unique_ptr<rows::CaseProcedure> procedure_;
  unw_dyn_info_t info_{};
};

class LiveDirectives : public testing::Test {
 protected:
  void expect_true_callers(std::initializer_list<const LiveProcedure*> procedures, const std::function<int()>& body,
                           std::uint64_t calls, const SingleStepOptions& options = {}) {
    std::vector<SteppedCode> stepped;
    for (const LiveProcedure* p : procedures) stepped.push_back({"code", p->range});
    const SingleStepJudge judge{"directives", {&dyn_row_source()}};
    const SingleStepRun run = single_step(stepped, body, std::span(&judge, 1), options);
    EXPECT_TRUE(run.ok()) << run.text();
    EXPECT_EQ(run.reports[0].after_calls, calls);
    instructions += run.reports[0].instructions;
  }
  void expect_case(const char* file, const char* name, const char* symbol, const std::function<int()>& body,
                   std::uint64_t calls = 0) {
    SCOPED_TRACE(name);
    const LiveProcedure procedure(code, file, name, symbol);
    expect_true_callers({&procedure}, body, calls);
  }

  Code code;
  std::uint64_t instructions = 0;
};

constexpr const char* k_worked = "worked_examples.case";
constexpr const char* k_further = "further_rows.case";
constexpr const char* k_hard = "hard_frames.case";
constexpr const char* k_live = "live.case";

// covers: DY16 DY28 DY34
TEST_F(LiveDirectives, WorkedExamples) {
  for (const char* spelling : {"example1_one_region", "example1_three_regions", "example1_coarse", "example1_any_order",
                               "example1_labels", "example1_first_bytes", "example1_allocated"})
    expect_case(
        k_worked, spelling, "example1",
        [&] { return code.call(live_example1, 0L) == 0 && code.call(live_example1, 7L) == 12 ? 0 : 1; }, 1);
  for (const char* spelling : {"example2_add", "example2_pop_frames"})
    expect_case(
        k_worked, spelling, "example2", [&] { return code.call(live_example2, 7L) == 12 ? 0 : 1; }, 1);
  expect_case(k_worked, "example4_body_11", "example4_body_11", [&] { return code.call(live_example4_body_11) - 5; });
  expect_case(k_worked, "example4_body_17", "example4_body_17", [&] { return code.call(live_example4_body_17) - 5; });
  expect_case(k_worked, "example4_no_body", "example4_no_body", [&] { return code.call(live_example4_no_body), 0; });
  // 7 x (12 + 14), 2 x 6, 11, 12 and 8 instructions.
  EXPECT_EQ(instructions, 7u * 26 + 2 * 6 + 11 + 12 + 8);
}

// covers: DY55 DY56
TEST_F(LiveDirectives, UnknownStackPointers) {
  expect_case(
      k_further, "alloca", "alloca", [&] { return code.call(live_alloca, 160L) - 5; }, 1);
  expect_case(k_further, "realigned_without_frame_pointer", "realigned_without_frame_pointer",
              [&] { return code.call(live_realigned_without_frame_pointer), 0; });
  expect_case(
      k_live, "realigned_with_saves", "realigned_with_saves", [&] { return code.call(live_realigned_with_saves) - 5; },
      1);
  expect_case(k_live, "whole_probe_loop", "whole_probe_loop", [&] { return code.call(live_whole_probe_loop), 0; });
}

TEST_F(LiveDirectives, PrologueAndEpilogueForms) {
  expect_case(k_further, "leave", "leave", [&] { return code.call(live_leave), 0; });
  expect_case(k_further, "enter", "enter", [&] { return code.call(live_enter), 0; });
  expect_case(k_further, "endbr64", "endbr64", [&] { return code.call(live_endbr64), 0; });
  expect_case(
      k_further, "callee_pops_arguments", "callee_pops_arguments",
      [&] { return code.call(live_callee_pops_arguments) - 5; }, 1);
  expect_case(
      k_hard, "call_in_the_prologue", "call_in_the_prologue",
      [&] { return code.call(live_call_in_the_prologue, 64L) - 5; }, 1);
  expect_case(k_hard, "red_zone_save", "red_zone_save", [&] { return code.call(live_red_zone_save), 0; });
  expect_case(k_hard, "data_between_code", "data_between_code", [&] { return code.call(live_data_between_code), 0; });
  expect_case(k_hard, "two_entry_points", "two_entry_points",
              [&] { return code.call(live_two_entry_points), code.call(live_second_entry_point), 0; });
}

TEST_F(LiveDirectives, ReturnAddressesThatMove) {
  const auto with_two_words = [&](const std::byte* symbol) {
    return code.call(live_with_two_words, code.address(symbol));
  };
  expect_case(k_hard, "return_through_register", "return_through_register",
              [&] { return with_two_words(live_return_through_register), 0; });
  expect_case(k_hard, "tail_call_with_more_arguments", "tail_call_with_more_arguments",
              [&] { return code.call(live_tail_call_with_more_arguments, 3L) - 5; });
  expect_case(k_hard, "tail_call_with_fewer_arguments", "tail_call_with_fewer_arguments",
              [&] { return with_two_words(live_tail_call_with_fewer_arguments) - 5; });
}

TEST_F(LiveDirectives, FramesBuiltElsewhere) {
  const LiveProcedure hot(code, k_live, "hot_part", "hot_part");
  const LiveProcedure cold(code, k_live, "cold_part_of_it", "cold_part_of_it");
  expect_true_callers(
      {&hot, &cold}, [&] { return code.call(live_hot_part, 3L) - 5; }, 1);
  const LiveProcedure interpreted(code, k_live, "interpreted_loop", "interpreted_loop");
  const LiveProcedure replaced(code, k_live, "replaced_loop", "replaced_loop");
  expect_true_callers(
      {&interpreted, &replaced}, [&] { return code.call(live_interpreted_loop, 192L) - 5; }, 1);
}

TEST_F(LiveDirectives, ClonedCode) {
  const LiveProcedure original(code, k_worked, "example1_one_region", "example1");
  const rows::CaseRegion alias{static_cast<std::int32_t>(original.range.size()),
                               {_U_dyn_op(UNW_DYN_ALIAS, 0, -1, 0, original.range.begin)},
                               0,
                               -1};
  const LiveProcedure clone(code, "clone", {alias});
  expect_true_callers(
      {&clone}, [&] { return code.call(live_clone, 0L) == 0 && code.call(live_clone, 7L) == 12 ? 0 : 1; }, 1);
}

/// The row says that the caller's rbp is lost; everything else is right.
TEST_F(LiveDirectives, FramePointerThatIsNotSaved) {
  const LiveProcedure procedure(code, k_live, "owned_frame_pointer", "owned_frame_pointer");
  SingleStepOptions options;
  options.preserved = {3, 12, 13, 14, 15};
  expect_true_callers(
      {&procedure}, [&] { return code.call(live_keeping_rbp, code.address(live_owned_frame_pointer)) - 5; }, 1,
      options);
}

/// A walk from a stack that lies below or above the stack from which the thread has changed to it.
struct OtherStack {
  const Code* code;
  AddrRange judged;
  std::byte* top;
  bool own_stack_is_lower = false;
  std::vector<Addr> pcs;
  StopReason stop = StopReason::none;
};
thread_local OtherStack* walked;

void walk_from_here() {
  Walk walk = walk_here();
  for (const Frame& frame : walk) walked->pcs.push_back(frame.pc());
  walked->stop = walk.stop_reason();
}

void* run_on_thread(void* argument) {
  auto& other = *static_cast<OtherStack*>(argument);
  walked = &other;
  other.own_stack_is_lower = static_cast<void*>(&argument) < static_cast<void*>(other.top);
  other.code->call(live_call_on_another_stack, reinterpret_cast<long>(other.top),
                   reinterpret_cast<long>(&walk_from_here));
  return nullptr;
}

TEST_F(LiveDirectives, WalksAcrossStacksInEitherDirection) {
  expect_case(
      k_hard, "call_on_another_stack", "call_on_another_stack",
      [&] {
        alignas(16) static std::byte stack[4096];
        return code.call(live_call_on_another_stack, reinterpret_cast<long>(stack + sizeof stack),
                         static_cast<long>(code.address(live_plain))) -
               5;
      },
      1);

  const LiveProcedure procedure(code, k_hard, "call_on_another_stack", "call_on_another_stack");
  constexpr std::size_t k_part = 1 << 20;
  auto* const parts =
      static_cast<std::byte*>(mmap(nullptr, 3 * k_part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (const bool up : {false, true}) {
    OtherStack other{&code, procedure.range, parts + (up ? 3 : 1) * k_part, false, {}, StopReason::none};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, parts + k_part, k_part);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, &run_on_thread, &other), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(other.own_stack_is_lower, up);
    EXPECT_EQ(other.stop, StopReason::outermost);
    ASSERT_GE(other.pcs.size(), 4u);
    EXPECT_TRUE(procedure.range.contains(other.pcs[1]));
  }
  munmap(parts, 3 * k_part);
}

}  // namespace
}  // namespace jitunwind::test
