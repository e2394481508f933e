// Proves that the single-step judgement notices wrong descriptions. Every directive of every idiom is dropped, shifted
// by one instruction, given another register and another value. Each mutant judges a run of the real code, whose body
// destroys every register it saved. A mutant that no boundary refutes must be equivalent: a symbolic execution of the
// instructions, which knows nothing of directives, has to prove each of its rows right.
//
// usage: mutations [--every N] [--list]     only each N-th idiom; lists the mutants that are equivalent
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_access_p.h"
#include "jitunwind/adapters/asmjit/asmjit_runtime.h"
#include "jitunwind/adapters/asmjit/derivation/frame_analysis_p.h"
#include "jitunwind/adapters/testing/single_step_p.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "tests/asmjit/idiom_programs.h"
#include "tests/rows/row_case.h"
#include "tests/support/call_below.h"

namespace jitunwind::test {
using namespace stepping;
namespace {

using derivation::FrameAnalysis;
using derivation::FrameState;
using derivation::Value;
using rows::CaseProcedure;
using rows::CaseRegion;

const Arch& k_arch = arch::x86_64;
using Regions = std::vector<CaseRegion>;

Regions regions_of(const Description& description) {
  Regions regions;
  for (const unw_dyn_region_info_t* r = description.shape().regions(); r != nullptr; r = r->next) {
    CaseRegion& region = regions.emplace_back();
    region.insn_count = r->insn_count;
    const unw_dyn_op_t* const first = r->op;
    region.ops.assign(first, first + r->op_count);
  }
  return regions;
}

struct Mutation {
  std::string kind;
  std::string text;
  Regions regions;
};

/// Returns the beginning of each region by insn_count; a negative one counts from the end.
std::vector<std::int64_t> region_starts(const Regions& regions, std::int64_t size) {
  std::vector<std::int64_t> starts;
  std::int64_t at = 0;
  for (const CaseRegion& region : regions) {
    starts.push_back(region.insn_count < 0 ? size + region.insn_count : at);
    at += region.insn_count;
  }
  return starts;
}

class Mutator {
 public:
  Mutator(const Regions& original, std::vector<std::int64_t> boundaries)
      : original_(original), boundaries_(std::move(boundaries)), starts_(region_starts(original, boundaries_.back())) {}

  std::vector<Mutation> all() {
    for (region_ = 0; region_ < original_.size(); ++region_)
      for (op_ = 0; op_ < original_[region_].ops.size(); ++op_) mutate();
    return std::move(made_);
  }

 private:
  const unw_dyn_op_t& op() const { return original_[region_].ops[op_]; }

  template <class Change>
  void make(const char* kind, Change change) {
    Mutation mutation{kind, {}, original_};
    change(mutation.regions[region_].ops);
    mutation.text = std::string(kind) + " of " + directive_text(op(), k_arch) + ", region " + std::to_string(region_) +
                    " directive " + std::to_string(op_);
    made_.push_back(std::move(mutation));
  }
  void make_op(const char* kind, const unw_dyn_op_t& changed) {
    make(kind, [&](auto& ops) { ops[op_] = changed; });
  }

  void mutate() {
    if (op().tag == UNW_DYN_STOP) return;
    make("drop", [&](auto& ops) { ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(op_)); });
    shift();
    registers();
    values();
  }

  /// Moves the directive's effect by one boundary back or forth (rule W: it takes effect at the boundary `when` + 1).
  void shift() {
    const std::int64_t at = starts_[region_] + op().when + 1;
    const auto found = std::lower_bound(boundaries_.begin(), boundaries_.end(), at);
    if (op().when < 0 || found == boundaries_.end() || *found != at) return;
    const auto to = [&](std::int64_t boundary) {
      unw_dyn_op_t changed = op();
      changed.when = static_cast<std::int32_t>(boundary - 1 - starts_[region_]);
      make_op(boundary < at ? "shift back" : "shift on", changed);
    };
    if (found != boundaries_.begin()) to(found[-1]);
    if (found + 1 != boundaries_.end()) to(found[1]);
  }

  static std::int16_t another(std::int64_t reg) {
    static const std::map<std::int64_t, std::int16_t> next{{3, 12}, {12, 13}, {13, 14}, {14, 15},
                                                           {15, 6}, {6, 3},   {7, 6},   {16, 3}};
    const auto found = next.find(reg);
    return found != next.end() ? found->second : static_cast<std::int16_t>(reg == 11 ? 10 : 11);
  }

  void registers() {
    unw_dyn_op_t changed = op();
    switch (op().tag) {
      case UNW_DYN_SAVE_REG:
        changed.val = static_cast<unw_word_t>(another(static_cast<std::int64_t>(op().val)));
        make_op("wrong register to", changed);
        changed = op();
        [[fallthrough]];
      case UNW_DYN_SPILL_FP_REL:
      case UNW_DYN_SPILL_SP_REL:
      case UNW_DYN_ADD:
        changed.reg = another(op().reg);
        make_op("wrong register", changed);
        break;
      default:
        break;
    }
  }

  void values() {
    const auto with = [&](unw_word_t value) {
      unw_dyn_op_t changed = op();
      changed.val = value;
      make_op("wrong value", changed);
    };
    switch (op().tag) {
      case UNW_DYN_SPILL_FP_REL:
      case UNW_DYN_SPILL_SP_REL:
      case UNW_DYN_ADD:
        if (op().val == UNW_DYN_ADD_UNKNOWN) return with(static_cast<unw_word_t>(-8));
        with(op().val + 8);
        with(op().val - 8);
        break;
      case UNW_DYN_POP_FRAMES:
      case UNW_DYN_LABEL_STATE:
      case UNW_DYN_COPY_STATE:
        with(op().val + 1);
        break;
      default:
        break;
    }
  }

  const Regions& original_;
  std::vector<std::int64_t> boundaries_;  // offsets of instructions, and the end
  std::vector<std::int64_t> starts_;
  std::size_t region_ = 0;
  std::size_t op_ = 0;
  std::vector<Mutation> made_;
};

/// Rows of one list of regions that is not registered.
class DirectiveRows final : public RowSource {
 public:
  DirectiveRows(const Regions& regions, AddrRange range) : procedure_(regions, range), range_(range) {}
  Found find_row(Lookup& lookup, FrameRow& out) const noexcept override {
    if (!range_.contains(lookup.at.lookup())) return false;
    const Status status = directive_row(procedure_.info(), k_arch, lookup.at, &lookup, out);
    if (!status) return status.error();
    return true;
  }
  /// Returns false if there is no row.
  bool row(CodeAddress at, FrameRow& out) const {
    return directive_row(procedure_.info(), k_arch, at, nullptr, out).has_value();
  }

 private:
  CaseProcedure procedure_;
  AddrRange range_;
};

// The proof: a row's caller is the one that the instructions have made.

Value location_value(const FrameState& state, const RegRule& rule, RegNum reg) {
  switch (rule.kind) {
    case RegRule::Kind::unspecified:
    case RegRule::Kind::same:
      return reg == k_arch.ra ? Value{} : state.reg(reg);
    case RegRule::Kind::at_cfa:
      return state.memory(Value::address(derivation::k_cfa_base, 0), rule.offset, 8);
    case RegRule::Kind::at_reg:
      return state.memory(state.reg(rule.reg), rule.offset, 8);
    case RegRule::Kind::in_reg:
      return state.reg(rule.reg);
    default:
      return {};
  }
}

bool cfa_is_right(const FrameState& state, const CfaRule& cfa) {
  if (cfa.kind == CfaRule::Kind::offset) {
    const Value& base = state.reg(cfa.reg);
    return base.is_cfa_address() && base.offset + cfa.offset == 0;
  }
  if (cfa.kind != CfaRule::Kind::deref) return false;
  const Value kept = state.memory(state.reg(cfa.reg), cfa.offset, 8);
  return kept.is_cfa_address() && kept.offset + cfa.add == 0;
}

bool row_is_right(const FrameState& state, const FrameRow& row) {
  if (!cfa_is_right(state, row.cfa)) return false;
  if (!location_value(state, row.rule(k_arch.ra), k_arch.ra).is_entry(k_arch.ra)) return false;
  for (const RegisterInfo& reg : k_arch.registers)
    if (reg.preserved && !location_value(state, row.rule(reg.dwarf), reg.dwarf).is_entry(reg.dwarf)) return false;
  return true;
}

struct Program {
  std::string name;
  AddrRange range{};
  Description description;
  derivation::CodeTrace trace;
};

/// Returns "" if every row of the mutant equals the original's or is proven right.
std::string find_unproven(const Program& program, const DirectiveRows& original, const DirectiveRows& mutant) {
  FrameAnalysis analysis(program.trace, k_arch);
  analysis.run();
  if (analysis.procedures().empty() || analysis.procedures().front().refusal) return "code that cannot be followed";
  const derivation::TracedProcedure& procedure = analysis.procedures().front();
  std::map<std::uint64_t, std::pair<bool, bool>>
      same_or_right;  // by offset: is the boundary reached; is the row proven
  const auto compare = [&](CodeAddress at, const FrameState* state) {
    FrameRow expected, row;
    const bool has_expected = original.row(at, expected), has_row = mutant.row(at, row);
    if (has_expected == has_row && (!has_row || expected == row)) return true;
    return has_row && state != nullptr && row_is_right(*state, row);
  };
  std::string unproven;
  std::optional<FrameState> before;  // what holds before a call, as its callee leaves it
  (void)analysis.visit(procedure, [&](const FrameAnalysis::Boundary& boundary) {
    const std::uint64_t offset = program.trace.instructions[boundary.instruction].begin;
    const Addr pc = program.range.begin + offset;
    const std::string here = "+" + std::to_string(offset);
    if (boundary.state != nullptr && !compare(CodeAddress::interrupted(pc), boundary.state)) unproven = here;
    // SP of a calling frame is the callee's CFA: SP before the call, whatever the callee removes from the stack.
    if (before && !compare(CodeAddress::returned_to(pc), &*before)) unproven = "call before " + here;
    before.reset();
    if (boundary.state != nullptr && analysis.calls(boundary.instruction)) {
      before = *boundary.state;
      before->forget_what_callees_use();
    }
    return unproven.empty();
  });
  return unproven;
}

struct Figures {
  bool list = false;
  std::size_t programs = 0;
  std::map<std::string, std::size_t> made, killed, equivalent;
  std::vector<std::string> survivors;

  static std::size_t total(const std::map<std::string, std::size_t>& counts) {
    std::size_t sum = 0;
    for (const auto& [kind, count] : counts) sum += count;
    return sum;
  }
  void print() const {
    std::printf("%zu procedures, body destroys every saved register\n", programs);
    std::printf("  %-18s %9s %9s %12s %9s\n", "mutation", "made", "killed", "equivalent", "survived");
    const auto line = [](const char* kind, std::size_t m, std::size_t k, std::size_t e) {
      std::printf("  %-18s %9zu %9zu %12zu %9zu\n", kind, m, k, e, m - k - e);
    };
    for (const auto& [kind, count] : made)
      line(kind.c_str(), count, killed.contains(kind) ? killed.at(kind) : 0,
           equivalent.contains(kind) ? equivalent.at(kind) : 0);
    line("together", total(made), total(killed), total(equivalent));
    const double relevant = static_cast<double>(total(made) - total(equivalent));
    std::printf("kill rate %.4f%% of those that are not proven equivalent\n",
                relevant > 0 ? 100.0 * static_cast<double>(total(killed)) / relevant : 0.0);
    for (const std::string& survivor : survivors) std::printf("  survived: %s\n", survivor.c_str());
  }
};

/// Steps through the program once, with all mutants as judges.
void judge(const Program& program, Figures& figures) {
  const Regions regions = regions_of(program.description);
  std::vector<std::int64_t> boundaries;
  for (const Addr at : instruction_starts(reinterpret_cast<const void*>(program.range.begin), program.range.size()))
    boundaries.push_back(static_cast<std::int64_t>(at - program.range.begin));
  boundaries.push_back(static_cast<std::int64_t>(program.range.size()));
  const std::vector<Mutation> mutations = Mutator(regions, boundaries).all();

  const DirectiveRows original(regions, program.range);
  std::vector<std::unique_ptr<DirectiveRows>> mutants;
  std::vector<SingleStepJudge> judges{{"original", {&original}}};
  for (const Mutation& mutation : mutations) {
    mutants.push_back(std::make_unique<DirectiveRows>(mutation.regions, program.range));
    judges.push_back({mutation.text, {mutants.back().get()}});
  }
  SingleStepOptions options;
  options.max_texts = 0;
  const auto entry = reinterpret_cast<void (*)()>(program.range.begin);
  const std::vector<SteppedCode> code{{program.name, program.range}};
  // Takes both exits, each at every alignment that a procedure may meet: a realigned frame moves SP by different
  // amounts.
  const auto body = [&] {
    for (std::size_t bytes = 0; bytes < 64; bytes += 16)
      for (int turn = 0; turn < 2; ++turn) call_below(entry, bytes);
    return 0;
  };
  const SingleStepRun run = single_step(code, body, judges, options);
  if (!run.failure.empty() || run.reports.front().mismatches != 0 || run.reports.front().instructions == 0)
    throw std::runtime_error(program.name + ": the original is wrong: " + run.text());
  ++figures.programs;
  for (std::size_t i = 0; i < mutations.size(); ++i) {
    const Mutation& mutation = mutations[i];
    ++figures.made[mutation.kind];
    if (run.reports[i + 1].mismatches != 0) {
      ++figures.killed[mutation.kind];
      continue;
    }
    const std::string unproven = find_unproven(program, original, *mutants[i]);
    if (unproven.empty()) {
      ++figures.equivalent[mutation.kind];
      if (figures.list) std::printf("  equivalent: %s: %s\n", program.name.c_str(), mutation.text.c_str());
    } else {
      figures.survivors.push_back(program.name + ": " + mutation.text + ": not proven at " + unproven);
    }
  }
}

void run_program(const IdiomWish& wish, AsmjitRuntime& runtime, Figures& figures) {
  asmjit::CodeHolder code;
  code.init(runtime.environment());
  AsmjitAssembler a(&code);
  const IdiomProgram written = write_idioms(a, wish);
  if (written.description.format() != UNW_INFO_FORMAT_DYNAMIC) return;
  Program program{"idioms " + wish.text(), {}, written.description, {}};
  const derivation::TraceRecorder* const recorder = AsmjitAccess::recorder(a);
  program.trace = *derivation::TraceRecorder::trace({&recorder, 1}, code);
  std::uint8_t* start = nullptr;
  if (runtime.add(&start, &code) != asmjit::kErrorOk) throw std::runtime_error(program.name + ": add");
  const Addr at = reinterpret_cast<std::uintptr_t>(start);
  program.range = {at, at + written.size};
  judge(program, figures);
  runtime.release(start);
}

int prove(std::size_t every, bool list) {
  std::vector<IdiomWish> wishes = all_idiom_wishes();
  const std::size_t loops =
      std::erase_if(wishes, [](const IdiomWish& w) { return w.memory == IdiomWish::Memory::probed; });
  std::printf("%zu idioms; left out are %zu with loops that move SP, of which there is no second opinion\n",
              wishes.size(), loops);
  Figures figures;
  figures.list = list;
  AsmjitRuntime runtime{AsmjitRuntimeOptions{.undescribed = Undescribed::add}};
  for (std::size_t i = 0; i < wishes.size(); i += every) {
    run_program(wishes[i], runtime, figures);
    if (i / every % 500 == 499) {
      std::printf("%zu of %zu idioms\n", i + 1, wishes.size());
      std::fflush(stdout);
    }
  }
  figures.print();
  const bool ok = figures.programs != 0 && figures.survivors.empty() && Figures::total(figures.killed) != 0;
  std::printf("%s\n", ok ? "passed" : "FAILED");
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace jitunwind::test

int main(int count, char** arguments) try {
  std::size_t every = 1;
  bool list = false;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--list")
      list = true;
    else if (argument == "--every" && i + 1 < count)
      every = std::strtoul(arguments[++i], nullptr, 10);
    else
      every = 0;
  }
  if (every == 0) return std::fprintf(stderr, "usage: mutations [--every N] [--list]\n"), 2;
  return jitunwind::test::prove(every, list);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
