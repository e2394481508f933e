// asmjit renamed its interface from camelCase to snake_case between 1.9 (Debian 12) and 1.21, at 1.18. Every different
// name that the adapter uses is wrapped here, and only here.
#pragma once

#include <asmjit/x86.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jitunwind/adapters/asmjit/derivation/code_trace_p.h"

#if ASMJIT_LIBRARY_VERSION >= 0x011200
#define JITUNWIND_ASMJIT_SNAKE_CASE 1
#define JITUNWIND_ASMJIT(camel, snake) snake
#else
#define JITUNWIND_ASMJIT_SNAKE_CASE 0
#define JITUNWIND_ASMJIT(camel, snake) camel
#endif

namespace jitunwind::asmjit_version {

#if JITUNWIND_ASMJIT_SNAKE_CASE
using AnyReg = ::asmjit::Reg;
inline constexpr ::asmjit::Error k_invalid_argument = ::asmjit::Error::kInvalidArgument;
inline constexpr ::asmjit::Error k_invalid_state = ::asmjit::Error::kInvalidState;
inline constexpr ::asmjit::Error k_out_of_memory = ::asmjit::Error::kOutOfMemory;
inline constexpr ::asmjit::Error k_no_code = ::asmjit::Error::kNoCodeGenerated;
#else
using AnyReg = ::asmjit::BaseReg;
inline constexpr ::asmjit::Error k_invalid_argument = ::asmjit::kErrorInvalidArgument;
inline constexpr ::asmjit::Error k_invalid_state = ::asmjit::kErrorInvalidState;
inline constexpr ::asmjit::Error k_out_of_memory = ::asmjit::kErrorOutOfMemory;
inline constexpr ::asmjit::Error k_no_code = ::asmjit::kErrorNoCodeGenerated;
#endif

// Operands.

inline bool is_reg(const ::asmjit::Operand_& op) noexcept { return op.JITUNWIND_ASMJIT(isReg, is_reg)(); }
inline bool is_mem(const ::asmjit::Operand_& op) noexcept { return op.JITUNWIND_ASMJIT(isMem, is_mem)(); }
inline bool is_imm(const ::asmjit::Operand_& op) noexcept { return op.JITUNWIND_ASMJIT(isImm, is_imm)(); }
inline bool is_label(const ::asmjit::Operand_& op) noexcept { return op.JITUNWIND_ASMJIT(isLabel, is_label)(); }
inline bool is_none(const ::asmjit::Operand_& op) noexcept { return op.JITUNWIND_ASMJIT(isNone, is_none)(); }

inline ::asmjit::RegType reg_type(const ::asmjit::Operand_& op) noexcept {
  return op.as<AnyReg>().JITUNWIND_ASMJIT(type, reg_type)();
}
#if JITUNWIND_ASMJIT_SNAKE_CASE
inline bool is_gp(const ::asmjit::Operand_& op) noexcept { return op.is_gp(); }
inline bool is_vec(const ::asmjit::Operand_& op) noexcept { return op.is_vec(); }
#else
inline bool is_gp(const ::asmjit::Operand_& op) noexcept { return ::asmjit::x86::Reg::isGp(op); }
inline bool is_vec(const ::asmjit::Operand_& op) noexcept { return ::asmjit::x86::Reg::isVec(op); }
#endif
inline bool has_base_register(const ::asmjit::Operand_& mem) noexcept {
  return mem.as<::asmjit::x86::Mem>().JITUNWIND_ASMJIT(hasBaseReg, has_base_reg)();
}
/// Precondition: it has one.
inline std::uint32_t base_register(const ::asmjit::Operand_& mem) noexcept {
  return mem.as<::asmjit::x86::Mem>().JITUNWIND_ASMJIT(baseId, base_id)();
}
inline std::int64_t imm_value(const ::asmjit::Operand_& op) noexcept { return op.as<::asmjit::Imm>().value(); }

/// A memory operand in the terms of the adapter.
struct MemoryOperand {
  bool plain_base = false;           ///< [64-bit general register + offset], default segment, no index
  std::uint32_t base = 0;            ///< id of the base register
  std::uint32_t label = UINT32_MAX;  ///< the label of [label + offset] or [label + index + offset]
  bool has_index = false;
  bool is_indexed = false;  ///< [64-bit general register + index + offset], default segment
  std::int64_t offset = 0;
  std::uint32_t size = 0;  ///< 0: size of the other operand
};
inline MemoryOperand memory_operand(const ::asmjit::Operand_& op) noexcept {
  const auto& mem = op.as<::asmjit::x86::Mem>();
  MemoryOperand out;
  out.has_index = mem.JITUNWIND_ASMJIT(hasIndex, has_index)();
  out.offset = mem.offset();
  out.size = mem.JITUNWIND_ASMJIT(size, size)();
  if (mem.JITUNWIND_ASMJIT(hasBaseLabel, has_base_label)()) out.label = mem.JITUNWIND_ASMJIT(baseId, base_id)();
  if (mem.JITUNWIND_ASMJIT(hasBaseReg, has_base_reg)() && !mem.JITUNWIND_ASMJIT(hasSegment, has_segment)() &&
      mem.JITUNWIND_ASMJIT(baseType, base_type)() == ::asmjit::RegType::kGp64) {
    out.plain_base = !out.has_index;
    out.is_indexed = out.has_index;
    out.base = mem.JITUNWIND_ASMJIT(baseId, base_id)();
  }
  return out;
}

// Instructions.

using RwInfo = ::asmjit::InstRWInfo;
inline bool query_rw_info(const ::asmjit::BaseInst& inst, const ::asmjit::Operand_* operands, std::size_t count,
                          RwInfo& out) noexcept {
  return ::asmjit::InstAPI::JITUNWIND_ASMJIT(queryRWInfo, query_rw_info)(::asmjit::Arch::kX64, inst, operands, count,
                                                                         &out) == ::asmjit::kErrorOk;
}
inline std::span<const ::asmjit::Operand> operands(const ::asmjit::InstNode& node) noexcept {
  return {node.JITUNWIND_ASMJIT(operands, operands_data)(), node.JITUNWIND_ASMJIT(opCount, op_count)()};
}
inline std::uint32_t instruction_id(const ::asmjit::BaseInst& inst) noexcept {
  return inst.JITUNWIND_ASMJIT(id, inst_id)();
}
inline bool is_write(const ::asmjit::OpRWInfo& op) noexcept { return op.JITUNWIND_ASMJIT(isWrite, is_write)(); }
inline bool is_base_write(const ::asmjit::OpRWInfo& op) noexcept {
  return op.JITUNWIND_ASMJIT(isMemBaseWrite, is_mem_base_write)();
}
inline std::uint64_t write_byte_mask(const ::asmjit::OpRWInfo& op) noexcept {
  return op.JITUNWIND_ASMJIT(writeByteMask, write_byte_mask)();
}
inline ::asmjit::InstControlFlow control_flow(std::uint32_t id) noexcept {
  return ::asmjit::x86::InstDB::JITUNWIND_ASMJIT(infoById, inst_info_by_id)(id).JITUNWIND_ASMJIT(controlFlow,
                                                                                                 control_flow)();
}
inline std::string instruction_name(std::uint32_t id) {
  ::asmjit::String text;
#if JITUNWIND_ASMJIT_SNAKE_CASE
  (void)::asmjit::InstAPI::inst_id_to_string(::asmjit::Arch::kX64, id, ::asmjit::InstStringifyOptions::kNone, text);
#else
  (void)::asmjit::InstAPI::instIdToString(::asmjit::Arch::kX64, id, text);
#endif
  return text.data();
}

// Emitters and code.

/// The options of the next instruction alone, without those that serve the emitter.
inline ::asmjit::InstOptions own_options(const ::asmjit::BaseEmitter& e) noexcept {
  return e.JITUNWIND_ASMJIT(instOptions, inst_options)();
}
inline ::asmjit::RegOnly extra_reg(const ::asmjit::BaseEmitter& e) noexcept {
  return e.JITUNWIND_ASMJIT(extraReg, extra_reg)();
}
/// The next instruction has neither options, such as prefixes, nor an extra register, such as a mask.
inline bool has_no_options(const ::asmjit::BaseEmitter& e) noexcept {
  return own_options(e) == ::asmjit::InstOptions::kNone && !extra_reg(e).JITUNWIND_ASMJIT(isReg, is_reg)();
}
inline std::uint32_t section_id(const ::asmjit::Section& s) noexcept { return s.JITUNWIND_ASMJIT(id, section_id)(); }
inline const ::asmjit::Section* current_section(const ::asmjit::BaseAssembler& a) noexcept {
  return a.JITUNWIND_ASMJIT(currentSection, current_section)();
}
/// The place of the next byte.
inline derivation::CodePlace place_of(const ::asmjit::BaseAssembler& a) noexcept {
  const ::asmjit::Section* section = current_section(a);
  return {section ? section_id(*section) : 0, static_cast<std::uint32_t>(a.offset())};
}
/// The bytes of the current section from an offset up to the place of the next byte.
inline std::span<const std::uint8_t> bytes_behind(const ::asmjit::BaseAssembler& a, std::size_t offset) noexcept {
  return {a.JITUNWIND_ASMJIT(bufferData, buffer_data)() + offset, a.offset() - offset};
}
/// The buffer of the current section: its begin, the place of the next byte, its end.
struct WrittenBuffer {
  const std::uint8_t *data, *next, *end;
};
inline WrittenBuffer written_buffer(const ::asmjit::BaseAssembler& a) noexcept {
  return {a.JITUNWIND_ASMJIT(bufferData, buffer_data)(), a.JITUNWIND_ASMJIT(bufferPtr, buffer_ptr)(),
          a.JITUNWIND_ASMJIT(bufferEnd, buffer_end)()};
}
inline std::size_t section_count(const ::asmjit::CodeHolder& code) noexcept {
  return code.JITUNWIND_ASMJIT(sectionCount, section_count)();
}
inline ::asmjit::Section* section_by_id(const ::asmjit::CodeHolder& code, std::uint32_t id) noexcept {
  return code.JITUNWIND_ASMJIT(sectionById, section_by_id)(id);
}
inline std::size_t buffer_size(const ::asmjit::Section& s) noexcept {
  return s.JITUNWIND_ASMJIT(bufferSize, buffer_size)();
}
inline std::size_t label_count(const ::asmjit::CodeHolder& code) noexcept {
  return code.JITUNWIND_ASMJIT(labelCount, label_count)();
}

/// The place at which a label is bound, and its name if it is a global label.
struct BoundLabel {
  bool bound = false;
  std::uint32_t section = 0;
  std::uint64_t offset = 0;
  std::string_view name;  ///< valid as long as the label
  derivation::CodePlace place() const noexcept { return {section, static_cast<std::uint32_t>(offset)}; }
};
inline BoundLabel bound_label(const ::asmjit::CodeHolder& code, std::uint32_t id) {
  BoundLabel out;
#if JITUNWIND_ASMJIT_SNAKE_CASE
  if (!code.is_label_bound(id)) return out;
  const ::asmjit::LabelEntry& entry = code.label_entry_of(id);
  out = {true, entry.section_id(), code.label_offset(id), {}};
  if (entry.has_name() && entry.label_type() == ::asmjit::LabelType::kGlobal) out.name = entry.name();
#else
  if (!code.isLabelBound(id)) return out;
  const ::asmjit::LabelEntry& entry = *code.labelEntry(id);
  out = {true, entry.section()->id(), entry.offset(), {}};
  if (entry.hasName() && entry.type() == ::asmjit::LabelType::kGlobal) out.name = entry.name();
#endif
  return out;
}

template <class Visit>
void visit_emitters(const ::asmjit::CodeHolder& code, Visit visit) {
#if JITUNWIND_ASMJIT_SNAKE_CASE
  auto& changeable = const_cast<::asmjit::CodeHolder&>(code);
  for (::asmjit::BaseEmitter* e = changeable.attached_first(); e; e = e->_attached_next) visit(*e);
#else
  for (::asmjit::BaseEmitter* e : code.emitters()) visit(*e);
#endif
}
inline bool has_error_handler(const ::asmjit::BaseEmitter& e) noexcept {
  return e.JITUNWIND_ASMJIT(hasErrorHandler, has_error_handler)();
}
inline ::asmjit::Error report_error(::asmjit::BaseEmitter& e, ::asmjit::Error error, const std::string& text) {
  return e.JITUNWIND_ASMJIT(reportError, report_error)(error, text.c_str());
}
inline ::asmjit::Error emit_prolog(::asmjit::BaseEmitter& e, const ::asmjit::FuncFrame& frame) {
  return e.JITUNWIND_ASMJIT(emitProlog, emit_prolog)(frame);
}
inline ::asmjit::Error emit_epilog(::asmjit::BaseEmitter& e, const ::asmjit::FuncFrame& frame) {
  return e.JITUNWIND_ASMJIT(emitEpilog, emit_epilog)(frame);
}
inline auto& emit_prolog_function(::asmjit::BaseEmitter& e) noexcept {
  return e._funcs.JITUNWIND_ASMJIT(emitProlog, emit_prolog);
}
inline std::uint64_t preserved_registers(const ::asmjit::FuncFrame& frame, ::asmjit::RegGroup group) noexcept {
  return frame.JITUNWIND_ASMJIT(preservedRegs, preserved_regs)(group);
}
inline std::uint32_t saved_registers(const ::asmjit::FuncFrame& frame, ::asmjit::RegGroup group) noexcept {
  return frame.JITUNWIND_ASMJIT(savedRegs, saved_regs)(group);
}
inline void set_dirty_registers(::asmjit::FuncFrame& frame, ::asmjit::RegGroup group, std::uint32_t mask) noexcept {
  frame.JITUNWIND_ASMJIT(setDirtyRegs, set_dirty_regs)(group, mask);
}
inline bool has_preserved_fp(const ::asmjit::FuncFrame& frame) noexcept {
  return frame.JITUNWIND_ASMJIT(hasPreservedFP, has_preserved_fp)();
}
inline bool has_func_calls(const ::asmjit::FuncFrame& frame) noexcept {
  return frame.JITUNWIND_ASMJIT(hasFuncCalls, has_func_calls)();
}

// A second CodeHolder with the same layout, and the properties of nodes, for builder_replay.cpp.

inline ::asmjit::Error init_like(::asmjit::CodeHolder& to, const ::asmjit::CodeHolder& from) noexcept {
  return to.init(from.environment(), from.JITUNWIND_ASMJIT(baseAddress, base_address)());
}
inline bool new_section_like(::asmjit::CodeHolder& to, const ::asmjit::Section& like) noexcept {
  ::asmjit::Section* section = nullptr;
#if JITUNWIND_ASMJIT_SNAKE_CASE
  return to.new_section(::asmjit::Out(section), like.name(), SIZE_MAX, like.flags(), like.alignment(), like.order()) ==
         ::asmjit::kErrorOk;
#else
  return to.newSection(&section, like.name(), SIZE_MAX, like.flags(), like.alignment(), like.order()) ==
         ::asmjit::kErrorOk;
#endif
}
inline ::asmjit::Label new_label(::asmjit::BaseEmitter& e) { return e.JITUNWIND_ASMJIT(newLabel, new_label)(); }
inline bool add_label(::asmjit::CodeHolder& code) noexcept {
#if JITUNWIND_ASMJIT_SNAKE_CASE
  std::uint32_t id = 0;
  return code.new_label_id(::asmjit::Out(id)) == ::asmjit::kErrorOk;
#else
  ::asmjit::LabelEntry* entry = nullptr;
  return code.newLabelEntry(&entry) == ::asmjit::kErrorOk;
#endif
}
/// Places the sections one after the other, and resolves the references between them.
inline ::asmjit::Error link_sections(::asmjit::CodeHolder& code) noexcept {
  const ::asmjit::Error error = code.flatten();
  return error == ::asmjit::kErrorOk ? code.JITUNWIND_ASMJIT(resolveUnresolvedLinks, resolve_cross_section_fixups)()
                                     : error;
}
/// The alignment of JitAllocator's memory, which data behind the code relies on.
inline constexpr std::size_t k_code_alignment = 64;
/// Shrinks when the code gets its address.
inline std::size_t code_size(const ::asmjit::CodeHolder& code) noexcept {
  return code.JITUNWIND_ASMJIT(codeSize, code_size)();
}
/// Writes code that runs at `start`. Precondition: there is room for code_size() before.
inline ::asmjit::Error relocate_into(::asmjit::CodeHolder& code, std::uint64_t start,
                                     std::span<std::byte> room) noexcept {
  const ::asmjit::Error error = code.JITUNWIND_ASMJIT(relocateToBase, relocate_to_base)(start);
  if (error != ::asmjit::kErrorOk) return error;
  return code.JITUNWIND_ASMJIT(copyFlattenedData, copy_flattened_data)(room.data(), room.size(),
                                                                       ::asmjit::CopySectionFlags::kPadSectionBuffer);
}
/// asmjit fills the address table in when the code gets its address.
inline bool is_address_table(const ::asmjit::CodeHolder& code, std::uint32_t section) noexcept {
  const ::asmjit::Section* table = code.JITUNWIND_ASMJIT(addressTableSection, address_table_section)();
  return table && section_id(*table) == section;
}
inline std::span<const std::uint8_t> section_bytes(const ::asmjit::CodeHolder& code, std::uint32_t id) noexcept {
  const ::asmjit::Section& section = *section_by_id(code, id);
  return {section.data(), buffer_size(section)};
}

/// Bytes of a section that are final only at the final address: the operand, and the two bytes before it, which change
/// when asmjit redirects a call or jump through the address table.
struct PatchedBytes {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
inline std::vector<PatchedBytes> patched_bytes(const ::asmjit::CodeHolder& code, std::uint32_t section) {
  std::vector<PatchedBytes> out;
  for (const ::asmjit::RelocEntry* entry : code.JITUNWIND_ASMJIT(relocEntries, reloc_entries)()) {
    if (entry->JITUNWIND_ASMJIT(sourceSectionId, source_section_id)() != section) continue;
    const auto& format = entry->format();
    const std::uint64_t at = entry->JITUNWIND_ASMJIT(sourceOffset, source_offset)();
    const std::uint64_t value = at + format.JITUNWIND_ASMJIT(valueOffset, value_offset)();
    out.push_back({value < 2 ? 0 : value - 2, value + format.JITUNWIND_ASMJIT(valueSize, value_size)()});
  }
  return out;
}

inline ::asmjit::BaseNode* first_node(const ::asmjit::BaseBuilder& b) noexcept {
  return b.JITUNWIND_ASMJIT(firstNode, first_node)();
}
/// Whether there are nodes other than those of sections; a builder has one section node from the start.
inline bool has_nodes(const ::asmjit::BaseBuilder& b) noexcept {
  for (::asmjit::BaseNode* node = first_node(b); node; node = node->next())
    if (node->type() != ::asmjit::NodeType::kSection) return true;
  return false;
}
inline bool is_instruction(const ::asmjit::BaseNode& n) noexcept { return n.JITUNWIND_ASMJIT(isInst, is_inst)(); }
/// A label, a comment, the end of a function.
inline bool writes_nothing(const ::asmjit::BaseNode& n) noexcept {
  using Type = ::asmjit::NodeType;
  return n.type() == Type::kLabel || n.type() == Type::kComment || n.type() == Type::kSentinel;
}
inline bool is_function(const ::asmjit::BaseNode& n) noexcept { return n.JITUNWIND_ASMJIT(isFunc, is_func)(); }
inline bool is_builder(const ::asmjit::BaseEmitter& e) noexcept { return e.JITUNWIND_ASMJIT(isBuilder, is_builder)(); }
inline bool is_compiler(const ::asmjit::BaseEmitter& e) noexcept {
  return e.JITUNWIND_ASMJIT(isCompiler, is_compiler)();
}
inline ::asmjit::Error serialize(::asmjit::BaseBuilder& builder, ::asmjit::BaseEmitter& to) {
  return builder.JITUNWIND_ASMJIT(serializeTo, serialize_to)(&to);
}
inline void copy_encoding_options(const ::asmjit::BaseEmitter& from, ::asmjit::BaseEmitter& to) noexcept {
  to.JITUNWIND_ASMJIT(addEncodingOptions,
                      add_encoding_options)(from.JITUNWIND_ASMJIT(encodingOptions, encoding_options)());
}

struct FunctionNode {
  std::uint32_t label = UINT32_MAX;
  std::uint32_t exit_label = UINT32_MAX;
  std::uint64_t preserved_general = 0;
  std::uint64_t preserved_vector = 0;
  ::asmjit::BaseNode* node = nullptr;
  ::asmjit::BaseNode* exit = nullptr;  ///< the epilogue follows it
  ::asmjit::BaseNode* end = nullptr;
  const ::asmjit::FuncFrame* frame = nullptr;
};
inline FunctionNode function_node(::asmjit::BaseNode& node) noexcept {
  auto& function = *node.as<::asmjit::FuncNode>();
  return {function.JITUNWIND_ASMJIT(labelId, label_id)(),
          function.JITUNWIND_ASMJIT(exitNode, exit_node)()->JITUNWIND_ASMJIT(labelId, label_id)(),
          preserved_registers(function.frame(), ::asmjit::RegGroup::kGp),
          preserved_registers(function.frame(), ::asmjit::RegGroup::kVec),
          &node,
          function.JITUNWIND_ASMJIT(exitNode, exit_node)(),
          function.JITUNWIND_ASMJIT(endNode, end_node)(),
          &function.frame()};
}
/// Bytes popped by the callee of an invocation, if its convention requires that; else 0.
inline std::int64_t bytes_popped_by_callee(::asmjit::BaseNode& node) noexcept {
  if (!node.JITUNWIND_ASMJIT(isInvoke, is_invoke)()) return 0;
  const ::asmjit::FuncDetail& detail = node.as<::asmjit::InvokeNode>()->detail();
  if (!detail.JITUNWIND_ASMJIT(hasFlag, has_flag)(::asmjit::CallConvFlags::kCalleePopsStack)) return 0;
  return detail.JITUNWIND_ASMJIT(argStackSize, arg_stack_size)();
}
/// The possible targets of an annotated jump.
inline std::vector<std::uint32_t> annotated_targets(::asmjit::BaseNode& node) {
  std::vector<std::uint32_t> out;
  if (node.type() != ::asmjit::NodeType::kJump) return out;
  const ::asmjit::JumpAnnotation* annotation = node.as<::asmjit::JumpNode>()->annotation();
  if (!annotation) return out;
  for (const std::uint32_t id : annotation->JITUNWIND_ASMJIT(labelIds, label_ids)()) out.push_back(id);
  return out;
}

}  // namespace jitunwind::asmjit_version
