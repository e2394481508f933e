#include "jitunwind/sdk/uwx/environment_p.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind::uwx {

void FrameNames::forget() noexcept {
  pool_.clear();
  module_ = symbol_ = nullptr;
  text_base_ = function_ = symbol_start_ = 0;
  source_ = {};
  inlined_at_ = 0;
  module_asked_ = false;
  symbols_asked_ = Asked::no;
}

void FrameNames::step_inline(int context) noexcept {
  inlined_at_ = context;
  source_ = {};
  symbols_asked_ = Asked::no;
}

void FrameNames::know(const FrameFacts& facts) noexcept {
  const auto keep = [&](Addr text) { return pool_.keep(reinterpret_cast<const void*>(text)); };
  text_base_ = facts.text_base;
  function_ = facts.func_start;
  if (facts.module_name != 0 && !module_) module_ = keep(facts.module_name);
  if (facts.func_name == 0 || symbol_) return;
  symbol_ = keep(facts.func_name);
  symbol_start_ = facts.func_start;
}

int FrameNames::ask_module(const Callbacks& callbacks, CodeAddress at) noexcept {
  if (!module_ && !module_asked_) {
    const int status = ask(callbacks, UWX_LKUP_MODULE, at);
    if (status != UWX_OK && status != UWX_ERR_NOSYM) return status;
    module_asked_ = true;
  }
  return module_ ? UWX_OK : UWX_ERR_NOSYM;
}

int FrameNames::ask_symbols(const Callbacks& callbacks, CodeAddress at, bool wants_source, bool gets_source) noexcept {
  const bool known = wants_source ? symbols_asked_ == Asked::with_source
                                  : symbols_asked_ != Asked::no || (symbol_ != nullptr && module_ != nullptr);
  if (!known) {
    const int status = ask(callbacks, UWX_LKUP_SYMBOLS, at);
    if (status != UWX_OK && status != UWX_ERR_NOSYM) return status;
    symbols_asked_ = gets_source ? Asked::with_source : Asked::symbols;
  }
  return module_ || symbol_ || source_.file ? UWX_OK : UWX_ERR_NOSYM;
}

int FrameNames::ask(const Callbacks& callbacks, int request, CodeAddress at) noexcept {
  Question question;
  if (at.is_return_address()) question.add(UWX_KEY_CALLER, 1);
  if (function() != 0) question.add(UWX_KEY_FUNCSTART, function());
  if (request == UWX_LKUP_SYMBOLS && inlined_at_ != 0)
    question.add(UWX_KEY_INLINE, static_cast<std::uint64_t>(inlined_at_));
  const Answer answer(callbacks, request, at.value(), question);
  if (answer.kind() == UWX_LKUP_NOTFOUND) return UWX_ERR_NOSYM;
  if (answer.kind() != UWX_LKUP_SYMINFO) return UWX_ERR_LOOKUPERR;
  bool lacks_memory = false;
  const Status read = answer.for_each([&](auto key, auto value) { return take(key, value, lacks_memory); });
  if (!read) return status_of(read.error());
  return lacks_memory ? UWX_ERR_NOMEM : UWX_OK;
}

bool FrameNames::take(std::uint64_t key, std::uint64_t value, bool& lacks_memory) noexcept {
  const auto keep = [&](char*& into) {
    if (value == 0) return true;
    if (!into) into = pool_.keep(pointer_to(value));
    lacks_memory = lacks_memory || !into;
    return true;
  };
  switch (key) {
    case UWX_KEY_MODULE:
      return keep(module_);
    case UWX_KEY_FUNC:
      return keep(symbol_);
    case UWX_KEY_FUNCSTART:
      return symbol_start_ = value, true;
    case UWX_KEY_INLINED_FUNC:
      return keep(source_.inlined);
    case UWX_KEY_SRCFILE:
      return keep(source_.file);
    case UWX_KEY_LINENUM:
      return source_.line = static_cast<int>(value), true;
    case UWX_KEY_INLINE:
      return source_.context = static_cast<int>(value), true;
    case UWX_KEY_TBASE:
      return text_base_ = value, true;
    default:
      return false;
  }
}

}  // namespace jitunwind::uwx
