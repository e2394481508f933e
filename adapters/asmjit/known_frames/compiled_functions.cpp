#include "jitunwind/adapters/asmjit/known_frames/compiled_functions_p.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_access_p.h"
#include "jitunwind/adapters/asmjit/asmjit_version_p.h"
#include "jitunwind/adapters/asmjit/derivation/frame_description_p.h"
#include "jitunwind/adapters/asmjit/instruction_effects_p.h"

namespace jitunwind::derivation {
namespace {

namespace v = asmjit_version;
using ::asmjit::BaseNode;
using ::asmjit::CodeHolder;
using ::asmjit::FuncFrame;
using Bytes = std::span<const std::uint8_t>;

/// The code that asmjit writes for a FuncFrame, and the description of every function with it, whatever its body is.
struct KnownFrame {
  std::vector<std::uint8_t> prolog, epilog;
  std::size_t prolog_instructions = 0, epilog_instructions = 0;
  RegSet relied_on = 0;                    ///< registers that a body must leave alone
  std::optional<Description> description;  ///< none: there is none for every size
};

/// The registers that a body with this frame may change: all but SP, a frame pointer, and what callers rely on and the
/// prologue has not saved.
std::vector<::asmjit::Operand> changed_by_body(const FuncFrame& frame) {
  namespace x86 = ::asmjit::x86;
  const auto saved_or_free = [&](::asmjit::RegGroup group) {
    return v::saved_registers(frame, group) | ~static_cast<std::uint32_t>(v::preserved_registers(frame, group));
  };
  const std::uint32_t general = saved_or_free(::asmjit::RegGroup::kGp),
                      vector = saved_or_free(::asmjit::RegGroup::kVec);
  std::vector<::asmjit::Operand> out;
  for (std::uint32_t id = 0; id < 16; ++id) {
    const bool is_frame_pointer = id == x86::Gp::kIdBp && v::has_preserved_fp(frame);
    if (id != x86::Gp::kIdSp && !is_frame_pointer && (general >> id & 1) != 0) out.push_back(x86::gpq(id));
    if ((vector >> id & 1) != 0) out.push_back(x86::xmm(id));
  }
  return out;
}

/// A function with some frame: prologue, a body that changes all that it may, epilogue, and code behind it with the
/// frame of the body. asmjit's Compiler puts there what follows from its choice of registers.
class SampleFunction {
 public:
  SampleFunction(const FuncFrame& frame, const ::asmjit::BaseEmitter& compiler, const CodeHolder& like)
      : frame_(frame) {
    if (v::init_like(code_, like) != ::asmjit::kErrorOk || code_.attach(&a_) != ::asmjit::kErrorOk ||
        !AsmjitAccess::recorder(a_))
      throw std::bad_alloc();
    v::copy_encoding_options(compiler, a_);
  }

  KnownFrame learn(std::uint32_t behind);

 private:
  bool write(std::uint32_t behind);
  /// Writes a byte.
  bool change(std::initializer_list<::asmjit::Operand> registers = {}) {
    return a_.embed_instruction(std::array<std::uint8_t, 1>{0x90}, registers) == ::asmjit::kErrorOk;
  }
  std::uint32_t here() const { return static_cast<std::uint32_t>(a_.offset()); }

  const FuncFrame& frame_;
  const std::vector<::asmjit::Operand> changed_ = changed_by_body(frame_);
  CodeHolder code_;
  AsmjitAssembler a_;
  std::uint32_t body_ = 0, epilog_ = 0, epilog_end_ = 0;
};

bool SampleFunction::write(std::uint32_t behind) {
  constexpr std::uint32_t k_ud2_size = 2;
  if ((behind != 0 && behind < k_ud2_size) || v::emit_prolog(a_, frame_) != ::asmjit::kErrorOk) return false;
  body_ = here();
  if (!std::ranges::all_of(changed_, [&](const ::asmjit::Operand& reg) { return change({reg}); })) return false;
  if (v::has_func_calls(frame_) && a_.call(::asmjit::x86::rax) != ::asmjit::kErrorOk) return false;
  const ::asmjit::Label rest = v::new_label(a_);
  if (behind != 0 && a_.jz(rest) != ::asmjit::kErrorOk) return false;
  epilog_ = here();
  if (v::emit_epilog(a_, frame_) != ::asmjit::kErrorOk || a_.bind(rest) != ::asmjit::kErrorOk) return false;
  epilog_end_ = here();
  if (behind == 0) return true;
  while (here() != epilog_end_ + behind - k_ud2_size)
    if (!change()) return false;
  return a_.ud2() == ::asmjit::kErrorOk;
}

KnownFrame SampleFunction::learn(std::uint32_t behind) {
  KnownFrame out;
  if (!write(behind)) return out;
  const TraceRecorder* const recorder = AsmjitAccess::recorder(a_);
  const auto trace = TraceRecorder::trace({&recorder, 1}, code_);
  if (!trace) return out;
  FrameAnalysis analysis(*trace, arch::x86_64);
  analysis.run();
  const auto& procedures = analysis.procedures();
  if (procedures.size() != 1 || procedures.front().refusal || procedures.front().end != here()) return out;
  auto description = derivation::describe(analysis, procedures.front(), *trace, arch::x86_64, epilog_);
  const Bytes bytes = v::section_bytes(code_, 0);
  out.prolog.assign(bytes.begin(), bytes.begin() + body_);
  out.epilog.assign(bytes.begin() + epilog_, bytes.begin() + epilog_end_);
  for (const TracedInstruction& i : trace->instructions) {
    out.prolog_instructions += i.begin < body_;
    out.epilog_instructions += i.begin >= epilog_ && i.begin < epilog_end_;
  }
  out.relied_on = ~named_registers(changed_).operands;
  if (description && !description->size()) out.description = std::move(*description);
  return out;
}

/// The frames of this process. Programs have some dozens; a generator of all sizes starts anew. `behind`: bytes of code
/// behind the epilogue.
std::shared_ptr<const KnownFrame> find_or_learn(const FuncFrame& frame, std::uint32_t behind,
                                                const ::asmjit::BaseEmitter& compiler, const CodeHolder& code) {
  static_assert(std::is_trivially_copyable_v<FuncFrame>);
  constexpr std::size_t k_most = 1024;
  static std::mutex lock;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Known = std::unordered_map<std::string, std::shared_ptr<const KnownFrame>, Hash, std::equal_to<>>;
  static auto& known = *new Known;  // for exiting threads
  // Prologues save those of the changed registers that callers rely on; the others make no difference.
  struct Key {
    FuncFrame alike;
    std::uint32_t behind;
  };
  static_assert(sizeof(Key) == sizeof(FuncFrame) + sizeof behind, "no padding");
  Key key{frame, behind};
  for (auto i = 0u; i <= static_cast<unsigned>(::asmjit::RegGroup::kMaxVirt); ++i) {
    const auto group = static_cast<::asmjit::RegGroup>(i);
    v::set_dirty_registers(key.alike, group, v::saved_registers(frame, group));
  }
  const std::string_view bytes(reinterpret_cast<const char*>(&key), sizeof key);
  {
    const std::lock_guard guard(lock);
    if (const auto found = known.find(bytes); found != known.end()) return found->second;
  }
  auto learned = std::make_shared<const KnownFrame>(SampleFunction(frame, compiler, code).learn(behind));
  const std::lock_guard guard(lock);
  if (known.size() == k_most) known.clear();
  return known.try_emplace(std::string(bytes), std::move(learned)).first->second;
}

/// One function of the code, by offsets in its section.
class CompiledFunction {
 public:
  CompiledFunction(const v::FunctionNode& function, const CodeHolder& code) noexcept
      : function_(function),
        code_(code),
        entry_(v::bound_label(code, function.label)),
        exit_(v::bound_label(code, function.exit_label)) {}

  std::optional<AsmjitProcedure> describe(const ::asmjit::BaseEmitter& compiler) {
    if (!entry_.bound || !exit_.bound || entry_.section != exit_.section || !function_.end) return std::nullopt;
    frame_ = find_or_learn(*function_.frame, 0, compiler, code_);
    if (!has_known_bytes()) return std::nullopt;
    if (const auto behind = code_behind_epilog(); !behind)
      return std::nullopt;
    else if (*behind != 0)
      frame_ = find_or_learn(*function_.frame, behind_ = *behind, compiler, code_);
    if (!frame_->description || !frame_->description->check_size(end() - entry_.offset) || !has_plain_body())
      return std::nullopt;
    const std::uint64_t base = v::section_by_id(code_, entry_.section)->offset();
    return AsmjitProcedure{{}, base + entry_.offset, base + end(), *frame_->description};
  }

 private:
  std::uint64_t epilog_end() const noexcept { return exit_.offset + frame_->epilog.size(); }
  std::uint64_t end() const noexcept { return epilog_end() + behind_; }
  const ::asmjit::Section& section() const { return *v::section_by_id(code_, entry_.section); }
  bool has_known_bytes() const {
    const Bytes bytes{section().data(), v::buffer_size(section())};
    return epilog_end() <= bytes.size() && entry_.offset + frame_->prolog.size() <= exit_.offset &&
           std::ranges::equal(bytes.subspan(entry_.offset, frame_->prolog.size()), frame_->prolog) &&
           std::ranges::equal(bytes.subspan(exit_.offset, frame_->epilog.size()), frame_->epilog);
  }
  std::optional<std::uint32_t> code_behind_epilog() const;
  bool has_plain_body();
  bool is_plain(BaseNode& node);
  bool is_in_body(LabelId label) const {
    const v::BoundLabel at = v::bound_label(code_, label);
    return at.bound && at.section == entry_.section && at.offset >= entry_.offset + frame_->prolog.size() &&
           (at.offset <= exit_.offset || (at.offset >= epilog_end() && at.offset < end()));
  }
  bool stays(const Effect& effect, BaseNode& node) const;

  const v::FunctionNode& function_;
  const CodeHolder& code_;
  const v::BoundLabel entry_, exit_;
  std::uint32_t behind_ = 0;
  std::shared_ptr<const KnownFrame> frame_;
  const std::span<const RegSet> implicit_ = implicit_changes();
  std::vector<Effect> effects_;
};

/// The size of the function's code behind its epilogue, known if nothing follows it.
std::optional<std::uint32_t> CompiledFunction::code_behind_epilog() const {
  std::size_t count = 0;
  for (const BaseNode* node = function_.exit; node != function_.end; node = node->next()) {
    if (!node) return std::nullopt;
    count += v::is_instruction(*node);
  }
  if (count == frame_->epilog_instructions) return 0;
  for (const BaseNode* node = function_.exit; node; node = node->next())
    if (!v::is_instruction(*node) && !v::writes_nothing(*node) && node != function_.end) return std::nullopt;
  return static_cast<std::uint32_t>(v::buffer_size(section()) - epilog_end());
}

bool CompiledFunction::has_plain_body() {
  std::size_t in_prolog = frame_->prolog_instructions, in_epilog = frame_->epilog_instructions;
  bool is_behind = false;
  for (BaseNode* node = function_.node->next(); node != function_.end; node = node->next()) {
    if (!node || node->type() == ::asmjit::NodeType::kSection) return false;
    is_behind |= node == function_.exit;
    if (!v::is_instruction(*node)) continue;
    std::size_t& left = is_behind ? in_epilog : in_prolog;
    if (left != 0)
      --left;
    else if (!is_plain(*node))
      return false;
  }
  return is_behind && in_epilog == 0;
}

bool CompiledFunction::is_plain(BaseNode& node) {
  const auto& instruction = *node.as<::asmjit::InstNode>();
  const std::span<const ::asmjit::Operand> operands = v::operands(instruction);
  if ((named_registers(operands).operands & frame_->relied_on) != 0) return false;
  const std::uint32_t id = v::instruction_id(instruction.baseInst());
  const RegSet implicit = implicit_[id];
  constexpr RegSet k_sp = set_of(7);
  if ((implicit & ~k_sp & frame_->relied_on) != 0) return false;
  if ((implicit & k_sp) == 0) return true;
  if (Effect flow; flow_effect(id, implicit, as_base(operands), flow)) return stays(flow, node);
  effects_.clear();
  append_stack_and_flow(instruction.baseInst(), operands, effects_);
  return std::ranges::all_of(effects_, [&](const Effect& effect) { return stays(effect, node); });
}

/// Whether control stays in the body, or comes back to it, with the same frame.
bool CompiledFunction::stays(const Effect& effect, BaseNode& node) const {
  switch (effect.kind) {
    case Effect::Kind::branch:
    case Effect::Kind::jump:
      return is_in_body(effect.label);
    case Effect::Kind::jump_indirect: {
      const std::vector<LabelId> targets = v::annotated_targets(node);
      return !targets.empty() && std::ranges::all_of(targets, [&](LabelId label) { return is_in_body(label); });
    }
    case Effect::Kind::call:
      return v::bytes_popped_by_callee(node) == 0 && (effect.label == k_no_label || !is_in_body(effect.label));
    case Effect::Kind::trap:
      return true;
    case Effect::Kind::clobber:
      return (effect.set & frame_->relied_on) == 0;
    default:
      return false;
  }
}

/// A procedure has the name of the last label that is bound to its begin. False: a name is at another place, where a
/// procedure may begin.
bool add_names(const CodeHolder& code, std::vector<AsmjitProcedure>& procedures) {
  for (LabelId id = 0; id < v::label_count(code); ++id) {
    const v::BoundLabel label = v::bound_label(code, id);
    if (!label.bound || label.name.empty()) continue;
    const std::uint64_t place = v::section_by_id(code, label.section)->offset() + label.offset;
    const auto named = std::ranges::find(procedures, place, &AsmjitProcedure::begin);
    if (named == procedures.end()) return false;
    named->name = label.name;
    named->description = named->description.renamed(named->name);
  }
  return true;
}

}  // namespace

std::optional<AsmjitDescription> describe_compiled(const CodeHolder& code) {
  ::asmjit::BaseEmitter* only = nullptr;
  std::size_t emitters = 0;
  v::visit_emitters(code, [&](::asmjit::BaseEmitter& e) { only = &e, ++emitters; });
  if (emitters != 1 || !v::is_compiler(*only)) return std::nullopt;
  const auto& compiler = *only->as<::asmjit::BaseBuilder>();
  std::optional<AsmjitDescription> out(std::in_place);
  for (BaseNode* node = v::first_node(compiler); node; node = node->next()) {
    if (v::is_function(*node)) {
      const v::FunctionNode function = v::function_node(*node);
      auto procedure = CompiledFunction(function, code).describe(compiler);
      if (!procedure) return std::nullopt;
      out->procedures.push_back(std::move(*procedure));
      node = function.end;
    } else if (v::is_instruction(*node)) {
      return std::nullopt;
    }
  }
  if (out->procedures.empty() || !add_names(code, out->procedures)) return std::nullopt;
  std::ranges::sort(out->procedures, {}, &AsmjitProcedure::begin);
  return out;
}

}  // namespace jitunwind::derivation
