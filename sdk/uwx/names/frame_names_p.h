// Names and source of the current frame: the client's answers, requested once, and the strings that were handed out.
#pragma once

#include <cstdint>

#include "jitunwind/sdk/uwx/answers/callbacks_p.h"
#include "jitunwind/sdk/uwx/names/file_cache_p.h"

namespace jitunwind::uwx {

class FrameNames {
 public:
  explicit FrameNames(const Allocator& allocator) noexcept : pool_(allocator) {}

  /// Begins another frame.
  void forget() noexcept;
  /// Continues with the code around an inlined call.
  void step_inline(int context) noexcept;
  /// Stores the facts that LOOKUP gave.
  void know(const FrameFacts& facts) noexcept;
  void know_function(Addr start) noexcept { function_ = start; }

  /// The requests UWX_LKUP_MODULE and UWX_LKUP_SYMBOLS are made unless the answer is known. Status: OK, NOSYM, or an
  /// error.
  int ask_module(const Callbacks& callbacks, CodeAddress at) noexcept;
  /// `wants_source`: names alone are not enough. `gets_source`: an answer contains everything.
  int ask_symbols(const Callbacks& callbacks, CodeAddress at, bool wants_source, bool gets_source) noexcept;

  char* module() const noexcept { return module_; }
  Addr text_base() const noexcept { return text_base_; }
  /// The function's start by the unwind information, or else by the symbol; 0: not known.
  Addr function() const noexcept { return function_ != 0 ? function_ : symbol_start_; }
  char* symbol() const noexcept { return symbol_; }
  /// The offset of `at` from the symbol's start; 0: not known.
  std::uint64_t offset(Addr at) const noexcept { return symbol_ && symbol_start_ != 0 ? at - symbol_start_ : 0; }

  struct Source {
    char* inlined = nullptr;
    char* file = nullptr;
    int line = 0;
    int context = 0;  ///< for step_inline()
  };
  const Source& source() const noexcept { return source_; }

  StringPool& pool() noexcept { return pool_; }

 private:
  enum class Asked : unsigned char { no, symbols, with_source };

  int ask(const Callbacks& callbacks, int request, CodeAddress at) noexcept;
  bool take(std::uint64_t key, std::uint64_t value, bool& lacks_memory) noexcept;

  StringPool pool_;
  char* module_ = nullptr;
  char* symbol_ = nullptr;
  Addr text_base_ = 0;
  Addr function_ = 0;
  Addr symbol_start_ = 0;
  Source source_{};
  int inlined_at_ = 0;  // the argument of uwx_step_inline
  bool module_asked_ = false;
  Asked symbols_asked_ = Asked::no;
};

}  // namespace jitunwind::uwx
