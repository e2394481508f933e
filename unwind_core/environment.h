// Environment variables that hold words, separated by commas: JITUNWIND_ATTACH=gdb, JITUNWIND_LOG=walk,rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#pragma GCC visibility push(default)
namespace jitunwind {

using KnownWords = std::span<const std::string_view>;  ///< at most 32

/// The unknown words of a list. Each is kept once; when there are many, only the first ones are kept.
class UnknownWords {
 public:
  /// Does nothing when the word was added before or no room is left.
  void add(std::string_view word) noexcept;
  std::span<const std::string_view> words() const noexcept { return {words_.data(), count_}; }
  bool are_more() const noexcept { return are_more_; }  ///< more than there is room for

 private:
  std::array<std::string_view, 8> words_{};
  std::size_t count_ = 0;
  bool are_more_ = false;
};

/// Bit i of the result says that the list has known[i]. Blanks around a word are ignored, and so are empty words.
/// `unknown` gets views into `list`.
std::uint32_t bits_of_words(std::string_view list, KnownWords known, UnknownWords& unknown) noexcept;

/// The treatment of unknown words.
enum class IfUnknown : bool { name_it, pass_by };

/// Returns the bits of the words that the variable holds, 0 when it is not set. Unknown words are named on standard
/// error, one line each, and then ignored; IfUnknown::pass_by says that somebody has named them already. The variable
/// is ignored in a process that changed user or group identity when it was executed (secure_getenv(3); getauxval(3),
/// AT_SECURE). Allocates nothing. No other thread may change the environment meanwhile (getenv(3)), so this is called
/// while a library is loaded, or once. `variable` is a literal.
std::uint32_t environment_words(const char* variable, KnownWords known,
                                IfUnknown if_unknown = IfUnknown::name_it) noexcept;

/// JITUNWIND_KEEP=nothing, which asks for the reference engine: docs/caches.md "Doing without". Looks at the
/// environment each time. The first caller names unknown words.
bool is_to_keep_nothing() noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
