// LLVM's linkers of code in memory.
#pragma once

#include <cstdint>

namespace jitunwind::test {

enum class Linker : std::uint8_t { jitlink, rtdyld };

/// The linker of a program with published functions.
extern const Linker linker_of_published;

}  // namespace jitunwind::test
