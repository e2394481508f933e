#include "jitunwind/adapters/asmjit/asmjit_assembler.h"

#include <array>
#include <new>
#include <vector>

#include "jitunwind/adapters/asmjit/asmjit_access_p.h"
#include "jitunwind/adapters/asmjit/asmjit_version_p.h"

namespace jitunwind {
namespace {

namespace v = asmjit_version;
using derivation::CodePlace;

}  // namespace

AsmjitAssembler::AsmjitAssembler(asmjit::CodeHolder* code) noexcept
    : asmjit::x86::Assembler(nullptr), recorder_(derivation::TraceRecorder::take()) {
  // The base constructor would attach before this class's virtual functions are in place.
  if (code) (void)code->attach(this);
}

AsmjitAssembler::~AsmjitAssembler() noexcept = default;

void AsmjitAssembler::GiveBack::operator()(derivation::TraceRecorder* recorder) const noexcept {
  derivation::TraceRecorder::give_back(recorder);
}

void AsmjitAssembler::procedure(std::string_view name) noexcept {
  if (!recorder_) return;
  try {
    recorder_->start({v::place_of(*this), std::string(name), 0, true});
  } catch (const std::bad_alloc&) {
    recorder_.reset();
  }
}

void AsmjitAssembler::callee_pops(std::int64_t bytes) noexcept {
  if (recorder_) recorder_->callee_pops(bytes);
}

void AsmjitAssembler::jump_targets(std::span<const asmjit::Label> labels) noexcept {
  if (!recorder_) return;
  try {
    std::vector<derivation::LabelId> ids;
    for (const asmjit::Label& label : labels) ids.push_back(label.id());
    recorder_->jumps_to(std::move(ids));
  } catch (const std::bad_alloc&) {
    recorder_.reset();
  }
}

AsmjitCallSite AsmjitAssembler::call_site(const asmjit::Label& begin, const asmjit::Label& end,
                                          const asmjit::Label& landing_pad) noexcept {
  return {recorder_.get(), recorder_ ? recorder_->call_site(begin.id(), end.id(), landing_pad.id()) : nullptr};
}

void AsmjitAssembler::terminates(const asmjit::Label& begin, const asmjit::Label& end) noexcept {
  if (recorder_) (void)recorder_->call_site(begin.id(), end.id(), derivation::k_no_label);
}

void AsmjitAssembler::handled_by(FrameHandler handler) noexcept {
  if (recorder_) recorder_->frame_handler(v::place_of(*this), std::move(handler));
}

template <class Say>
AsmjitCallSite& AsmjitCallSite::because(Say say) noexcept {
  if (site_) recorder_->reason(*site_, say);
  return *this;
}

AsmjitCallSite& AsmjitCallSite::catches(const std::type_info& type) noexcept {
  return because([&type](x86_64::Builder& b) { b.catches(type); });
}

AsmjitCallSite& AsmjitCallSite::catches_all() noexcept {
  return because([](x86_64::Builder& b) { b.catches_all(); });
}

AsmjitCallSite& AsmjitCallSite::cleans_up() noexcept {
  return because([](x86_64::Builder& b) { b.cleans_up(); });
}

AsmjitCallSite& AsmjitCallSite::allows(std::initializer_list<const std::type_info*> types) noexcept {
  return because([types = std::vector(types)](x86_64::Builder& b) { b.allows(types); });
}

asmjit::Error AsmjitAssembler::_emit(asmjit::InstId id, const asmjit::Operand_& o0, const asmjit::Operand_& o1,
                                     const asmjit::Operand_& o2, const asmjit::Operand_* more) {
  const bool is_plain = v::has_no_options(*this) && v::is_none(more[0]);
  if (!is_plain || !recorder_ || !recorder_->begin(v::current_section(*this), offset(), id, o0, o1, o2)) [[unlikely]]
    return emit_other(id, o0, o1, o2, more);
  const asmjit::Error error = asmjit::x86::Assembler::_emit(id, o0, o1, o2, more);
  recorder_->end(v::written_buffer(*this));
  return error;
}

/// Emits an instruction with options or many operands, over or before others, or for which there is no room yet.
asmjit::Error AsmjitAssembler::emit_other(asmjit::InstId id, const asmjit::Operand_& o0, const asmjit::Operand_& o1,
                                          const asmjit::Operand_& o2, const asmjit::Operand_* more) {
  const CodePlace place = v::place_of(*this);
  const bool is_plain = v::has_no_options(*this) && v::is_none(more[0]);
  if (is_plain && recorder_ && recorder_->make_room(v::current_section(*this), place))
    return _emit(id, o0, o1, o2, more);
  const asmjit::BaseInst instruction(id, v::own_options(*this), v::extra_reg(*this));
  const asmjit::Error error = asmjit::x86::Assembler::_emit(id, o0, o1, o2, more);
  if (error == asmjit::kErrorOk && recorder_)
    recorder_->instruction(place, v::bytes_behind(*this, place.offset), instruction,
                           std::array{o0, o1, o2, more[0], more[1], more[2]});
  return error;
}

asmjit::Error AsmjitAssembler::embed_instruction(std::span<const std::uint8_t> bytes,
                                                 std::initializer_list<asmjit::Operand> changes) noexcept {
  constexpr std::size_t k_longest = 15;  // Intel SDM, 2.3.11
  if (bytes.empty() || bytes.size() > k_longest) return v::k_invalid_argument;
  const CodePlace place = v::place_of(*this);
  const asmjit::Error error = asmjit::x86::Assembler::embed(bytes.data(), bytes.size());
  if (error == asmjit::kErrorOk && recorder_) recorder_->instruction(place, bytes, std::span(changes));
  return error;
}

asmjit::Error AsmjitAssembler::align(asmjit::AlignMode mode, std::uint32_t alignment) {
  const CodePlace place = v::place_of(*this);
  const asmjit::Error error = asmjit::x86::Assembler::align(mode, alignment);
  if (!recorder_) return error;
  if (mode == asmjit::AlignMode::kCode)
    recorder_->padding(place, v::place_of(*this).offset);
  else
    recorder_->data(place, v::place_of(*this).offset);
  return error;
}

template <class Write>
asmjit::Error AsmjitAssembler::noting_data(Write write) {
  const CodePlace place = v::place_of(*this);
  const asmjit::Error error = write();
  if (recorder_) recorder_->data(place, v::place_of(*this).offset);
  return error;
}

asmjit::Error AsmjitAssembler::embed(const void* data, std::size_t size) {
  return noting_data([&] { return asmjit::x86::Assembler::embed(data, size); });
}

asmjit::Error AsmjitAssembler::JITUNWIND_ASMJIT(embedDataArray, embed_data_array)(asmjit::TypeId type, const void* data,
                                                                                  std::size_t count,
                                                                                  std::size_t repeat) {
  return noting_data([&] {
    return asmjit::x86::Assembler::JITUNWIND_ASMJIT(embedDataArray, embed_data_array)(type, data, count, repeat);
  });
}

asmjit::Error AsmjitAssembler::JITUNWIND_ASMJIT(embedConstPool, embed_const_pool)(const asmjit::Label& label,
                                                                                  const asmjit::ConstPool& pool) {
  return noting_data(
      [&] { return asmjit::x86::Assembler::JITUNWIND_ASMJIT(embedConstPool, embed_const_pool)(label, pool); });
}

asmjit::Error AsmjitAssembler::JITUNWIND_ASMJIT(embedLabel, embed_label)(const asmjit::Label& label, std::size_t size) {
  if (recorder_) recorder_->embedded_label(v::place_of(*this), label.id());
  return noting_data([&] { return asmjit::x86::Assembler::JITUNWIND_ASMJIT(embedLabel, embed_label)(label, size); });
}

asmjit::Error AsmjitAssembler::JITUNWIND_ASMJIT(embedLabelDelta, embed_label_delta)(const asmjit::Label& label,
                                                                                    const asmjit::Label& base,
                                                                                    std::size_t size) {
  if (recorder_) recorder_->embedded_label(v::place_of(*this), label.id());
  return noting_data(
      [&] { return asmjit::x86::Assembler::JITUNWIND_ASMJIT(embedLabelDelta, embed_label_delta)(label, base, size); });
}

#if JITUNWIND_ASMJIT_SNAKE_CASE
asmjit::Error AsmjitAssembler::on_attach(asmjit::CodeHolder& code) noexcept {
  const asmjit::Error error = asmjit::x86::Assembler::on_attach(code);
#else
asmjit::Error AsmjitAssembler::onAttach(asmjit::CodeHolder* code) noexcept {
  const asmjit::Error error = asmjit::x86::Assembler::onAttach(code);
#endif
  if (error != asmjit::kErrorOk) return error;
  if (recorder_) recorder_->reset();
  AsmjitAccess::watch_prologs(*this, &AsmjitAccess::emit_prolog_of_assembler);
  return error;
}

#if JITUNWIND_ASMJIT_SNAKE_CASE
asmjit::Error AsmjitAssembler::on_reinit(asmjit::CodeHolder& code) noexcept {
  if (recorder_) recorder_->reset();
  return asmjit::x86::Assembler::on_reinit(code);
}
#endif

}  // namespace jitunwind
