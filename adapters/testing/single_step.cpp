#include "jitunwind/adapters/testing/single_step_p.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>

#include "jitunwind/adapters/testing/instruction_p.h"
#include "jitunwind/adapters/testing/stepped_child_p.h"
#include "jitunwind/unwind_core/no_modules.h"
#include "jitunwind/unwind_core/rows/apply_row.h"
#include "jitunwind/unwind_core/rows/row_text.h"
#include "jitunwind/unwind_core/walk/cursor.h"

namespace jitunwind::stepping {

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
  bool enter();
  bool leave_finished(Addr pc);
  bool check_kept(const Activation& activation);

  void compare(const Activation& truth, const RegisterFile& frame, Cursor::Top top, const Site& site);
  std::string differences(const Activation& truth, const RegisterFile& frame, Cursor& cursor, const FrameRow& row);
  std::string vector_difference(const Wanted& wanted, const Activation& truth, const RegisterFile& frame,
                                const FrameRow& row, Addr cfa);
  void compare_after_call(const Site& call);

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
  std::array<std::byte, k_max_instruction_bytes> bytes;
  MemoryWindow window;
  const std::size_t n = child_.memory().read(pc, bytes, window);
  site.instruction = decode_instruction(std::span(bytes).first(n)).value_or(MachineInstruction{});
  return sites_[pc] = site;
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

/// Starts an activation whose first instruction is next.
bool Stepper::enter() {
  Activation a;
  const Addr sp = reg(arch_.sp);
  a.cfa = sp + static_cast<Addr>(arch_.entry_cfa);
  a.return_address = word_at(a.cfa + static_cast<Addr>(std::int64_t{arch_.entry_ra}));
  a.registers = registers_;
  a.vectors = vectors_;
  activations_.push_back(a);
  ++out_.activations;
  return true;
}

bool Stepper::check_kept(const Activation& a) {
  for (const Wanted& w : wanted_) {
    if (w.info->reg_class == RegClass::vector) {
      const auto i = static_cast<std::size_t>(w.info->dwarf - arch_.by_name("xmm0")->dwarf);
      if (vectors_[i] != a.vectors[i])
        return fail("procedure returned to " + hex(a.return_address) + " with " + w.name + " changed");
    } else if (registers_.value(w.info->column) != a.registers.value(w.info->column)) {
      return fail("procedure returned to " + hex(a.return_address) + " with " + w.name + " changed");
    }
  }
  return true;
}

bool Stepper::leave_finished(Addr pc) {
  if (activations_.empty()) return true;
  const Activation& top = activations_.back();
  if (top.return_address != pc || reg(arch_.sp) < top.cfa) return true;
  const bool kept = check_kept(top);
  activations_.pop_back();
  return kept;
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
    if (now.code) return enter();
    caller.away = {word_at(reg(arch_.sp)), reg(arch_.sp) + arch_.word_size};
    return true;
  }
  if (!leave_finished(now.pc)) return false;
  if (!now.code) return true;
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
  return enter();
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
  const ModuleFinder& modules = options_.modules ? *options_.modules : static_cast<const ModuleFinder&>(no_modules_);
  for (std::size_t i = 0; i < judges_.size(); ++i) {
    SingleStepReport& report = out_.reports[i];
    const AddressSpace space{arch_, child_.memory(), modules, judges_[i].sources, {}};
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
    report.texts.push_back(judges_[i].name + " " + site.code->name + "+" + hex(site.pc - site.code->range.begin) +
                           (top == Cursor::Top::interrupted ? "  " : " (after call)  ") +
                           instruction_text(std::span(bytes).first(n), site.pc) + "\n    row " +
                           (has_row ? to_text(row, arch_) : "none") + "\n   " + wrong);
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
