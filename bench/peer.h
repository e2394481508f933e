// The seam between the measurements and the unwinders: one program a peer, because they export the same names. A peer
// implements what is declared here; all programs share everything else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace bench {

/// One function made at run time, with its unwind information in the two forms that peers read.
struct JitFunction {
  const std::byte* code;
  std::size_t size;
  std::size_t locals;         ///< bytes: the frame is push rbx; sub rsp,locals
  const std::byte* eh_frame;  ///< CIE, FDE, terminator
  const std::byte* fde;       ///< in eh_frame; within 2 GiB of the code
};

/// A way to walk the stack of this thread.
struct Walker {
  const char* name;
  /// The innermost return addresses, as many as fit. Returns how many.
  std::size_t (*walk)(std::span<void*> into);
  bool passes_jit_frames;
};

/// A way to make functions known. Functions are named by their index in what prepare() was given.
class Registrar {
 public:
  virtual ~Registrar() = default;
  virtual const char* name() const = 0;
  /// The description of its functions; null: that of another peer's.
  virtual const char* description() const { return nullptr; }
  /// Beyond that a run would take minutes.
  virtual std::size_t max_functions() const = 0;
  /// What a generator has done before it registers; not measured.
  virtual void prepare(std::span<const JitFunction> functions) = 0;
  virtual void register_function(std::size_t index) = 0;
  virtual void cancel_function(std::size_t index) = 0;
  /// Finds what is known of the code at an address, as a step does; false: nothing.
  virtual bool find(const void* pc) = 0;
  virtual bool can_find() const { return true; }
};

// One implementation a program.

/// What unwinds exceptions in it.
const char* thrower();
std::span<const Walker> walkers();
std::span<Registrar* const> registrars();

}  // namespace bench
