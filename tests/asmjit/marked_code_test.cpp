// Code that is marked in one pass, against the states that FrameAnalysis finds by following every path.
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_access_p.h"
#include "jitunwind/adapters/asmjit/derivation/frame_analysis_p.h"
#include "jitunwind/adapters/asmjit/derivation/frame_rows_p.h"
#include "jitunwind/adapters/asmjit/known_frames/marked_procedures_p.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/sdk/local_space.h"
#include "tests/asmjit/written_code.h"
#include "tests/support/emulated.h"

namespace jitunwind::test {
namespace {

using namespace asmjit::x86;
using asmjit::Label;

/// Functions of the usual form, with loops, early returns and calls. Some are spoiled: an instruction is missing, or
/// another one is in its place.
class RandomFunction {
 public:
  RandomFunction(AsmjitAssembler& a, std::mt19937& random) : a_(a), random_(random) {}

  void write() {
    spoiled_ = one_in(2) ? static_cast<int>(below(60)) : -1;
    has_fp_ = one_in(2);
    for (const Gp& reg : {rbx, r12, r13, r14, r15})
      if (one_in(3)) (one_in(4) ? moved_ : pushed_).push_back(reg);
    local_ = 8 * static_cast<std::int32_t>(moved_.size() + below(6));
    write_prolog();
    for (std::size_t parts = 1 + below(4); parts != 0; --parts) write_part();
    write_epilog();
    for (const Label& label : exits_) {
      say([&] { a_.bind(label); });
      write_epilog();
    }
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  /// One instruction, unless it is the spoiled one.
  template <class Write>
  void say(Write write) {
    if (spoiled_-- != 0) return write();
    if (one_in(2)) write_anything();
  }

  void write_prolog() {
    if (has_fp_) {
      say([&] { a_.push(rbp); });
      say([&] { a_.mov(rbp, rsp); });
    }
    for (const Gp& reg : pushed_) say([&] { a_.push(reg); });
    if (local_ != 0) say([&] { a_.sub(rsp, local_); });
    for (std::size_t i = 0; i < moved_.size(); ++i)
      say([&] { a_.mov(ptr(rsp, static_cast<std::int32_t>(8 * i)), moved_[i]); });
  }

  void write_epilog() {
    for (std::size_t i = 0; i < moved_.size(); ++i)
      say([&] { a_.mov(moved_[i], ptr(rsp, static_cast<std::int32_t>(8 * i))); });
    if (has_fp_ && pushed_.empty() && one_in(2)) {
      say([&] { a_.leave(); });
    } else {
      if (has_fp_ && one_in(2))
        say([&] { a_.lea(rsp, ptr(rbp, -8 * static_cast<std::int32_t>(pushed_.size()))); });
      else if (local_ != 0)
        say([&] { a_.add(rsp, local_); });
      for (auto reg = pushed_.rbegin(); reg != pushed_.rend(); ++reg) say([&] { a_.pop(*reg); });
      if (has_fp_) say([&] { a_.pop(rbp); });
    }
    if (one_in(8))
      say([&] { a_.jmp(rax); });
    else
      say([&] { a_.ret(); });
  }

  void write_part() {
    const Label label = new_label(a_);
    switch (below(6)) {
      case 0:
        return write_call();
      case 1:  // a loop
        say([&] { a_.bind(label); });
        write_body();
        return say([&] { a_.jnz(label); });
      case 2: {  // a loop that begins at its end
        const Label last = new_label(a_);
        say([&] { a_.jmp(last); });
        say([&] { a_.bind(label); });
        write_body();
        say([&] { a_.bind(last); });
        return say([&] { a_.jnz(label); });
      }
      case 3:  // something left out
        say([&] { a_.jz(label); });
        write_body();
        return say([&] { a_.bind(label); });
      case 4:  // an early return
        say([&] { a_.jz(label); });
        write_epilog();
        return say([&] { a_.bind(label); });
      default:  // a jump to a return behind
        exits_.push_back(label);
        return say([&] { a_.jz(label); });
    }
  }

  void write_call() {
    const std::size_t arguments = below(3);
    for (std::size_t i = 0; i < arguments; ++i) say([&] { a_.push(rdi); });
    say([&] { a_.call(rax); });
    if (arguments != 0) say([&] { a_.add(rsp, static_cast<std::int32_t>(8 * arguments)); });
  }

  void write_body() {
    for (std::size_t left = below(4); left != 0; --left) {
      if (!pushed_.empty() && one_in(3))
        say([&] { a_.mov(pushed_[below(pushed_.size())], rdi); });
      else if (local_ > 8 * static_cast<std::int32_t>(moved_.size()) && one_in(2))
        say([&] { a_.mov(ptr(rsp, local_ - 8), rax); });
      else
        say([&] { a_.add(rax, ptr(rdi, 8)); });
    }
  }

  void write_anything() {
    constexpr std::array<Gp, 6> k_registers = {rax, rbx, rbp, r12, rdi, rsp};
    const Gp one = k_registers[below(6)], other = k_registers[below(6)];
    const auto offset = static_cast<std::int32_t>(8 * below(8)) - 24;
    switch (below(16)) {
      case 0:
        return void(a_.push(one));
      case 1:
        return void(a_.pop(one));
      case 2:
        return void(a_.mov(one, other));
      case 3:
        return void(a_.mov(ptr(one, offset), other));
      case 4:
        return void(a_.mov(one, ptr(other, offset)));
      case 5:
        return void(a_.lea(one, ptr(other, offset)));
      case 6:
        return void(a_.add(rsp, offset));
      case 7:
        return void(a_.mov(dword_ptr(one, offset), 1));
      case 8:
        return void(a_.xchg(one, other));
      case 9:
        return void(a_.push(ptr(one, offset)));
      case 10:
        return void(a_.enter(16, 0));
      case 11:
        return void(a_.leave());
      case 12:
        return void(a_.and_(rsp, -16));
      case 13:
        return void(a_.ret());
      case 14:
        return void(a_.align(asmjit::AlignMode::kCode, 16));
      default:
        return void(a_.ud2());
    }
  }

  AsmjitAssembler& a_;
  std::mt19937& random_;
  int spoiled_ = -1;  // instructions up to the spoiled one
  bool has_fp_ = false;
  std::int32_t local_ = 0;
  std::vector<Gp> pushed_, moved_;
  std::vector<Label> exits_;
};

/// Proves the registered rows of code at `start`. Returns the offset of the first that is wrong.
std::optional<std::uint32_t> find_wrong_row(const derivation::CodeTrace& trace, std::uintptr_t start) {
  derivation::FrameAnalysis analysis(trace, arch::x86_64);
  analysis.run();
  std::optional<std::uint32_t> wrong;
  for (const derivation::TracedProcedure& p : analysis.procedures()) {
    if (p.refusal) return p.begin;
    (void)analysis.visit(p, [&](const derivation::FrameAnalysis::Boundary& at) {
      const std::uint32_t offset = trace.instructions[at.instruction].begin;
      FrameRow row;
      MemoryWindow window;
      Lookup lookup(local_space(), CodeAddress::interrupted(start + offset), window);
      const Found found = dyn_row_source().find_row(lookup, row);
      if (!at.state) return true;
      derivation::FrameState state = *at.state;
      if (analysis.calls(at.instruction)) state.forget_what_callees_use();
      if (!found || !*found || !derivation::proves(state, arch::x86_64, row)) wrong = offset;
      return !wrong;
    });
  }
  return wrong;
}

bool is_marked(const asmjit::CodeHolder& code) {
  return !derivation::mark_procedures(derivation::CodeWriters(code).only_record()).empty();
}

TEST(MarkedCode, HasTheBytesThatWereWritten) {
  WrittenCode w;
  const Label exit = new_label(w.a);
  w.a.push(rbx);
  w.a.test(rdi, rdi);
  const std::size_t jump = w.a.offset();
  w.a.jz(exit);
  const std::size_t behind = w.a.offset();
  w.a.mov(rax, ptr(rdi, 0x1234));
  w.a.mov(rbx, 0x1122334455667788);
  w.a.bind(exit);
  w.a.pop(rbx);
  w.a.ret();
  ASSERT_TRUE(is_marked(w.code));
  const std::size_t size = w.a.offset();
  for (std::size_t at = 0; at < size; ++at) {
    std::uint8_t& byte = text_section(w.code)->data()[at];
    byte ^= 0x10;
    EXPECT_EQ(is_marked(w.code), at >= jump && at < behind) << "asmjit itself fills in jumps alone: +" << at;
    byte ^= 0x10;
  }
  EXPECT_TRUE(is_marked(w.code));
}

/// A path that ends with rbx saved and changed says nothing about one that branched off in front of the push.
TEST(MarkedCode, ReliesOnRegistersThatAnotherPathChanged) {
  for (const bool saves : {true, false}) {
    WrittenCode w;
    const Label exit = new_label(w.a);
    w.a.test(rdi, rdi);
    w.a.jz(exit);
    w.a.push(rbx);
    w.a.mov(rbx, 1);
    w.a.ud2();
    w.a.bind(exit);
    if (saves) w.a.push(rbx);
    w.a.mov(rbx, 2);
    if (saves) w.a.pop(rbx);
    w.a.ret();
    EXPECT_EQ(is_marked(w.code), saves);
    EXPECT_EQ(describe_asmjit(w.code).complete(), saves);
  }
}

/// A call through a register may lead to a label whose address was taken. The label's code has another state then than
/// if it is reached from in front of it. Data has none.
TEST(MarkedCode, KnowsNoLabelsThatCallsThroughRegistersMayReach) {
  for (const bool is_data : {true, false}) {
    WrittenCode w;
    const Label taken = new_label(w.a);
    w.a.push(rbx);
    w.a.lea(rax, ptr(taken));
    w.a.call(rax);
    if (!is_data) w.a.bind(taken);
    w.a.mov(rbx, 1);
    w.a.pop(rbx);
    w.a.ret();
    if (is_data) w.a.bind(taken);
    if (is_data) embed_u64(w.a, 1);
    EXPECT_EQ(is_marked(w.code), is_data);
    EXPECT_EQ(describe_asmjit(w.code).complete(), is_data);
  }
}

/// A call before data or another procedure does not return, and padding behind it is the caller's. Padding behind a
/// jump is nobody's.
TEST(MarkedCode, EndsAtCallsThatDoNotReturn) {
  for (const bool calls : {true, false})
    for (const bool has_data : {true, false}) {
      WrittenCode w;
      if (calls)
        w.a.call(rax);
      else
        w.a.ret();
      const std::size_t behind = w.a.offset();
      w.a.align(asmjit::AlignMode::kCode, 16);
      const std::size_t padded = w.a.offset();
      if (has_data) embed_u64(w.a, 1);
      const std::size_t next = w.a.offset();
      w.a.procedure();
      w.a.ret();
      const auto marked = derivation::mark_procedures(derivation::CodeWriters(w.code).only_record());
      ASSERT_EQ(marked.size(), 2u);
      EXPECT_EQ(marked.front().end, calls ? padded : behind);
      EXPECT_EQ(marked.back().begin, next);
      EXPECT_EQ(marked.back().end, w.a.offset());
    }
}

TEST(MarkedCode, HasRightRowsOrNone) {
  constexpr std::size_t k_functions = 3000;
  std::mt19937 random(7);
  std::size_t described = 0, marked = 0;
  for (std::size_t n = repetitions(k_functions); n != 0; --n) {
    WrittenCode w;
    RandomFunction(w.a, random).write();
    const AsmjitDescription description = describe_asmjit(w.code);
    const bool has_marks = is_marked(w.code);
    ASSERT_FALSE(has_marks && !description.complete()) << description.text();
    described += description.complete();
    marked += has_marks;
    if (!has_marks) continue;
    std::uint8_t* start = nullptr;
    ASSERT_EQ(w.runtime.add(&start, &w.code), asmjit::kErrorOk);
    const derivation::TraceRecorder* const recorder = AsmjitAccess::recorder(w.a);
    const auto trace = derivation::TraceRecorder::trace({&recorder, 1}, w.code);
    ASSERT_TRUE(trace);
    const auto wrong = find_wrong_row(*trace, reinterpret_cast<std::uintptr_t>(start));
    ASSERT_FALSE(wrong) << "at +" << *wrong << " of\n" << w.rows();
  }
  EXPECT_GT(marked, described * 3 / 4) << "of " << described;
  EXPECT_GT(described, repetitions(k_functions) / 2);
}

}  // namespace
}  // namespace jitunwind::test
