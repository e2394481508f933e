// Functions made by hand at run time. Unwinding is what is measured, so the code is the smallest that has a frame.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "bench/peer.h"

namespace bench {

/// The context of the functions on a measured stack. Each function calls the next one and returns.
struct Context;
using StackFunction = void (*)(Context*);
struct Context {
  const StackFunction* next;  // the first member: JIT code reads and advances it
};

/// Code and unwind tables of `count` functions in one mapping, so that 32-bit distances between them suffice. The
/// functions begin `distance` bytes apart, at least 32. One in `shapes` has the same shape.
class JitArena {
 public:
  explicit JitArena(std::size_t count, std::size_t distance = 64, std::size_t shapes = 4);
  ~JitArena();
  JitArena(const JitArena&) = delete;
  JitArena& operator=(const JitArena&) = delete;

  std::span<const JitFunction> functions() const { return functions_; }
  StackFunction entry(std::size_t index) const;
  bool contains(const void* pc) const;

 private:
  std::byte* memory_;
  std::size_t size_;
  std::vector<JitFunction> functions_;
};

}  // namespace bench
