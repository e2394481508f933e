#include "jitunwind/unwind_core/rows/row_text.h"

#include <array>
#include <charconv>
#include <utility>

namespace jitunwind {
namespace {

class RowParser {
 public:
  RowParser(std::string_view text, const Arch& arch, ExpressionPool& pool) : text_(text), arch_(arch), pool_(pool) {}

  Result<ParsedRow> parse() {
    ParsedRow parsed;
    parsed.row.ra = arch_.ra;
    skip_blanks();
    if (accept('+')) {
      parsed.offset = hex_number();
      if (!parsed.offset || !accept(':')) return fail("code offset must read +HEX:");
      skip_blanks();
    }
    if (!accept("cfa=")) return fail("row must begin with cfa=");
    if (!cfa(parsed.row.cfa)) return fail("bad CFA rule");
    while (skip_blanks(), pos_ < text_.size()) {
      if (!item(parsed.row)) return fail(why_);
    }
    return parsed;
  }

 private:
  Error fail(const char* what) const { return {ErrorCode::invalid_argument, pos_, what}; }
  bool because(const char* why) {
    why_ = why;
    return false;
  }

  void skip_blanks() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\t')) ++pos_;
  }
  bool accept(char c) {
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }
  bool accept(std::string_view word) {
    if (text_.substr(pos_, word.size()) != word) return false;
    pos_ += word.size();
    return true;
  }
  char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }

  std::string_view word() {
    const std::size_t begin = pos_;
    while (pos_ < text_.size()) {
      const char c = text_[pos_];
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      if (!letter) break;
      ++pos_;
    }
    return text_.substr(begin, pos_ - begin);
  }

  template <class Int>
  std::optional<Int> digits(int base) {
    Int value{};
    const auto [end, error] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), value, base);
    if (error != std::errc{}) return std::nullopt;
    pos_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  std::optional<std::uint64_t> hex_number() { return digits<std::uint64_t>(16); }

  /// A signed number, decimal or 0x, of the whole range of std::int64_t.
  std::optional<std::int64_t> number() {
    const bool negative = accept('-');
    if (!negative) (void)accept('+');
    const bool hex = accept("0x");
    const char first = peek();
    if (first == '-' || first == '+') return std::nullopt;
    const auto magnitude = digits<std::uint64_t>(hex ? 16 : 10);
    const std::uint64_t limit = std::uint64_t{1} << 63;
    if (!magnitude || *magnitude > limit || (*magnitude == limit && !negative)) return std::nullopt;
    return static_cast<std::int64_t>(negative ? ~*magnitude + 1 : *magnitude);
  }

  /// Returns nothing for a malformed offset, and 0 with `present` = false when there is none.
  std::optional<std::int64_t> optional_offset(bool* present = nullptr) {
    const bool there = peek() == '+' || peek() == '-';
    if (present) *present = there;
    return there ? number() : std::optional<std::int64_t>{0};
  }

  std::optional<RegNum> reg() {
    const std::size_t begin = pos_;
    const std::string_view name = word();
    if (const RegisterInfo* info = arch_.by_name(name)) return info->dwarf;
    if (name.size() > 1 && name[0] == 'r') {
      RegNum value{};
      const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), value);
      if (error == std::errc{} && end == name.data() + name.size() && value != k_no_reg && !arch_.by_dwarf(value))
        return value;
    }
    pos_ = begin;
    return std::nullopt;
  }

  static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  /// Parses the bytes of an expression. Precondition: "expr(" has been consumed.
  std::optional<Expression> expression() {
    std::vector<std::byte> bytes;
    while (!accept(')')) {
      if (pos_ + 2 > text_.size()) return std::nullopt;
      const int high = hex_digit(text_[pos_]);
      const int low = hex_digit(text_[pos_ + 1]);
      if (high < 0 || low < 0) return std::nullopt;
      bytes.push_back(static_cast<std::byte>(high * 16 + low));
      pos_ += 2;
    }
    return pool_.add(std::move(bytes));
  }

  bool cfa(CfaRule& out) {
    if (accept("none")) return out = CfaRule{}, true;
    if (accept("expr(")) {
      const auto e = expression();
      return e && (out = CfaRule::of(*e), true);
    }
    const bool deref = accept('[');
    const auto r = reg();
    if (!r) return false;
    const auto offset = optional_offset();
    if (!offset) return false;
    if (!deref) return out = CfaRule::at(*r, *offset), true;
    if (!accept(']')) return false;
    const auto add = optional_offset();
    return add && (out = CfaRule::deref(*r, *offset, *add), true);
  }

  bool loaded(RegRule& out) {
    if (accept("expr(")) {
      const auto e = expression();
      if (!e) return false;
      out = RegRule::at(*e);
    } else if (accept("cfa")) {
      const auto offset = optional_offset();
      if (!offset) return false;
      out = RegRule::at_cfa(*offset);
    } else {
      const auto r = reg();
      const auto offset = r ? optional_offset() : std::nullopt;
      if (!offset) return false;
      out = RegRule::at_reg(*r, *offset);
    }
    return accept(']');
  }

  bool rule(RegRule& out) {
    if (accept("same")) return out = RegRule::same(), true;
    if (accept("undefined")) return out = RegRule::undefined(), true;
    if (accept('[')) return loaded(out);
    if (accept("expr(")) {
      const auto e = expression();
      return e && (out = RegRule::is(*e), true);
    }
    if (accept("cfa")) {
      const auto offset = optional_offset();
      return offset && (out = RegRule::is_cfa(*offset), true);
    }
    if (peek() == '-' || (peek() >= '0' && peek() <= '9')) {
      const auto value = number();
      return value && (out = RegRule::constant(*value), true);
    }
    const auto r = reg();
    if (!r) return false;
    bool with_offset = false;
    const auto offset = optional_offset(&with_offset);
    if (!offset) return false;
    out = with_offset ? RegRule::is_reg(*r, *offset) : RegRule::in_reg(*r);
    return true;
  }

  bool item(FrameRow& row) {
    const std::size_t begin = pos_;
    if (word() == "signal" && (pos_ == text_.size() || peek() == ' ')) return row.signal_frame = true;
    pos_ = begin;
    if (accept("args=")) {
      const auto size = digits<std::uint32_t>(10);
      if (!size) return because("bad args size");
      row.args_size = *size;
      return true;
    }
    const auto r = reg();
    if (!r || !accept('=')) return because("expected register=rule");
    RegRule parsed;
    if (!rule(parsed)) return because("bad register rule");
    if (pos_ < text_.size() && peek() != ' ' && peek() != '\t') return because("blank expected between rules");
    if (row.rule(*r).kind != RegRule::Kind::unspecified) return because("register given twice");
    return row.set(*r, parsed) || because("too many rules");
  }

  std::string_view text_;
  const Arch& arch_;
  ExpressionPool& pool_;
  std::size_t pos_ = 0;
  const char* why_ = "";
};

}  // namespace

ExpressionPool::ExpressionPool() noexcept = default;
ExpressionPool::~ExpressionPool() = default;

Expression ExpressionPool::add(std::vector<std::byte> bytes) { return blocks_.emplace_back(std::move(bytes)); }

std::string to_text(const FrameRow& row, const Arch& arch) {
  std::string text(128, '\0');
  const std::size_t size = write_text(row, arch, {text.data(), text.size() + 1});
  const bool is_whole = size <= text.size();
  text.resize(size);
  if (!is_whole) (void)write_text(row, arch, {text.data(), size + 1});
  return text;
}

std::string to_text(std::uint64_t offset, const FrameRow& row, const Arch& arch) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), offset, 16).ptr;
  return "+" + std::string(digits.data(), end) + ": " + to_text(row, arch);
}

Result<ParsedRow> parse_row(std::string_view text, const Arch& arch, ExpressionPool& pool) {
  return RowParser(text, arch, pool).parse();
}

}  // namespace jitunwind
