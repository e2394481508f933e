#include "jitunwind/adapters/testing/single_step_p.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>

#include "jitunwind/unwind_core/no_modules.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind::stepping {
namespace {

/// Parent and child alternate strictly; on one CPU a step costs half as much as on two.
cpu_set_t pin_to_one_cpu() {
  cpu_set_t before, one;
  CPU_ZERO(&before);
  sched_getaffinity(0, sizeof before, &before);
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(std::max(sched_getcpu(), 0)), &one);
  sched_setaffinity(0, sizeof one, &one);
  return before;
}

pid_t start(const std::function<int()>& body) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid != 0) return pid;
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0 || getppid() != parent) _exit(127);
  raise(SIGSTOP);
  _exit(body());
}

}  // namespace

std::size_t ChildMemory::read_child(Addr at, std::span<std::byte> into) const noexcept {
  iovec local{into.data(), into.size()};
  iovec remote{reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)), into.size()};
  const ssize_t n = process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

std::size_t ChildMemory::read(Addr at, std::span<std::byte> into, MemoryWindow&) const noexcept {
  if (at >= kept_at_ && at - kept_at_ <= kept_size_ && into.size() <= kept_size_ - (at - kept_at_)) {
    std::memcpy(into.data(), kept_.data() + (at - kept_at_), into.size());
    return into.size();
  }
  return read_child(at, into);
}

void ChildMemory::reload_around(Addr sp) noexcept {
  kept_at_ = sp - 256;
  kept_size_ = read_child(kept_at_, kept_);
}

SteppedChild::SteppedChild(const std::function<int()>& body) : pid_(-1), memory_(-1), affinity_(pin_to_one_cpu()) {
  try {
    pid_ = start(body);
  } catch (...) {
    sched_setaffinity(0, sizeof affinity_, &affinity_);
    throw;
  }
  memory_ = ChildMemory(pid_);
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status)) {
    sched_setaffinity(0, sizeof affinity_, &affinity_);
    throw std::runtime_error("the child cannot be traced");
  }
  ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL);
}

SteppedChild::~SteppedChild() {
  if (state_ == State::stopped) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  sched_setaffinity(0, sizeof affinity_, &affinity_);
}

SteppedChild::State SteppedChild::end(State state, std::string why) {
  why_ = std::move(why);
  return state_ = state;
}

SteppedChild::State SteppedChild::step() {
  signalled_ = false;
  for (int signal = 0; state_ == State::stopped;) {
    if (ptrace(PTRACE_SINGLESTEP, pid_, nullptr, signal) != 0)
      return end(State::killed, std::string("PTRACE_SINGLESTEP: ") + std::strerror(errno));
    int status = 0;
    if (waitpid(pid_, &status, 0) != pid_) return end(State::killed, std::string("waitpid: ") + std::strerror(errno));
    if (WIFSIGNALED(status)) return end(State::killed, std::string("killed by ") + strsignal(WTERMSIG(status)));
    if (WIFEXITED(status)) {
      exit_status_ = WEXITSTATUS(status);
      return end(State::exited, "");
    }
    signal = WSTOPSIG(status);
    if (signal == SIGTRAP) break;
    signalled_ = true;
  }
  return state_;
}

void SteppedChild::read_registers(const Arch& arch, RegisterFile& out) const {
  user_regs_struct block;
  iovec where{&block, sizeof block};
  if (ptrace(PTRACE_GETREGSET, pid_, NT_PRSTATUS, &where) != 0) throw std::runtime_error("PTRACE_GETREGSET");
  out.clear();
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.column < 0 || reg.prstatus < 0) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(&block) + reg.prstatus, arch.word_size);
    out.set_from_register(reg.column, value, reg.dwarf);
  }
}

VectorRegisters SteppedChild::read_vector_registers() const {
  user_fpregs_struct block;
  if (ptrace(PTRACE_GETFPREGS, pid_, nullptr, &block) != 0) throw std::runtime_error("PTRACE_GETFPREGS");
  VectorRegisters out;
  static_assert(sizeof out == sizeof block.xmm_space);
  std::memcpy(&out, block.xmm_space, sizeof out);
  return out;
}

std::string hex(std::uint64_t value) {
  std::array<char, 20> text;
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

namespace {

constexpr Addr k_max_callee_cleanup = 0x1000;

/// The state at the entry of a judged procedure.
struct Activation {
  Addr cfa = 0;
  Addr return_address = 0;
  RegisterFile registers;
  VectorRegisters vectors{};
  Addr entry = 0;
  Addr jumped_from = 0;       ///< the jump that led to the entry; 0: a call
  bool built_before = false;  ///< its frame is not a call's: the row at the entry says what it is
  struct Away {
    Addr pc;  ///< address at which it continues
    Addr sp;  ///< least SP at which it continues
  };
  std::optional<Away> away;  ///< it called code that is not judged, or a signal handler runs
};

class Stepper {
 public:
  Stepper(std::span<const SteppedCode> code, std::span<const SingleStepJudge> judges, const SingleStepOptions& options,
          const std::function<int()>& body);
  SingleStepRun run();

 private:
  struct Site {
    Addr pc = 0;
    const SteppedCode* code = nullptr;
    MachineInstruction instruction{};
  };
  struct Wanted {
    const RegisterInfo* info;
    std::string name;
  };

  const SteppedCode* find_code(Addr pc) const;
  Site site_at(Addr pc);
  Addr reg(RegNum number) const { return registers_.get(arch_.column(number)).value_or(0); }
  Addr word_at(Addr at);
  bool fail(const std::string& why);

  bool follow(const Site& before, Addr sp_before, const Site& now);
  void enter(const Site& before, const Site& now);
  bool take_frame_of_row(Activation& activation);
  bool leave(const Site& before, const Site& now, bool& returned);
  bool check_kept(const Activation& activation);

  void compare(const Activation& truth, const RegisterFile& frame, Cursor::Top top, const Site& site);
  std::string differences(const Activation& truth, const RegisterFile& frame, Cursor& cursor, const FrameRow& row);
  std::string vector_difference(const Wanted& wanted, const Activation& truth, const RegisterFile& frame,
                                const FrameRow& row, Addr cfa);
  void compare_after_call(const Site& call);

  MachineInstruction instruction_at(Addr pc);
  AddressSpace space_of(const SingleStepJudge& judge);
  std::string way_in(const Activation& activation) const;

  const Arch& arch_;
  std::span<const SteppedCode> code_;
  std::span<const SingleStepJudge> judges_;
  const SingleStepOptions& options_;
  NoModules no_modules_;
  std::vector<Wanted> wanted_;
  bool wants_vectors_ = false;
  SteppedChild child_;
  RegisterFile registers_;
  VectorRegisters vectors_{};
  std::vector<Activation> activations_;
  std::map<Addr, Site> sites_;
  SingleStepRun out_;
};

Stepper::Stepper(std::span<const SteppedCode> code, std::span<const SingleStepJudge> judges,
                 const SingleStepOptions& options, const std::function<int()>& body)
    : arch_(arch::x86_64), code_(code), judges_(judges), options_(options), child_(body) {
  for (const RegisterInfo& info : arch_.registers) {
    const bool wanted = options.preserved.empty() ? info.preserved && info.reg_class == RegClass::general
                                                  : std::ranges::count(options.preserved, info.dwarf) != 0;
    if (!wanted) continue;
    wanted_.push_back({&info, info.name});
    wants_vectors_ |= info.reg_class == RegClass::vector;
  }
  out_.reports.resize(judges.size());
}

const SteppedCode* Stepper::find_code(Addr pc) const {
  const auto found = std::ranges::find_if(code_, [pc](const SteppedCode& c) { return c.range.contains(pc); });
  return found == code_.end() ? nullptr : &*found;
}

/// Judged code is decoded once; other code is not decoded at all.
Stepper::Site Stepper::site_at(Addr pc) {
  Site site{pc, find_code(pc), {}};
  if (!site.code) return site;
  if (const auto known = sites_.find(pc); known != sites_.end()) return known->second;
  site.instruction = instruction_at(pc);
  return sites_[pc] = site;
}

MachineInstruction Stepper::instruction_at(Addr pc) {
  std::array<std::byte, k_max_instruction_bytes> bytes;
  MemoryWindow window;
  const std::size_t n = child_.memory().read(pc, bytes, window);
  return decode_instruction(std::span(bytes).first(n)).value_or(MachineInstruction{});
}

AddressSpace Stepper::space_of(const SingleStepJudge& judge) {
  const ModuleFinder& modules = options_.modules ? *options_.modules : static_cast<const ModuleFinder&>(no_modules_);
  return {arch_, child_.memory(), modules, judge.sources, {}};
}

Addr Stepper::word_at(Addr at) {
  MemoryWindow window;
  const auto value = read_word(child_.memory(), window, at, arch_, "stack");
  return value ? *value : 0;
}

bool Stepper::fail(const std::string& why) {
  if (out_.failure.empty()) out_.failure = why;
  return false;
}

/// Starts an activation whose first instruction is next. Code that other code jumps to has the frame of a call (a tail
/// call, a linkage stub), or another one, which the row at the entry says.
void Stepper::enter(const Site& before, const Site& now) {
  Activation a;
  const Addr sp = reg(arch_.sp);
  a.cfa = sp + static_cast<Addr>(arch_.entry_cfa);
  a.return_address = word_at(a.cfa + static_cast<Addr>(std::int64_t{arch_.entry_ra}));
  a.registers = registers_;
  a.vectors = vectors_;
  a.entry = now.pc;
  const MachineInstruction last = before.code ? before.instruction : instruction_at(before.pc);
  if (last.length != 0 && last.flow != MachineInstruction::Flow::call && !child_.signalled()) {
    a.jumped_from = before.pc;
    a.built_before = take_frame_of_row(a);
  }
  activations_.push_back(a);
  ++out_.activations;
  if (a.built_before) ++out_.built_before;
}

/// Returns false, and changes nothing, if no row leads to another frame than that of a call.
bool Stepper::take_frame_of_row(Activation& a) {
  for (const SingleStepJudge& judge : judges_) {
    const AddressSpace space = space_of(judge);
    Cursor cursor(space, registers_, Cursor::Top::interrupted);
    const auto moved = cursor.step();
    if (!moved || !*moved) continue;
    const Addr cfa = cursor.sp() - static_cast<Addr>(std::int64_t{arch_.caller_sp_bias});
    if (cfa == a.cfa && cursor.pc() == a.return_address) return false;
    a.cfa = cfa;
    a.return_address = cursor.pc();
    a.registers = cursor.registers();
    return true;
  }
  return false;
}

bool Stepper::check_kept(const Activation& a) {
  for (const Wanted& w : wanted_) {
    if (w.info->reg_class == RegClass::vector) {
      const auto i = static_cast<std::size_t>(w.info->dwarf - arch_.by_name("xmm0")->dwarf);
      if (vectors_[i] != a.vectors[i])
        return fail("procedure returned to " + hex(a.return_address) + " with " + w.name + " changed");
    } else if (a.registers.get(w.info->column).value_or(registers_.value(w.info->column)) !=
               registers_.value(w.info->column)) {
      return fail("procedure returned to " + hex(a.return_address) + " with " + w.name + " changed");
    }
  }
  return true;
}

/// Ends the activations that the last instruction has left. `returned` says whether one returned.
bool Stepper::leave(const Site& before, const Site& now, bool& returned) {
  // Code that was jumped to returns at once with the procedure that it continues.
  while (!activations_.empty() && activations_.back().return_address == now.pc &&
         reg(arch_.sp) >= activations_.back().cfa) {
    returned = true;
    const bool kept = check_kept(activations_.back());
    activations_.pop_back();
    if (!kept) return false;
  }
  if (returned || !before.code || now.code || activations_.empty()) return true;
  const Activation& left = activations_.back();
  if (!left.built_before) return true;
  if (before.instruction.flow == MachineInstruction::Flow::ret)
    return fail("code that was" + way_in(left) + " returned to " + hex(now.pc) +
                ", while the row at its entry leads to " + hex(left.return_address));
  activations_.pop_back();  // the frame stays, for the code that is jumped to
  return true;
}

/// " entered at trace+0x17 by a jump from 0x1000". Empty for a call of the first instruction.
std::string Stepper::way_in(const Activation& a) const {
  const SteppedCode& code = *find_code(a.entry);
  if (a.jumped_from == 0 && a.entry == code.range.begin) return "";
  return " entered at " + code.name + "+" + hex(a.entry - code.range.begin) +
         (a.jumped_from != 0 ? " by a jump from " + hex(a.jumped_from) : " by a call");
}

/// Updates the stack of activations after one executed instruction.
bool Stepper::follow(const Site& before, Addr sp_before, const Site& now) {
  if (child_.signalled() && !now.code) {
    // A handler begins; the interrupted instruction has not been executed.
    if (before.code) activations_.back().away = {before.pc, sp_before};
    return true;
  }
  const bool calls = before.instruction.flow == MachineInstruction::Flow::call;
  if (before.code && calls && !options_.pc_pushes.contains(before.pc)) {
    Activation& caller = activations_.back();
    compare_after_call(before);
    if (now.code) {
      enter(before, now);
      return true;
    }
    caller.away = {word_at(reg(arch_.sp)), reg(arch_.sp) + arch_.word_size};
    return true;
  }
  bool returned = false;
  if (!leave(before, now, returned)) return false;
  if (!now.code) return true;
  if (returned && !activations_.empty()) {
    activations_.back().away.reset();
    return true;
  }
  if (before.code)
    return !activations_.empty() || fail("judged code at " + hex(now.pc) + " was reached without a call");

  // Other code continues in judged code by a return or by a call.
  if (!activations_.empty()) {
    auto& away = activations_.back().away;
    const Addr sp = reg(arch_.sp);
    if (away && away->pc == now.pc && sp >= away->sp && sp - away->sp <= k_max_callee_cleanup) {
      away.reset();
      return true;
    }
  }
  enter(before, now);
  return true;
}

std::string Stepper::vector_difference(const Wanted& wanted, const Activation& truth, const RegisterFile& frame,
                                       const FrameRow& row, Addr cfa) {
  const RegNum number = wanted.info->dwarf;
  const auto i = static_cast<std::size_t>(number - arch_.by_name("xmm0")->dwarf);
  const RegRule rule = row.rule(number);
  std::array<std::byte, 16> actual = vectors_[i];
  if (rule.kind == RegRule::Kind::at_cfa || rule.kind == RegRule::Kind::at_reg) {
    const Addr base = rule.kind == RegRule::Kind::at_cfa ? cfa : frame.get(arch_.column(rule.reg)).value_or(0);
    MemoryWindow window;
    if (child_.memory().read(base + static_cast<Addr>(rule.offset), actual, window) != actual.size())
      return " " + wanted.name + ": slot cannot be read;";
  } else if (rule.kind != RegRule::Kind::unspecified && rule.kind != RegRule::Kind::same) {
    return " " + wanted.name + ": rule not understood here;";
  }
  return actual == truth.vectors[i] ? "" : " " + wanted.name + " differs;";
}

/// Empty when the cursor, moved to the caller, agrees with the truth.
std::string Stepper::differences(const Activation& truth, const RegisterFile& frame, Cursor& cursor,
                                 const FrameRow& row) {
  const auto moved = cursor.step();
  if (!moved) return std::string(" no step: ") + error_text(moved.error().code) + " (" + moved.error().what + ");";
  if (!*moved) return " no step: outermost;";
  std::string text;
  const auto differ = [&text](const std::string& what, Addr expected, const std::string& actual) {
    text += " " + what + " expected " + hex(expected) + " actual " + actual + ";";
  };
  const Addr sp = truth.cfa + static_cast<Addr>(std::int64_t{arch_.caller_sp_bias});
  if (cursor.sp() != sp) differ("cfa", truth.cfa, hex(cursor.sp()));
  if (cursor.pc() != truth.return_address) differ("ra", truth.return_address, hex(cursor.pc()));
  for (const Wanted& w : wanted_) {
    if (w.info->reg_class == RegClass::vector) {
      text += vector_difference(w, truth, frame, row, cursor.sp());
      continue;
    }
    const Addr expected = truth.registers.value(w.info->column);
    const auto actual = cursor.registers().get(w.info->column);
    if (!actual)
      differ(w.name, expected, "unknown");
    else if (*actual != expected)
      differ(w.name, expected, hex(*actual));
  }
  return text;
}

void Stepper::compare(const Activation& truth, const RegisterFile& frame, Cursor::Top top, const Site& site) {
  for (std::size_t i = 0; i < judges_.size(); ++i) {
    SingleStepReport& report = out_.reports[i];
    const AddressSpace space = space_of(judges_[i]);
    Cursor cursor(space, frame, top);
    FrameRow row;
    const bool has_row = cursor.find_row(row).has_value();
    const std::string wrong = differences(truth, frame, cursor, row);
    ++(top == Cursor::Top::interrupted ? report.instructions : report.after_calls);
    if (wrong.empty()) continue;
    ++report.mismatches;
    report.wrong_at.insert(site.pc);
    if (report.texts.size() >= options_.max_texts) continue;
    std::array<std::byte, k_max_instruction_bytes> bytes;
    MemoryWindow window;
    const std::size_t n = child_.memory().read(site.pc, bytes, window);
    const std::string way = way_in(truth);
    report.texts.push_back(judges_[i].name + " " + site.code->name + "+" + hex(site.pc - site.code->range.begin) +
                           (top == Cursor::Top::interrupted ? "  " : " (after call)  ") +
                           instruction_text(std::span(bytes).first(n), site.pc) + "\n    row " +
                           (has_row ? to_text(row, arch_) : "none") + "\n   " + wrong +
                           (way.empty() ? "" : "\n   " + way));
  }
}

/// Compares the caller of a callee whose first instruction is next. The caller is seen through the entry row: pc is a
/// return address, SP has its value before the call, and scratch registers have no value.
void Stepper::compare_after_call(const Site& call) {
  MemoryWindow window;
  Caller caller;
  if (!apply_row(entry_row(arch_), registers_, arch_, child_.memory(), window, caller)) return;
  // The callee preserves the registers of its own convention, whether the psABI does or not.
  for (const Wanted& w : wanted_)
    if (w.info->column >= 0) caller.registers.set_from(w.info->column, registers_, w.info->column);
  compare(activations_.back(), caller.registers, Cursor::Top::returned_to, call);
}

SingleStepRun Stepper::run() {
  Site before;
  Addr sp_before = 0;
  for (; out_.steps < options_.max_steps; ++out_.steps) {
    const SteppedChild::State state = child_.step();
    if (state == SteppedChild::State::killed) {
      fail("child " + child_.why() + " at " + hex(before.pc) + (before.code ? " in " + before.code->name : ""));
      break;
    }
    if (state == SteppedChild::State::exited) {
      if (child_.exit_status() != 0) fail("child exited with status " + std::to_string(child_.exit_status()));
      if (!activations_.empty()) fail("child exited inside of judged code");
      break;
    }
    child_.read_registers(arch_, registers_);
    const Site now = site_at(reg(arch_.pc));
    const bool concerns_us = now.code || before.code || !activations_.empty();
    if (now.code || before.code) {
      child_.memory().reload_around(reg(arch_.sp));
      if (wants_vectors_) vectors_ = child_.read_vector_registers();
    } else {
      child_.memory().forget();
    }
    if (concerns_us && !follow(before, sp_before, now)) break;
    if (now.code) {
      out_.visited.insert(now.pc);
      compare(activations_.back(), registers_, Cursor::Top::interrupted, now);
    }
    before = now;
    sp_before = reg(arch_.sp);
  }
  if (out_.steps == options_.max_steps) fail("child is not done after " + std::to_string(out_.steps) + " instructions");
  return std::move(out_);
}

}  // namespace

bool SingleStepRun::ok() const {
  return failure.empty() && std::ranges::all_of(reports, [](const SingleStepReport& r) {
           return r.instructions != 0 && r.mismatches == 0;
         });
}

std::string SingleStepRun::text() const {
  std::string text = std::to_string(steps) + " steps, " + std::to_string(activations) + " activations, " +
                     std::to_string(visited.size()) + " distinct instructions\n";
  if (!failure.empty()) text += "failed: " + failure + "\n";
  for (const SingleStepReport& r : reports) {
    text += std::to_string(r.instructions) + " instructions and " + std::to_string(r.after_calls) +
            " calls compared, " + std::to_string(r.mismatches) + " mismatches\n";
    for (const std::string& t : r.texts) text += "  " + t + "\n";
  }
  return text;
}

std::vector<Addr> SingleStepRun::missed(const void* begin, std::size_t size) const {
  std::vector<Addr> missed;
  for (const Addr at : instruction_starts(begin, size))
    if (!visited.contains(at)) missed.push_back(at);
  return missed;
}

SingleStepRun single_step(std::span<const SteppedCode> code, const std::function<int()>& body,
                          std::span<const SingleStepJudge> judges, const SingleStepOptions& options) {
  return Stepper(code, judges, options, body).run();
}

}  // namespace jitunwind::stepping
