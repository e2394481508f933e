// The list of files for debuggers, read by libelf as a debugger would read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "jitunwind/adapters/gdb_jit/jit_interface_p.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/unwind_core/address.h"
#include "tests/registry/threads.h"

extern "C" jit_descriptor __jit_debug_descriptor;

namespace debuggers_test {

constexpr jitunwind::Addr k_code = 0x60000000;

struct Known {
  std::string name;
  jitunwind::Addr size = 0;
  bool operator==(const Known&) const = default;
  friend void PrintTo(const Known& known, std::ostream* out) { *out << known.name << " of " << known.size << " bytes"; }
};
using Symbols = std::map<jitunwind::Addr, Known>;

/// Returns the symbols of all files, between two changes of the registry. The test fails if the files are wrong;
/// sections of different files must not overlap.
Symbols debugger_reads(std::size_t* sections = nullptr);
Symbols debugger_reads(const jit_descriptor& descriptor, std::size_t* sections = nullptr);

/// A leaf with a name.
class Procedure {
 public:
  Procedure(jitunwind::Addr start, jitunwind::Addr size, std::string name)
      : name_(std::move(name)), info_(registry_test::procedure(start, size)) {
    info_.u.pi.name_ptr = reinterpret_cast<std::uintptr_t>(name_.c_str());
  }
  unw_dyn_info_t* info() { return &info_; }
  void add_to(Symbols& symbols) const { symbols[info_.start_ip] = {name_, info_.end_ip - info_.start_ip}; }

 private:
  std::string name_;
  unw_dyn_info_t info_;
};

}  // namespace debuggers_test
