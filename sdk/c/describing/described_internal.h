// The arguments of C functions that register code, for adapters that have such functions of their own.
#pragma once

#include "jitunwind/builders/procedure_builder.h"
#include "jitunwind/builders/registration.h"
#include "jitunwind/sdk/c/handles_p.h"
#include "jitunwind/sdk/c/register.h"

namespace jitunwind::c {

/// Stands for any CPU. It has all instructions at compile time; cpus_with() gives the CPUs that have them.
struct AnyCpu {
  static constexpr bool k_has_push = true;
  static constexpr bool k_has_pairs = true;
  static constexpr bool k_signs_return_address = true;
};
using AnyMarks = ProcedureBuilder<AnyCpu, MarkRecorder>;

ju_status read_handle(const ju_description* of_caller, const Description*& out, ju_error* error) noexcept;
/// Reports the first mistake of the calls that recorded, and forgets all that they recorded.
ju_status read_handle(ju_builder* of_caller, AnyMarks*& out, ju_error* error) noexcept;
/// The caller promises the name, which may be null: asking the kernel whether it is readable takes a third of the time
/// of registering. False: it has no end.
bool read_name(const char* of_caller, std::string_view& out) noexcept;
/// `out` has the caller's name.
ju_status read_code(const ju_code* of_caller, Code& out, ju_error* error) noexcept;
/// Hands the result of a registration to the caller. Precondition: `registration` is not null.
ju_status hand_out(const Result<unw_dyn_info_t*>& released, ju_registration** registration, ju_error* error) noexcept;

}  // namespace jitunwind::c
