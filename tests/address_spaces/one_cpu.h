// One CPU's libunwind-<target>.h and library, for a program that has them all: each in a translation unit of its own.
#pragma once

#include <string>

#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::test {

struct OneCpu {
  const char* target;  ///< UNW_TARGET
  const Arch* arch;
  long version;                 ///< UNW_VERSION
  int init_local, init_local2;  ///< what they return
  std::string wrong_numbers;    ///< what differs between header and table; "": nothing
  /// Returns the fault of a target with three frames and that byte order, in a space made for `order`; "": none.
  std::string (*walk)(bool big_endian, int order);
};

#define JITUNWIND_ARCH(identifier) OneCpu one_cpu_##identifier();
#include "jitunwind/unwind_core/arch/arch_list.def"
#undef JITUNWIND_ARCH

}  // namespace jitunwind::test
