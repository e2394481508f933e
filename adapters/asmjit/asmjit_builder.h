// asmjit's x86::Builder, noting where emitProlog() writes and for which calling convention.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace jitunwind {

/// In place of asmjit::x86::Builder, whose interface it has, where procedures have no named labels or other conventions
/// than the psABI's. (An x86::Builder's procedures begin at the first byte, at targets of calls, and at named global
/// labels that no jump leads to, and follow the psABI. An x86::Compiler knows all this of its functions.)
class AsmjitBuilder : public asmjit::x86::Builder {
 public:
  explicit AsmjitBuilder(asmjit::CodeHolder* code = nullptr) noexcept;
  ~AsmjitBuilder() noexcept override;

  /// What is written at the cursor now is the first of a procedure; it is entered by calls from anywhere.
  asmjit::Error procedure(std::string_view name = {}) noexcept;

#if ASMJIT_LIBRARY_VERSION >= 0x011200
  asmjit::Error on_attach(asmjit::CodeHolder& code) noexcept override;
#else
  asmjit::Error onAttach(asmjit::CodeHolder* code) noexcept override;
#endif

 private:
  friend struct AsmjitAccess;
  /// A label of our own at the cursor marks the place.
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
