// The interface between the measurements and the unwinders. Each peer has its own program, because peers export the
// same names. It implements these declarations; all programs share everything else.
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
  /// Stores the innermost return addresses, as many as fit, and returns their number.
  std::size_t (*walk)(std::span<void*> into);
  bool passes_jit_frames;
};

/// A way to register functions. A function is named by its index in the argument of prepare().
class Registrar {
 public:
  virtual ~Registrar() = default;
  virtual const char* name() const = 0;
  /// The form of its functions' description; null if another peer's is used.
  virtual const char* description() const { return nullptr; }
  /// The limit above which a run would take minutes.
  virtual std::size_t max_functions() const = 0;
  /// Does what a generator has done before it registers. This is not measured.
  virtual void prepare(std::span<const JitFunction> functions) = 0;
  virtual void register_function(std::size_t index) = 0;
  virtual void cancel_function(std::size_t index) = 0;
  /// Looks up the code at an address as a step does. Returns false when nothing is found.
  virtual bool find(const void* pc) = 0;
  virtual bool can_find() const { return true; }
  /// The place at which a registered function runs, if the registrar has made a copy of it; else null.
  virtual const std::byte* copy_of(std::size_t) const { return nullptr; }
};

// Each program implements the following functions.

/// The name of the unwinder that throws in this program.
const char* thrower();
std::span<const Walker> walkers();
std::span<Registrar* const> registrars();

}  // namespace bench
