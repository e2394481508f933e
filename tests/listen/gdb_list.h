// GDB's list of a process, as GDB's manual has it ("JIT Compilation Interface").
#pragma once

#include <cstdint>

namespace jitunwind::test {

struct ListEntry {
  const ListEntry* next = nullptr;
  const ListEntry* previous = nullptr;
  std::uint64_t file = 0;
  std::uint64_t size = 0;
};
struct ListDescriptor {
  std::uint32_t version = 1;
  std::uint32_t action = 0;
  const ListEntry* relevant = nullptr;
  const ListEntry* first = nullptr;
};

}  // namespace jitunwind::test
