// A sample of a process that stands still, taken as perf would.
#pragma once

#include "tests/support/command.h"
#include "tests/targets/target_programs.h"

namespace jitunwind::test {

struct Taken {
  Sample sample{};
  std::vector<std::byte> stack{};
  SeenStack live{};
};

/// Takes a sample of the main thread of a program that stands still, with `bytes` bytes of its stack.
inline Taken take(const TargetProgram& program, std::size_t bytes) {
  Taken taken;
  const auto target = Target::attach(program.process());
  EXPECT_TRUE(target) << target.error().text();
  const TargetThread& thread = target->threads().at(0);
  taken.live = seen(target->walk(thread));
  const Arch& arch = target->arch();
  taken.sample.registers = target->registers(thread).value();
  taken.sample.stack_address = taken.sample.registers.value(arch.column(arch.sp));
  taken.stack.resize(bytes);
  MemoryWindow window;
  taken.stack.resize(target->space().memory.read(taken.sample.stack_address, taken.stack, window));
  taken.sample.stack = taken.stack;
  const std::string maps = text_of_file("/proc/" + std::to_string(program.process()) + "/maps");
  taken.sample.mappings = Mappings::parse(maps).all();
  return taken;
}

}  // namespace jitunwind::test
