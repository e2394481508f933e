// The page of a CPU, docs/targets/NAME.md, made from its table.
#pragma once

#include <string>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::test {

/// `identifier`: that of arch_list.def.
std::string cpu_page(const Arch& arch, const std::string& identifier);
/// Returns the path of the CPU's page.
std::string cpu_page_path(const Arch& arch);

/// The cells of the summary in docs/directives.md, "Per CPU", behind the link to the page.
std::string unit_cell(const Arch& arch);
std::string entry_cell(const Arch& arch);
std::string return_address_cell(const Arch& arch);
std::string caller_sp_cell(const Arch& arch);
/// Returns "rsp, 7": the name and libunwind's number.
std::string named_cell(const Arch& arch, RegNum reg);

/// Returns whether a directive may save the register.
bool can_be_saved(const Arch& arch, const RegisterInfo& reg);

}  // namespace jitunwind::test
