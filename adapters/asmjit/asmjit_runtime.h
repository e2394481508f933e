// asmjit's JitRuntime that registers the code it adds, so that every walk of this process knows its frames and names.
//
//   jitunwind::AsmjitRuntime runtime;                  // was: asmjit::JitRuntime
//   jitunwind::AsmjitAssembler a(&code);               // was: asmjit::x86::Assembler; Builder and Compiler stay
#pragma once

#include <asmjit/x86.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>

#include "jitunwind/adapters/asmjit/asmjit_code.h"
#include "jitunwind/adapters/code_segments/code_segments.h"
#include "jitunwind/builders/registration.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// A program that links the adapter for another version of asmjit has a name of this namespace as an undefined symbol,
/// such as v1_21, the version of its headers. The adapter's sources can be compiled for it: docs/asmjit.md, "Versions".
namespace adapter_was_built_for_another_asmjit {
extern const int ASMJIT_ABI_NAMESPACE;
[[gnu::used]] inline const int* const k_version = &ASMJIT_ABI_NAMESPACE;
}  // namespace adapter_was_built_for_another_asmjit

/// The policy of add() for code with a procedure that cannot be described.
enum class Undescribed : std::uint8_t {
  refuse,  ///< kErrorInvalidState; the code is not added
  add,     ///< the code is added; walks do not know the refused procedures
};

/// Options for the code that a runtime adds.
struct AsmjitRuntimeOptions {
  Undescribed undescribed = Undescribed::refuse;
  /// Called for each refused procedure, on the thread that adds. The error handler of the code's emitter also receives
  /// the reasons. If neither exists, the first reason of the process goes to stderr. The function must not throw.
  std::function<void(const AsmjitRefusal&)> on_refusal{};
  const asmjit::JitAllocator::CreateParams* allocator = nullptr;  ///< read by the constructor only
  /// Code lies in these, so that tools see it which were never told of this library; null: in memory of asmjit's
  /// allocator, which has nothing to do otherwise. They must outlive the runtime.
  CodeSegments* segments = CodeSegments::of_environment();
};

/// add() and release() as in JitRuntime. add() describes and registers each procedure. release() cancels them, waits
/// for walks that read their descriptions at this moment, and then frees the code. The destructor cancels everything
/// that was not released.
///
/// Thread-safe: threads may add and release at the same time, each with a CodeHolder of its own. Not signal-safe.
/// Errors beside JitRuntime's own: kErrorInvalidState from add() (see Undescribed), kErrorInvalidArgument from
/// release() of an address that add() did not return, kErrorOutOfMemory. Nothing stays registered or allocated when
/// add() fails.
class AsmjitRuntime : public asmjit::JitRuntime {
 public:
  explicit AsmjitRuntime(AsmjitRuntimeOptions options = {}) noexcept;
  ~AsmjitRuntime() noexcept override;

  using asmjit::JitRuntime::add;
  /// Adds code with a name for the procedure at its start, if that procedure has no name of its own.
  template <class Function>
  asmjit::Error add(Function* out, asmjit::CodeHolder* code, std::string_view name) noexcept {
    void* start = nullptr;
    const asmjit::Error error = add_named(&start, code, name);
    *out = reinterpret_cast<Function>(start);
    return error;
  }

  /// Releases everything.
  void reset(asmjit::ResetPolicy policy = asmjit::ResetPolicy::kSoft) noexcept;

  /// Number of procedures registered at this moment.
  std::size_t registered() const;

  // Functions that asmjit calls.
  asmjit::Error _add(void** out, asmjit::CodeHolder* code) noexcept override;
  asmjit::Error _release(void* start) noexcept override;

 private:
  /// The procedures of one code, most of which are alone.
  struct Procedures {
    Registration first;
    RegistrationBatch others;
    std::size_t size() const noexcept { return (first ? 1 : 0) + others.size(); }
    Status cancel() noexcept;
  };
  template <class Described>
  static Status register_all(void* start, Described& described, std::string_view name, Procedures& out);
  void release_all() noexcept;
  asmjit::Error add_named(void** out, asmjit::CodeHolder* code, std::string_view name) noexcept;
  asmjit::Error describe_and_add(void** out, asmjit::CodeHolder& code, std::string_view name);
  void report(const AsmjitDescription& description, asmjit::CodeHolder& code) const;
  template <class Described>
  asmjit::Error add_registered(void** out, asmjit::CodeHolder& code, Described& procedures, std::string_view name);
  asmjit::Error place(void** out, asmjit::CodeHolder& code, std::size_t more_functions) noexcept;
  asmjit::Error place_in_segments(void** out, asmjit::CodeHolder& code, std::size_t more_functions) noexcept;
  asmjit::Error take_away(void* start) noexcept;

  const AsmjitRuntimeOptions options_;
  mutable std::mutex mutex_;
  std::map<void*, Procedures> added_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
