#include "jitunwind/adapters/asmjit/asmjit_builder.h"

#include <new>

#include "jitunwind/adapters/asmjit/asmjit_access_p.h"
#include "jitunwind/adapters/asmjit/asmjit_version_p.h"

namespace jitunwind {

namespace v = asmjit_version;

AsmjitBuilder::AsmjitBuilder(asmjit::CodeHolder* code) noexcept : asmjit::x86::Builder(nullptr) {
  // The base constructor would attach before this class's virtual functions are in place.
  if (code) (void)code->attach(this);
}

AsmjitBuilder::~AsmjitBuilder() noexcept = default;

asmjit::Error AsmjitBuilder::mark(std::uint64_t preserved, bool declared, std::string_view name) noexcept {
  const asmjit::Label label = v::new_label(*this);
  try {
    marks_.push_back({label.id(), preserved, declared, std::string(name)});
  } catch (const std::bad_alloc&) {
    return v::k_out_of_memory;
  }
  return bind(label);
}

asmjit::Error AsmjitBuilder::procedure(std::string_view name) noexcept { return mark(0, true, name); }

#if JITUNWIND_ASMJIT_SNAKE_CASE
asmjit::Error AsmjitBuilder::on_attach(asmjit::CodeHolder& code) noexcept {
  const asmjit::Error error = asmjit::x86::Builder::on_attach(code);
#else
asmjit::Error AsmjitBuilder::onAttach(asmjit::CodeHolder* code) noexcept {
  const asmjit::Error error = asmjit::x86::Builder::onAttach(code);
#endif
  if (error != asmjit::kErrorOk) return error;
  marks_.clear();
  AsmjitAccess::watch_prologs(*this, &AsmjitAccess::emit_prolog_of_builder);
  return error;
}

}  // namespace jitunwind
