// Structures that engines pass to an agent of Intel's interface.
#pragma once

#include <cstdint>

namespace jitunwind::test {

/// The beginning of iJIT_Method_Load.
struct MethodLoad {
  std::uint32_t method = 7;
  const char* name = "jitted";
  std::uint64_t address = 0x1000;
  std::uint32_t size = 0x20;
  std::uint32_t line_count = 0;
  const std::uint32_t* lines = nullptr;  // pairs of an offset and a line
  std::uint32_t class_number = 0;
  const char* class_file = nullptr;
  const char* source_file = "a.cc";
};

}  // namespace jitunwind::test
