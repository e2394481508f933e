#include "tests/asmjit/frame_runs.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>

#include "jitunwind/adapters/asmjit/asmjit_assembler.h"
#include "jitunwind/adapters/asmjit/asmjit_builder.h"
#include "jitunwind/adapters/asmjit/asmjit_code.h"
#include "jitunwind/adapters/asmjit/asmjit_runtime.h"
#include "jitunwind/adapters/testing/single_step_p.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "tests/asmjit/asmjit_names.h"
#include "tests/support/call_below.h"
#include "tests/support/described_code.h"

namespace jitunwind::test {
using namespace stepping;
namespace {

std::unique_ptr<asmjit::BaseEmitter> new_emitter(EmitterKind kind) {
  switch (kind) {
    case EmitterKind::assembler:
      return std::make_unique<AsmjitAssembler>();
    case EmitterKind::builder:
      return std::make_unique<AsmjitBuilder>();
    case EmitterKind::plain_builder:
      return std::make_unique<asmjit::x86::Builder>();
    case EmitterKind::compiler:
      break;
  }
  return std::make_unique<asmjit::x86::Compiler>();
}

/// Procedures in memory that are called and judged in one run.
class Batch {
 public:
  explicit Batch(EmitterKind kind) : kind_(kind) {}

  void add(std::span<const FrameWish> wishes);
  /// Registers the code with the description that the adapter derives.
  void add(const IdiomWish& wish);
  void run(const std::vector<RegNum>& preserved);
  FrameRunFigures figures;

 private:
  void add_described(asmjit::CodeHolder& code, std::span<const FrameWish> wishes);
  void add_procedure(const std::string& name, AddrRange range, const Description& description);
  void fail(const std::string& text) { figures.failures += text + "\n"; }

  EmitterKind kind_;
  AsmjitRuntime runtime_{AsmjitRuntimeOptions{.undescribed = Undescribed::add}};
  std::vector<SteppedCode> procedures_;
  std::vector<void (*)()> entries_;
  std::set<const void*> shapes_;
  DescribedCode described_;
};

/// One CodeHolder with a procedure for each wish and constants between them.
void Batch::add(std::span<const FrameWish> wishes) {
  asmjit::CodeHolder code;
  code.init(runtime_.environment());
  const auto emitter = new_emitter(kind_);
  if (code.attach(emitter.get()) != asmjit::kErrorOk) return fail("attach");
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    try {
      emit_frame(*emitter, kind_, wishes[i], new_named_label(*emitter, ("shape_" + std::to_string(i)).c_str()));
    } catch (const std::runtime_error& error) {
      return fail(wishes[i].text() + ": " + error.what());
    }
    embed_u64(*emitter, 0x0123456789abcdef);
    emitter->align(asmjit::AlignMode::kCode, 16);
  }
  if (emitter->finalize() != asmjit::kErrorOk) return fail("finalize: " + wishes.front().text());
  add_described(code, wishes);
}

void Batch::add_described(asmjit::CodeHolder& code, std::span<const FrameWish> wishes) {
  const AsmjitDescription description = describe_asmjit(code);
  if (!description.complete()) fail(description.text());
  if (description.procedures.size() != wishes.size())
    fail(std::to_string(description.procedures.size()) + " procedures of " + std::to_string(wishes.size()));
  std::uint8_t* start = nullptr;
  if (runtime_.add(&start, &code) != asmjit::kErrorOk) return fail("add");
  for (const AsmjitProcedure& p : description.procedures) {
    const Addr at = reinterpret_cast<std::uintptr_t>(start);
    const std::size_t index = std::stoul(p.name.substr(p.name.find('_') + 1));
    add_procedure(p.name + " " + wishes[index].text(), {at + p.begin, at + p.end}, p.description);
  }
}

void Batch::add_procedure(const std::string& name, AddrRange range, const Description& description) {
  procedures_.push_back({name, range});
  entries_.push_back(reinterpret_cast<void (*)()>(range.begin));
  described_.add(range, description);
  shapes_.insert(description.shape().regions());
  ++figures.procedures;
  figures.with_directives += description.format() == UNW_INFO_FORMAT_DYNAMIC;
}

void Batch::add(const IdiomWish& wish) {
  asmjit::CodeHolder code;
  code.init(runtime_.environment());
  AsmjitAssembler a(&code);
  std::uint8_t* start = nullptr;
  try {
    const IdiomProgram program = write_idioms(a, wish);
    const AsmjitDescription derived = describe_asmjit(code);
    if (!derived.complete()) fail(wish.text() + ": refusals: " + derived.text());
    if (runtime_.add(&start, &code) != asmjit::kErrorOk) return fail("add: " + wish.text());
    const Addr at = reinterpret_cast<std::uintptr_t>(start);
    add_procedure("idioms " + wish.text(), {at, at + program.size}, program.description);
  } catch (const std::runtime_error& error) {
    fail(wish.text() + ": " + error.what());
  }
}

void Batch::run(const std::vector<RegNum>& preserved) {
  if (procedures_.empty()) return;
  const std::vector<SingleStepJudge> judges = {{"description", {&described_}}, {"registry", {&dyn_row_source()}}};
  SingleStepOptions options;
  options.preserved = preserved;
  const auto body = [this] {
    // Each is called twice: some procedures take turns between two exits, and realigned frames move SP by an amount
    // that depends on where it was.
    for (void (*entry)() : entries_) call_below(entry, 0), call_below(entry, 16);
    return 0;
  };
  const SingleStepRun run = single_step(procedures_, body, judges, options);
  for (const SingleStepReport& report : run.reports) {
    figures.instructions += report.instructions;
    figures.after_calls += report.after_calls;
    figures.mismatches += report.mismatches;
  }
  if (!run.ok()) fail(run.text());
  for (const SteppedCode& code : procedures_) {
    const auto missed = run.missed(reinterpret_cast<const void*>(code.range.begin), code.range.size());
    figures.missed += missed.size();
    if (!missed.empty()) fail(code.name + ": " + std::to_string(missed.size()) + " instructions never ran");
  }
  figures.frame_shapes = shapes_.size();
}

}  // namespace

void FrameRunFigures::add(const FrameRunFigures& other) {
  using F = FrameRunFigures;
  for (const auto count : {&F::shapes, &F::procedures, &F::with_directives, &F::frame_shapes, &F::instructions,
                           &F::after_calls, &F::mismatches, &F::missed})
    this->*count += other.*count;
  failures += other.failures;
}

std::string FrameRunFigures::text() const {
  return std::to_string(shapes) + " shapes, " + std::to_string(procedures) + " procedures (" +
         std::to_string(with_directives) + " by directives, sharing " + std::to_string(frame_shapes) +
         " frame shapes), " + std::to_string(instructions) + " instructions and " + std::to_string(after_calls) +
         " calls compared, " + std::to_string(missed) + " never ran, " + std::to_string(mismatches) + " mismatches";
}

FrameRunFigures run_frames(EmitterKind kind, std::span<const FrameWish> wishes, std::size_t together) {
  FrameRunFigures all;
  // A run compares one set of registers.
  std::map<std::vector<RegNum>, std::vector<FrameWish>> by_convention;
  for (const FrameWish& wish : wishes)
    if (kind != EmitterKind::plain_builder || follows_psabi(wish.convention))
      by_convention[preserved_by(wish.convention)].push_back(wish);
  for (const auto& [preserved, group] : by_convention) {
    Batch batch(kind);
    for (std::size_t i = 0; i < group.size(); i += together)
      batch.add(std::span(group).subspan(i, std::min(together, group.size() - i)));
    batch.run(preserved);
    batch.figures.shapes = group.size();
    all.add(batch.figures);
  }
  return all;
}

FrameRunFigures run_idioms(std::span<const IdiomWish> wishes) {
  Batch batch(EmitterKind::assembler);
  for (const IdiomWish& wish : wishes) batch.add(wish);
  batch.run(preserved_by(asmjit::CallConvId::kCDecl));
  batch.figures.shapes = wishes.size();
  return batch.figures;
}

}  // namespace jitunwind::test
