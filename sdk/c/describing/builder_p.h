// The handles of builders and descriptions. A builder is the C++ builder for a CPU that is chosen at run time, or its
// marks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <variant>

#include "jitunwind/builders/every_cpu.h"
#include "jitunwind/sdk/c/describe.h"
#include "jitunwind/sdk/c/describing/described_internal.h"
#include "jitunwind/sdk/c/handles_p.h"

namespace jitunwind::c {

using AnyBuilder = ProcedureBuilder<AnyCpu>;

/// A register consists of the CPU's number in ELF files and, below it, the register's number in DWARF.
inline constexpr unsigned k_cpu_shift = 16;
inline unsigned cpu_of(ju_reg reg) noexcept { return reg >> k_cpu_shift; }
inline RegNum dwarf_of(ju_reg reg) noexcept { return static_cast<RegNum>(reg & 0xffff); }
inline ju_cpu cpu_of(const Arch& arch) noexcept { return static_cast<ju_cpu>(arch.elf_machine); }
/// Null: there is no such CPU.
[[gnu::visibility("default")]] const Arch* arch_of(ju_cpu cpu) noexcept;
/// The CPU's bit in cpus_with().
std::uint32_t bit_of(const Arch& arch) noexcept;
/// Refuses registers of other CPUs.
[[gnu::visibility("default")]] ju_status check_register(ju_reg reg, const Arch& arch, ju_error* error) noexcept;

}  // namespace jitunwind::c

struct ju_builder {
  static constexpr jitunwind::c::Kind k_kind = jitunwind::c::Kind::builder;

  jitunwind::c::Kind kind = k_kind;
  const jitunwind::Arch* arch;
  std::uint32_t cpu_bit = jitunwind::c::bit_of(*arch);
  std::variant<jitunwind::c::AnyBuilder, jitunwind::c::AnyMarks> recorder;
  // Mistakes of C callers that the C++ builder cannot represent; ju_build() and ju_register_marks() report them first.
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

/// Records a mistake and returns the status.
ju_status refuse(ju_builder& builder, ju_status status, const char* what, std::string_view why);

/// The CPUs whose C++ builder compiles with `work`, one bit each in the order of the list.
template <class Work, class... Regs>
consteval std::uint32_t cpus_with() {
  std::uint32_t all = 0;
  unsigned cpu = 0;
#define JITUNWIND_ARCH(identifier)                                                                            \
  if (std::is_invocable_v<Work&, identifier::Builder&, decltype((void)Regs{}, identifier::Reg(RegNum{}))...>) \
    all |= std::uint32_t{1} << cpu;                                                                           \
  ++cpu;
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH
  return all;
}

/// A call in the form of say_it(), which is one function for all calls.
struct Said {
  const char* what;    ///< the function of the C interface
  std::uint32_t cpus;  ///< cpus_with() of the call
  std::span<const ju_reg> regs;
  void (*tell)(AnyBuilder& builder, const void* work);
  const void* work;
};
/// Passes the call to the builder, or refuses it.
ju_status say_it(ju_builder* builder, const Said& said);

/// Calls `work` with the C++ builder and the registers in its type. Marks are recorded at once: a call by pointers
/// takes longer than the rest.
template <class Work, class... Regs>
ju_status say(ju_builder* builder, const char* what, Work work, Regs... regs) {
  constexpr std::uint32_t k_cpus = cpus_with<const Work, Regs...>();
  const auto call = [&](auto& b) { work(b, AnyBuilder::Reg(dwarf_of(regs))...); };
  if constexpr (std::is_invocable_v<const Work&, AnyMarks&, decltype((void)regs, AnyBuilder::Reg(RegNum{}))...>) {
    if (is_handle(builder, Kind::builder) && (k_cpus & builder->cpu_bit) != 0 &&
        ((cpu_of(regs) == builder->arch->elf_machine) && ...)) [[likely]]
      if (auto* const marks = std::get_if<AnyMarks>(&builder->recorder)) return call(*marks), JU_OK;
  }
  const auto tell = [](AnyBuilder& b, const void* w) { (*static_cast<const decltype(call)*>(w))(b); };
  const std::array<ju_reg, sizeof...(regs)> all{regs...};
  return say_it(builder, {what, k_cpus, all, tell, &call});
}

}  // namespace jitunwind::c
