// What the handles of descriptions are. A builder is the C++ one of its CPU: there is no other.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "jitunwind/builders/every_cpu.h"
#include "jitunwind/sdk/c/describe.h"
#include "jitunwind/sdk/c/handles_p.h"

namespace jitunwind::c {

#define JITUNWIND_ARCH(identifier) , identifier::Builder
using AnyBuilder = std::variant<std::monostate
#include "jitunwind/unwind_core/arch/arch_list.def"
                                >;
#undef JITUNWIND_ARCH

/// A register is the CPU's number in ELF files, and below it that of the register in DWARF.
inline constexpr unsigned k_cpu_shift = 16;
inline unsigned cpu_of(ju_reg reg) noexcept { return reg >> k_cpu_shift; }
inline RegNum dwarf_of(ju_reg reg) noexcept { return static_cast<RegNum>(reg & 0xffff); }
inline ju_cpu cpu_of(const Arch& arch) noexcept { return static_cast<ju_cpu>(arch.elf_machine); }
/// Null where there is no such CPU.
const Arch* arch_of(ju_cpu cpu) noexcept;
/// Refuses registers of other CPUs.
ju_status check_register(ju_reg reg, const Arch& arch, ju_error* error) noexcept;

}  // namespace jitunwind::c

struct ju_builder {
  static constexpr jitunwind::c::Kind k_kind = jitunwind::c::Kind::builder;

  /// What C callers can do wrong and the C++ builder cannot be told; ju_build() says it first.
  ju_status refuse(ju_status status, const char* what, const std::string& why) {
    misuse += std::string(what) + ": " + ju_status_name(status) + ": " + why + "\n";
    if (first_misuse == JU_OK) first_misuse = status;
    return status;
  }

  jitunwind::c::Kind kind = k_kind;
  const jitunwind::Arch* arch = nullptr;
  jitunwind::c::AnyBuilder builder{};
  ju_status first_misuse = JU_OK;
  std::string misuse{};
  mutable std::string findings{};
};

struct ju_description {
  static constexpr jitunwind::c::Kind k_kind = jitunwind::c::Kind::description;

  jitunwind::c::Kind kind = k_kind;
  jitunwind::Description description;
};

namespace jitunwind::c {

/// False: the builder is another CPU's. `status` says whether this CPU has what `work` calls: whether it compiles.
template <class B, class Work, class... Regs>
bool say_to(AnyBuilder& any, ju_status& status, Work& work, Regs... regs) {
  B* const builder = std::get_if<B>(&any);
  if (!builder) return false;
  status = JU_NO_SUCH_INSTRUCTION;
  if constexpr (std::is_invocable_v<Work&, B&, decltype(typename B::Reg(dwarf_of(regs)))...>) {
    work(*builder, typename B::Reg(dwarf_of(regs))...);
    status = JU_OK;
  }
  return true;
}

/// Tells the builder something by `work`, which is called with the builder of its CPU and the registers as that one has
/// them.
template <class Work, class... Regs>
ju_status say(ju_builder* builder, const char* what, Work work, Regs... regs) {
  if (const ju_status bad = check(builder, what)) return bad;
  return answer(nullptr, [&] {
    ju_error error;
    ju_error_init(&error);
    for (const ju_reg reg : std::initializer_list<ju_reg>{regs...})
      if (const ju_status bad = check_register(reg, *builder->arch, &error))
        return builder->refuse(bad, what, error.text);
    ju_status status = JU_NO_SUCH_INSTRUCTION;
#define JITUNWIND_ARCH(identifier) (void)say_to<identifier::Builder>(builder->builder, status, work, regs...);
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
    if (status == JU_OK) return JU_OK;
    return builder->refuse(status, what, std::string(builder->arch->name) + " has none");
  });
}

}  // namespace jitunwind::c
