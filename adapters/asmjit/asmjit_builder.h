// asmjit's x86::Builder with a record of where emitProlog() writes and for which calling convention.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace jitunwind {

/// Replaces asmjit::x86::Builder and has its interface. It is needed for procedures without named labels, or with other
/// calling conventions than the psABI's. (Procedures of an x86::Builder begin at the first byte, at targets of calls,
/// and at named global labels that no jump leads to; they follow the psABI. An x86::Compiler knows start and convention
/// of its functions.)
class AsmjitBuilder : public asmjit::x86::Builder {
 public:
  explicit AsmjitBuilder(asmjit::CodeHolder* code = nullptr) noexcept;
  ~AsmjitBuilder() noexcept override;

  /// Begins a procedure at the cursor, which calls from anywhere may enter.
  asmjit::Error procedure(std::string_view name = {}) noexcept;

#if ASMJIT_LIBRARY_VERSION >= 0x011200
  asmjit::Error on_attach(asmjit::CodeHolder& code) noexcept override;
#else
  asmjit::Error onAttach(asmjit::CodeHolder* code) noexcept override;
#endif

 private:
  friend struct AsmjitAccess;
  /// A private label at the cursor, which marks the place.
  struct Mark {
    std::uint32_t label;
    std::uint64_t preserved;  ///< derivation::RegSet; 0: the psABI's
    bool declared;
    std::string name;
  };
  asmjit::Error mark(std::uint64_t preserved, bool declared, std::string_view name) noexcept;

  std::vector<Mark> marks_;
};

}  // namespace jitunwind
#pragma GCC visibility pop
