#include "jitunwind/unwind_core/environment.h"

#include <algorithm>
#include <cstdlib>

#include "jitunwind/unwind_core/uncancelled_p.h"

namespace jitunwind {
namespace {

constexpr std::string_view k_blanks = " \t";

std::string_view without_blanks(std::string_view word) noexcept {
  word.remove_prefix(std::min(word.find_first_not_of(k_blanks), word.size()));
  return word.substr(0, word.find_last_not_of(k_blanks) + 1);
}

/// One line in room of its own, written by one system call; what does not fit is cut.
class Line {
 public:
  explicit Line(const char* variable) noexcept {
    add("jitunwind: ");
    add(variable);
  }
  void add(std::string_view text) noexcept { size_ += text.copy(text_.data() + size_, k_room - size_); }
  /// At most 64 characters of somebody else's text, without control characters, which a terminal would obey.
  void add_foreign(std::string_view text) noexcept {
    char* const begin = text_.data() + size_;
    add(text.substr(0, 64));
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
    std::replace_if(begin, text_.data() + size_, is_control, '?');
  }
  void write() noexcept {
    text_[size_] = '\n';
    write_to_standard_error({text_.data(), size_ + 1});
  }

 private:
  static constexpr std::size_t k_room = 399;
  std::array<char, k_room + 1> text_;
  std::size_t size_ = 0;
};

void name_unknown(const char* variable, std::string_view word, KnownWords known) noexcept {
  Line line(variable);
  line.add(": there is no \"");
  line.add_foreign(word);
  line.add("\", only ");
  for (const std::string_view& each : known) {
    if (&each != known.data()) line.add(", ");
    line.add(each);
  }
  line.write();
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

std::uint32_t environment_words(const char* variable, KnownWords known) noexcept {
  const char* const value = ::secure_getenv(variable);
  if (value == nullptr) return 0;
  UnknownWords unknown;
  const std::uint32_t bits = bits_of_words(value, known, unknown);
  for (const std::string_view word : unknown.words()) name_unknown(variable, word, known);
  if (unknown.are_more()) {
    Line line(variable);
    line.add(": more words that there are not");
    line.write();
  }
  return bits;
}

}  // namespace jitunwind
