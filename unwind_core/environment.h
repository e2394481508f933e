// Variables of the environment that hold words, separated by commas: JITUNWIND_ATTACH=gdb, JITUNWIND_LOG=walk,rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#pragma GCC visibility push(default)
namespace jitunwind {

using KnownWords = std::span<const std::string_view>;  ///< at most 32

/// Words of a list that are not known, each once, the first ones of many.
class UnknownWords {
 public:
  /// Nothing where it was added before, or no room is left.
  void add(std::string_view word) noexcept;
  std::span<const std::string_view> words() const noexcept { return {words_.data(), count_}; }
  bool are_more() const noexcept { return are_more_; }  ///< than there is room for

 private:
  std::array<std::string_view, 8> words_{};
  std::size_t count_ = 0;
  bool are_more_ = false;
};

/// Bit i: the list has known[i]. Blanks around a word are no part of it; empty words are passed by. `unknown` has views
/// of `list`.
std::uint32_t bits_of_words(std::string_view list, KnownWords known, UnknownWords& unknown) noexcept;

/// What becomes of words that are not known.
enum class IfUnknown : bool { name_it, pass_by };

/// Bits of the words that the variable holds; 0 where it is not there. Unknown words are ignored. Before that they are
/// named on standard error, one line each, unless `if_unknown` says that somebody has done so. A process that changed
/// user or group identity when it was executed does not look (secure_getenv(3); getauxval(3), AT_SECURE). Allocates
/// nothing. Reads the environment, which no other thread may change meanwhile (getenv(3)): for use while a library is
/// loaded, or once. `variable` is a literal.
std::uint32_t environment_words(const char* variable, KnownWords known,
                                IfUnknown if_unknown = IfUnknown::name_it) noexcept;

}  // namespace jitunwind
#pragma GCC visibility pop
