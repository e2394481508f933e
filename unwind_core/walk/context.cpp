#include "jitunwind/unwind_core/walk/context.h"

#include <array>
#include <cstring>

#include "jitunwind/unwind_core/arch/arch_p.h"
#include "jitunwind/unwind_core/walk/context_p.h"

namespace jitunwind {

namespace {

bool is_stored(const RegisterInfo& reg) noexcept { return reg.ucontext >= 0 && reg.reg_class == RegClass::vector; }

/// The kind of the first record in a ucontext_t of this machine; 0: there is none.
std::uint32_t first_record(const std::byte* ucontext, const Arch& arch) noexcept {
  std::uint32_t kind = 0;
  std::memcpy(&kind, ucontext + arch.records->first, sizeof kind);
  return kind;
}

}  // namespace

void add_vector_words(const Arch& arch, RegisterFile& registers) noexcept {
  if (!arch.records || !arch.records->count_vector_words) return;
  if (const std::uint64_t words = arch.records->count_vector_words())
    registers.set(arch.column(arch.records->vector_words), words);
}

void add_vectors_of_ucontext(const std::byte* ucontext, const Arch& arch, RegisterFile& registers) noexcept {
  add_vector_words(arch, registers);
  if (first_record(ucontext, arch) != arch.records->kind) return;
  for (const RegisterInfo& reg : arch.registers) {
    if (!is_stored(reg)) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, ucontext + reg.ucontext + arch.low_half(), sizeof value);
    registers.set_from_register(reg.column, value, reg.dwarf);
  }
}

void end_records_behind_vectors(const Arch& arch, void* ucontext) noexcept {
  auto* const bytes = static_cast<std::byte*>(ucontext);
  constexpr std::array<std::uint32_t, 2> k_end{};
  if (!arch.records || first_record(bytes, arch) != arch.records->kind) return;
  std::memcpy(bytes + arch.records->first + arch.records->size, k_end.data(), sizeof k_end);
}

void registers_to_ucontext(const RegisterFile& registers, const Arch& arch, void* ucontext) noexcept {
  auto* const bytes = static_cast<std::byte*>(ucontext);
  bool has_vectors = false;
  if (arch.records) {
    const ContextRecords& records = *arch.records;
    const std::uint32_t kind = first_record(bytes, arch);
    const std::array head{records.kind, records.size};
    if (kind == 0) std::memcpy(bytes + records.first, head.data(), sizeof head);
    has_vectors = kind == 0 || kind == records.kind;
  }
  for (const RegisterInfo& reg : arch.registers) {
    if (reg.ucontext < 0 || !registers.known(reg.column) || (is_stored(reg) && !has_vectors)) continue;
    const std::uint64_t value = registers.value(reg.column);
    std::memcpy(bytes + reg.ucontext + (is_stored(reg) ? arch.low_half() : 0), &value, arch.word_size);
  }
}

}  // namespace jitunwind
