#include "tests/asmjit/random_code.h"

#include <vector>

#include "tests/asmjit/asmjit_names.h"

namespace jitunwind::test {
namespace {

namespace x86 = asmjit::x86;

class RandomWriter {
 public:
  RandomWriter(AsmjitAssembler& a, std::mt19937_64& random) : a_(a), random_(random) {}

  void write() {
    begin_frame();
    block(3);
    end_frame();
  }

 private:
  enum class Place : std::uint8_t { pushed, by_sp, by_fp, moved };
  struct Saved {
    x86::Gp reg;
    Place place;
    int offset;     // from the CFA
    x86::Gp other;  // that it was moved to
  };

  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  bool one_in(int n) { return below(n) == 0; }
  x86::Gp scratch() {
    const x86::Gp all[] = {x86::rax, x86::rcx, x86::rdx, x86::rsi, x86::rdi};
    return all[below(5)];
  }

  void move(const x86::Gp& to, const x86::Gp& from) { one_in(2) ? a_.xchg(to, from) : a_.mov(to, from); }
  void begin_frame();
  void save(const x86::Gp& reg);
  void end_frame();
  void restore(const Saved& saved);
  void leave_memory();
  void move_sp(int bytes);
  void block(int depth);
  void statement(int depth);
  void change();
  void branch(int depth);
  void arguments(int depth);

  AsmjitAssembler& a_;
  std::mt19937_64& random_;
  std::vector<Saved> saved_;
  int sp_ = 8;      // the CFA's distance from SP
  int frame_ = 8;   // the same before the body
  int pushes_ = 8;  // the same before the memory of the frame
  bool has_fp_ = false, is_variable_ = false, calls_ = false;
};

void RandomWriter::move_sp(int bytes) {
  switch (below(3)) {
    case 0:
      bytes < 0 ? a_.sub(x86::rsp, -bytes) : a_.add(x86::rsp, bytes);
      break;
    case 1:
      bytes < 0 ? a_.add(x86::rsp, bytes) : a_.sub(x86::rsp, -bytes);
      break;
    default:
      a_.lea(x86::rsp, x86::ptr(x86::rsp, bytes));
  }
  sp_ -= bytes;
}

void RandomWriter::save(const x86::Gp& reg) {
  const x86::Gp others[] = {x86::r8, x86::r9, x86::r10, x86::r11};
  Saved saved{reg, static_cast<Place>(1 + below(3)), sp_ - 8 * static_cast<int>(saved_.size()),
              others[saved_.size() % 4]};
  if (saved.place == Place::by_fp && !has_fp_) saved.place = Place::by_sp;
  if (saved.place == Place::moved && calls_) saved.place = Place::by_sp;
  if (saved.place == Place::moved) move(saved.other, reg);
  if (saved.place == Place::by_sp) a_.mov(x86::ptr(x86::rsp, sp_ - saved.offset), reg);
  if (saved.place == Place::by_fp) a_.mov(x86::ptr(x86::rbp, 16 - saved.offset), reg);
  saved_.push_back(saved);
}

void RandomWriter::begin_frame() {
  calls_ = one_in(2);
  if (one_in(2)) {
    a_.push(x86::rbp), sp_ += 8;
    one_in(3) ? a_.lea(x86::rbp, x86::ptr(x86::rsp)) : a_.mov(x86::rbp, x86::rsp);
    has_fp_ = true;
  }
  const x86::Gp all[] = {x86::rbx, x86::r12, x86::r13, x86::r14, x86::r15};
  std::vector<x86::Gp> later;
  for (const x86::Gp& reg : all) {
    if (!one_in(2)) continue;
    if (!one_in(2)) {
      later.push_back(reg);
      continue;
    }
    a_.push(reg), sp_ += 8;
    saved_.push_back({reg, Place::pushed, sp_, {}});
  }
  pushes_ = sp_;
  if (!later.empty() || one_in(2)) move_sp(-80 - 8 * below(20));
  for (const x86::Gp& reg : later) save(reg);
  if (has_fp_ && one_in(4)) {
    one_in(2) ? a_.and_(x86::rsp, -32) : a_.sub(x86::rsp, x86::rax);
    is_variable_ = true;
  }
  frame_ = sp_;
}

void RandomWriter::restore(const Saved& saved) {
  if (saved.place == Place::moved) move(saved.reg, saved.other);
  if (saved.place == Place::pushed) a_.pop(saved.reg), sp_ -= 8;
  const bool is_by_fp = saved.place == Place::by_fp || (saved.place == Place::by_sp && is_variable_);
  if (is_by_fp) a_.mov(saved.reg, x86::ptr(x86::rbp, 16 - saved.offset));
  if (saved.place == Place::by_sp && !is_variable_) a_.mov(saved.reg, x86::ptr(x86::rsp, sp_ - saved.offset));
}

/// Sets SP to the last register that was pushed.
void RandomWriter::leave_memory() {
  if (has_fp_ && (is_variable_ || one_in(3))) {
    a_.lea(x86::rsp, x86::ptr(x86::rbp, 16 - pushes_));
    sp_ = pushes_;
  } else if (sp_ != pushes_) {
    move_sp(sp_ - pushes_);
  }
}

/// Leaves the procedure from any depth, and goes back to the state of that depth.
void RandomWriter::end_frame() {
  const int sp = sp_;
  for (const Saved& saved : saved_)
    if (saved.place != Place::pushed) restore(saved);
  const bool has_pushes = pushes_ != (has_fp_ ? 16 : 8);
  if (has_fp_ && !has_pushes && one_in(2)) {
    a_.leave();
  } else {
    leave_memory();
    for (auto saved = saved_.rbegin(); saved != saved_.rend(); ++saved)
      if (saved->place == Place::pushed) restore(*saved);
    if (has_fp_) a_.pop(x86::rbp);
  }
  switch (below(6)) {
    case 0:
      a_.ret(16);
      break;
    case 1:
      a_.jmp(x86::rax);
      break;
    default:
      a_.ret();
  }
  sp_ = sp;
}

/// Registers that were saved get other values, now and then one that was not.
void RandomWriter::change() {
  if (!saved_.empty() && one_in(2))
    a_.mov(saved_[static_cast<std::size_t>(below(static_cast<int>(saved_.size())))].reg, 0x600d);
  else if (one_in(400))
    a_.mov(x86::r15, 0xbad);
  else
    a_.add(scratch(), scratch());
}

void RandomWriter::branch(int depth) {
  const asmjit::Label behind = new_label(a_), other = new_label(a_);
  switch (below(4)) {
    case 0:  // if
      a_.test(x86::eax, x86::eax), a_.jz(behind);
      block(depth);
      break;
    case 1:  // if, else
      a_.cmp(x86::rdi, x86::rsi), a_.jg(other);
      block(depth);
      a_.jmp(behind);
      a_.bind(other);
      block(depth);
      break;
    case 2:  // loop
      a_.bind(other);
      block(depth);
      a_.dec(x86::rcx), a_.jnz(other);
      break;
    default:  // an early return
      a_.test(x86::edx, x86::edx), a_.jnz(behind);
      end_frame();
  }
  a_.bind(behind);
}

void RandomWriter::arguments(int depth) {
  const int before = sp_;
  for (int i = below(4); i >= 0; --i) {
    a_.push(scratch());
    sp_ += 8;
  }
  if (one_in(3)) move_sp(-16);
  block(depth);
  if (sp_ - before == 8 && one_in(2))
    a_.pop(scratch()), sp_ -= 8;
  else
    move_sp(sp_ - before);
}

void RandomWriter::statement(int depth) {
  switch (depth == 0 ? below(3) : below(7)) {
    case 0:
    case 1:
      return change();
    case 2:
      if (calls_) a_.call(x86::rax);
      return;
    case 3:
    case 4:
      return branch(depth - 1);
    default:
      return arguments(depth - 1);
  }
}

void RandomWriter::block(int depth) {
  for (int i = below(4); i >= 0; --i) statement(depth);
}

}  // namespace

void write_random_code(AsmjitAssembler& a, std::mt19937_64& random) { RandomWriter(a, random).write(); }

}  // namespace jitunwind::test
