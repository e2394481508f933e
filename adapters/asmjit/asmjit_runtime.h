// asmjit's JitRuntime, registering the code it adds, so that every walk of this process knows its frames and names.
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
#include <string>
#include <string_view>

#include "jitunwind/adapters/asmjit/asmjit_code.h"
#include "jitunwind/builders/registration.h"

#pragma GCC visibility push(default)
namespace jitunwind {

/// What add() does with code of which not every procedure can be described.
enum class Undescribed : std::uint8_t {
  refuse,  ///< kErrorInvalidState; the code is not added
  add,     ///< it is added; walks do not know the procedures that were refused
};

/// How a runtime treats the code that is added.
struct AsmjitRuntimeOptions {
  Undescribed undescribed = Undescribed::refuse;
  /// Called for each procedure that was refused, on the thread that adds. Else, and in addition, the reasons go to the
  /// error handler of the code's emitter. Where there is neither, the first reason of the process goes to stderr. Must
  /// not throw.
  std::function<void(const AsmjitRefusal&)> on_refusal{};
  const asmjit::JitAllocator::CreateParams* allocator = nullptr;  ///< read by the constructor only
};

/// add() and release() as of JitRuntime. add() describes and registers each procedure; release() cancels them, waiting
/// for walks that read their descriptions just now, and then frees the code. The destructor cancels everything that was
/// not released.
///
/// Thread-safe: threads may add and release at the same time, each with a CodeHolder of its own. Not signal-safe.
/// Errors beside JitRuntime's own: kErrorInvalidState from add() (see Undescribed), kErrorInvalidArgument from
/// release() of an address that add() did not give, kErrorOutOfMemory. Nothing stays registered or allocated when add()
/// fails.
class AsmjitRuntime : public asmjit::JitRuntime {
 public:
  explicit AsmjitRuntime(AsmjitRuntimeOptions options = {}) noexcept;
  ~AsmjitRuntime() noexcept override;

  using asmjit::JitRuntime::add;
  /// With a name for the procedure at the start of the code, if that has none of its own.
  template <class Function>
  asmjit::Error add(Function* out, asmjit::CodeHolder* code, std::string_view name) noexcept {
    void* start = nullptr;
    const asmjit::Error error = add_named(&start, code, name);
    *out = reinterpret_cast<Function>(start);
    return error;
  }

  /// Releases everything.
  void reset(asmjit::ResetPolicy policy = asmjit::ResetPolicy::kSoft) noexcept;

  /// Procedures registered now.
  std::size_t registered() const;

  // What asmjit calls.
  asmjit::Error _add(void** out, asmjit::CodeHolder* code) noexcept override;
  asmjit::Error _release(void* start) noexcept override;

 private:
  asmjit::Error add_named(void** out, asmjit::CodeHolder* code, std::string_view name) noexcept;
  asmjit::Error describe_and_add(void** out, asmjit::CodeHolder& code, std::string_view name);
  void report(const AsmjitDescription& description, asmjit::CodeHolder& code) const;
  asmjit::Error register_procedures(void* start, const AsmjitDescription& description, std::string_view name);

  const AsmjitRuntimeOptions options_;
  mutable std::mutex mutex_;
  std::map<void*, RegistrationBatch> added_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
