#include "jitunwind/unwind_core/environment.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>

#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

constexpr std::string_view k_blanks = " \t";

std::string_view without_blanks(std::string_view word) noexcept {
  word.remove_prefix(std::min(word.find_first_not_of(k_blanks), word.size()));
  return word.substr(0, word.find_last_not_of(k_blanks) + 1);
}

void name_unknown(const char* variable, std::string_view word, KnownWords known) noexcept {
  Line line;
  line.text("jitunwind: ").text(variable).text(": there is no \"").foreign(word.substr(0, 64)).text("\", only ");
  for (const std::string_view& each : known) line.text(&each == known.data() ? "" : ", ").text(each);
  line.write_to(STDERR_FILENO);
}

}  // namespace

void UnknownWords::add(std::string_view word) noexcept {
  if (std::ranges::find(words(), word) != words().end()) return;
  are_more_ = count_ == words_.size();
  if (!are_more_) words_[count_++] = word;
}

std::uint32_t bits_of_words(std::string_view list, KnownWords known, UnknownWords& unknown) noexcept {
  std::uint32_t bits = 0;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view word = without_blanks(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    const auto number = std::ranges::find(known, word) - known.begin();
    if (number != std::ssize(known)) {
      bits |= std::uint32_t{1} << number;
    } else if (!word.empty()) {
      unknown.add(word);
    }
  }
  return bits;
}

[[gnu::hot]] std::uint32_t environment_words(const char* variable, KnownWords known, IfUnknown if_unknown) noexcept {
  const char* const value = ::secure_getenv(variable);
  if (value == nullptr) return 0;
  UnknownWords unknown;
  const std::uint32_t bits = bits_of_words(value, known, unknown);
  if (if_unknown == IfUnknown::pass_by) return bits;
  for (const std::string_view word : unknown.words()) name_unknown(variable, word, known);
  if (unknown.are_more()) {
    Line line;
    line.text("jitunwind: ").text(variable).text(": more words that there are not");
    line.write_to(STDERR_FILENO);
  }
  return bits;
}

/// One of several threads that ask at once names unknown words.
[[gnu::hot]] bool is_to_keep_nothing() noexcept {
  static constexpr std::array<std::string_view, 1> k_words{"nothing"};
  static constinit std::atomic<bool> is_named{false};
  const bool was_named = is_named.exchange(true, std::memory_order_relaxed);
  return environment_words("JITUNWIND_KEEP", k_words, was_named ? IfUnknown::pass_by : IfUnknown::name_it) != 0;
}

}  // namespace jitunwind
