// Code that describes itself as it is emitted is registered and run: the rows are right at every instruction.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/builders/live_code.h"

namespace jitunwind::test {
using namespace stepping;
namespace {

using namespace x86_64;

/// Each Function returns this, whatever the arguments are. n is 0 or a multiple of 64.
constexpr int k_result = 4711;

/// A value of each choice in building a frame.
struct Shape {
  enum class Pointer { none, pushed, entered, above_sp } pointer = Pointer::none;
  int saved = 0;         ///< registers besides the frame pointer, in the order of k_saved
  bool by_move = false;  ///< saved into the allocated area, not pushed
  int allocated = 0;     ///< bytes besides that
  enum class Unknown { none, variable, realigned } unknown = Unknown::none;
  enum class Release { add, restore, leave } release = Release::add;
  enum class Arguments { none, caller_pops, callee_pops } arguments = Arguments::none;
  bool early_return = false;
  int popped = 0;  ///< ret n
};
using Pointer = Shape::Pointer;
using Unknown = Shape::Unknown;
using Release = Shape::Release;
using Arguments = Shape::Arguments;

constexpr std::array k_saved{rbx, r12, r13, r14, r15, rbp};

/// Returns whether these choices are possible together.
bool is_possible(const Shape& s) {
  const bool pointer = s.pointer != Pointer::none;
  if (pointer && s.saved > 5) return false;  // rbp is the frame pointer
  if (s.pointer == Pointer::above_sp && !(s.by_move && s.allocated > 0)) return false;
  if (s.pointer == Pointer::above_sp && (s.unknown != Unknown::none || s.release != Release::add)) return false;
  if (s.by_move && s.saved == 0 && s.pointer != Pointer::above_sp) return false;
  if (s.by_move && s.allocated == 0) return false;
  if (s.unknown == Unknown::variable && !pointer) return false;
  if (s.release == Release::add) return s.unknown == Unknown::none || !pointer;
  if (s.pointer != Pointer::pushed && s.pointer != Pointer::entered) return false;
  return s.release != Release::leave || s.by_move || s.saved == 0;
}

class Frame {
 public:
  Frame(DescribingAssembler& a, const Shape& s) : a_(a), s_(s) {}

  void prologue() {
    const int word = 8;
    if (s_.pointer == Pointer::pushed) a_.push(rbp), a_.set_frame_pointer();
    if (s_.pointer == Pointer::entered) a_.enter(16);
    if (!s_.by_move)
      for (int i = 0; i < s_.saved; ++i) a_.push(k_saved[static_cast<std::size_t>(i)]);
    if (slot()) a_.copy_sp_to_rax();
    if (s_.unknown == Unknown::realigned) a_.realign();
    if (allocated() > 0) a_.allocate(allocated());
    if (slot()) a_.store_rax_as_sp(k_slot);
    if (s_.pointer == Pointer::above_sp) a_.save_at_sp(rbp, 0), a_.set_frame_pointer_above_sp(word);
    if (s_.by_move)
      for (int i = 0; i < s_.saved; ++i) save(i);
    if (s_.unknown == Unknown::variable) a_.allocate_rsi();
  }

  void body() {
    for (int i = 0; i < s_.saved; ++i) a_.clobber(k_saved[static_cast<std::size_t>(i)]);
    if (slot()) a_.clobber(rax);
    if (s_.arguments != Arguments::none) a_.push_argument(1), a_.push_argument(2);
    if (s_.arguments == Arguments::callee_pops)
      a_.call_rdi_which_pops(16);
    else
      a_.call_rdi();
    if (s_.arguments == Arguments::caller_pops) a_.deallocate(16);
  }

  Instruction epilogue() {
    a_.return_value(k_result);
    if (s_.by_move)
      for (int i = 0; i < s_.saved; ++i) reload(i);
    if (s_.pointer == Pointer::above_sp) a_.reload_at_sp(rbp, 0);
    const int pushed = s_.by_move ? 0 : s_.saved;
    const int below = s_.pointer == Pointer::entered ? 16 : 0;
    if (s_.release == Release::leave) {
      a_.leave();
      return a_.ret(s_.popped);
    }
    if (s_.release == Release::restore)
      below + pushed == 0 ? a_.restore_sp() : a_.restore_sp(-below - 8 * pushed);
    else if (slot())
      a_.reload_sp(k_slot);
    else if (allocated() > 0)
      a_.deallocate(allocated());
    for (int i = pushed; i-- > 0;) a_.pop(k_saved[static_cast<std::size_t>(i)]);
    if (s_.pointer == Pointer::entered) a_.leave();
    if (s_.pointer == Pointer::pushed) a_.pop(rbp);
    return a_.ret(s_.popped);
  }

 private:
  static constexpr int k_slot = 64;

  bool slot() const { return s_.unknown == Unknown::realigned && s_.pointer == Pointer::none; }
  int allocated() const {
    const int moved = s_.by_move ? 8 * (s_.saved + 1) : 0;
    return s_.allocated + moved + (slot() ? 128 : 0);
  }
  /// Returns the place of a moved register: counted from the frame pointer if the frame is found by it alone, else from
  /// SP.
  int place(int i) const {
    return by_pointer() ? -8 * (i + 1) - (s_.pointer == Pointer::entered ? 16 : 0) : 8 * (i + 1);
  }
  bool by_pointer() const { return s_.pointer == Pointer::pushed || s_.pointer == Pointer::entered; }
  void save(int i) {
    const Reg r = k_saved[static_cast<std::size_t>(i)];
    by_pointer() ? a_.save_at_fp(r, place(i)) : a_.save_at_sp(r, place(i));
  }
  void reload(int i) {
    const Reg r = k_saved[static_cast<std::size_t>(i)];
    by_pointer() ? a_.reload_at_fp(r, place(i)) : a_.reload_at_sp(r, place(i));
  }

  DescribingAssembler& a_;
  const Shape& s_;
};

DescribingAssembler procedure_of(const Shape& s) {
  DescribingAssembler a;
  Frame frame(a, s);
  frame.prologue();
  if (s.early_return) {
    const std::size_t over = a.skip_if_rsi();
    a.builder().remember();
    const Instruction leaving = frame.epilogue();
    a.builder().restore(leaving);
    a.land(over);
  }
  frame.body();
  frame.epilogue();
  return a;
}

template <class Use>
void for_each_shape(Use use) {
  for (const Pointer pointer : {Pointer::none, Pointer::pushed, Pointer::entered, Pointer::above_sp})
    for (const int saved : {0, 1, 5, 6})
      for (const bool by_move : {false, true})
        for (const int allocated : {0, 24, 5000})
          for (const Unknown unknown : {Unknown::none, Unknown::variable, Unknown::realigned})
            for (const Release release : {Release::add, Release::restore, Release::leave})
              for (const Arguments arguments : {Arguments::none, Arguments::caller_pops, Arguments::callee_pops})
                for (const bool early : {false, true}) {
                  const Shape s{pointer, saved, by_move, allocated, unknown, release, arguments, early, early ? 0 : 16};
                  if (is_possible(s)) use(s);
                }
}

/// Calls a procedure that takes 16 bytes of arguments with its `ret 16`.
using Caller = long (*)(void (*)(), long, Function);
Caller add_caller(LiveCode& live) {
  DescribingAssembler a;
  a.push_argument(1);
  a.push_argument(2);
  a.call_rdx_which_pops(16);
  a.ret();
  return live.add<Caller>(a);
}

// covers: DY34 DY41 DY55 DY56
TEST(SteppedCode, EveryShapeOfFrame) {
  LiveCode live(8 << 20);
  void (*const helper)() = add_helper(live, 0);
  void (*const popping_helper)() = add_helper(live, 16);
  const Caller caller = add_caller(live);
  struct Call {
    Function function;
    void (*helper)();
    bool early;
  };
  std::vector<Call> calls;
  std::set<const unw_dyn_region_info_t*> shapes;
  for_each_shape([&](const Shape& s) {
    const DescribingAssembler a = procedure_of(s);
    const Function function = live.add(a);
    if (!function) return;
    const auto built = a.description();
    EXPECT_TRUE(built->warnings().empty()) << built->warnings()[0].text();
    shapes.insert(built->shape().regions());
    calls.push_back({function, s.arguments == Arguments::callee_pops ? popping_helper : helper, s.early_return});
  });
  const SingleStepRun run = live.step([&] {
    for (const Call& c : calls) {
      if (c.early && (c.function(c.helper, 64) != k_result || c.function(c.helper, 0) != k_result)) return 1;
      if (!c.early && caller(c.helper, 64, c.function) != k_result) return 2;
    }
    return 0;
  });
  EXPECT_TRUE(run.ok()) << run.text();
  EXPECT_EQ(live.missed(run), 0u);
  EXPECT_GT(calls.size(), 300u);
  std::printf("%zu procedures of %zu frame shapes; %s\n", calls.size(), shapes.size(), run.text().c_str());
}

TEST(SteppedCode, ProbeLoopTailJumpAndRegisterSaves) {
  LiveCode live(1 << 16);
  DescribingAssembler probing;
  probing.probe(16);
  probing.allocate(104);
  probing.return_value(k_result);
  probing.deallocate(16 * 4096 + 104);
  probing.ret();
  DescribingAssembler jumping;
  jumping.return_value(k_result);
  jumping.pop_return_address_and_jump();
  jumping.builder().ends_without_return();
  DescribingAssembler in_registers;
  in_registers.move_to_r8(r12);
  in_registers.save_at_sp(rbx, -64);  // in the red zone
  in_registers.clobber(r12);
  in_registers.clobber(rbx);
  in_registers.push_argument(1);
  in_registers.deallocate(8);
  in_registers.return_value(k_result);
  in_registers.reload_at_sp(rbx, -64);
  in_registers.reload_from_r8(r12);
  in_registers.ret();
  std::vector<Function> functions;
  for (const DescribingAssembler& a : {probing, jumping, in_registers}) functions.push_back(live.add(a));
  const SingleStepRun run = live.step([&] {
    for (const Function f : functions)
      if (f(nullptr, 0) != k_result) return 1;
    return 0;
  });
  EXPECT_TRUE(run.ok()) << run.text();
  EXPECT_EQ(live.missed(run), 0u);
}

// gcc's frame with a realigned argument pointer: no directives for CFA = *(rbp-8), so rows, among idioms.
TEST(SteppedCode, RowsForGccsRealignedFrame) {
  const std::vector<std::uint8_t> code{
      0x4c, 0x8d, 0x54, 0x24, 0x08,  // 00 lea r10,[rsp+8]
      0x48, 0x83, 0xe4, 0xe0,        // 05 and rsp,-32
      0x41, 0xff, 0x72, 0xf8,        // 09 push [r10-8]
      0x55,                          // 0d push rbp
      0x48, 0x89, 0xe5,              // 0e mov rbp,rsp
      0x41, 0x52,                    // 11 push r10
      0x48, 0x83, 0xec, 0x18,        // 13 sub rsp,24
      0x4d, 0x31, 0xd2,              // 17 xor r10,r10
      0xff, 0xd7,                    // 1a call rdi
      0xb8, 0x67, 0x12, 0x00, 0x00,  // 1c mov eax,4711
      0x4c, 0x8b, 0x55, 0xf8,        // 21 mov r10,[rbp-8]
      0xc9,                          // 25 leave
      0x49, 0x8d, 0x62, 0xf8,        // 26 lea rsp,[r10-8]
      0xc3,                          // 2a ret
  };
  Builder b = describe("realigned").size(code.size());
  b.row_at(0x05, "cfa=r10 ra=[cfa-8]");
  b.row_at(0x0e, "cfa=r10 rbp=[rsp] ra=[cfa-8]");
  b.row_at(0x11, "cfa=r10 rbp=[rbp] ra=[cfa-8]");
  b.row_at(0x13, "cfa=[rbp-8] rbp=[rbp] ra=[cfa-8]");
  b.row_at(0x25, "cfa=r10 rbp=[rbp] ra=[cfa-8]");
  b.row_at(0x26, "cfa=r10 ra=[cfa-8]");
  b.row_at(0x2a, "cfa=rsp+8 ra=[cfa-8]");
  LiveCode live(1 << 16);
  void (*const helper)() = add_helper(live, 0);
  const Function function = live.add(code, b.build());
  const SingleStepRun run = live.step([&] { return function(helper, 0) == k_result ? 0 : 1; });
  EXPECT_TRUE(run.ok()) << run.text();
  EXPECT_EQ(live.missed(run), 0u);
}

// Every shape again with the same rows in table format: builders say rows, callers see no difference.
TEST(SteppedCode, EveryShapeOfFrameAsRows) {
  LiveCode live(8 << 20);
  void (*const helper)() = add_helper(live, 0);
  void (*const popping_helper)() = add_helper(live, 16);
  const Caller caller = add_caller(live);
  std::vector<std::pair<Function, void (*)()>> calls;
  for_each_shape([&](const Shape& s) {
    if (s.early_return) return;
    const DescribingAssembler a = procedure_of(s);
    Builder rows = Builder(DescribingAssembler(a).builder()).size(a.code().size());
    rows.row_at(0, "cfa=rsp+8 ra=[cfa-8]");
    const Function function = live.add(a.code(), rows.build());
    calls.push_back({function, s.arguments == Arguments::callee_pops ? popping_helper : helper});
  });
  const SingleStepRun run = live.step([&] {
    for (const auto& [function, argument] : calls)
      if (caller(argument, 64, function) != k_result) return 1;
    return 0;
  });
  EXPECT_TRUE(run.ok()) << run.text();
  EXPECT_EQ(live.missed(run), 0u);
  EXPECT_GT(calls.size(), 150u);
}

}  // namespace
}  // namespace jitunwind::test
