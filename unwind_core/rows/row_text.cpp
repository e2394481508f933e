#include "jitunwind/unwind_core/rows/row_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace jitunwind {
namespace {

/// Receives a row's text, and keeps the part of it that fits.
class CutText {
 public:
  explicit CutText(std::span<char> into) noexcept : into_(into) {}
  void append(std::string_view text) noexcept {
    if (size_ < into_.size()) text.copy(into_.data() + size_, into_.size() - size_);
    size_ += text.size();
  }
  std::size_t size() const noexcept { return size_; }

 private:
  std::span<char> into_;
  std::size_t size_ = 0;
};

/// Appends the text to a std::string, or to a buffer that allocates nothing.
template <class Text>
class RowPrinter {
 public:
  RowPrinter(Text& text, const Arch& arch) noexcept : text_(text), arch_(arch) {}

  void print(const FrameRow& row) {
    text_.append("cfa=");
    print(row.cfa);
    const auto place = [&](const FrameRow::Entry& e) {  // order: saved registers, ra, pseudo registers
      const RegisterInfo* info = arch_.by_dwarf(e.reg);
      return e.reg == row.ra ? 1 : info && info->reg_class == RegClass::pseudo ? 2 : 0;
    };
    for (int pass = 0; pass < 3; ++pass)
      for (const FrameRow::Entry& e : row.entries())
        if (place(e) == pass) print(e, row.ra);
    if (row.args_size != 0) {
      text_.append(" args=");
      print_number(row.args_size);
    }
    if (row.signal_frame) text_.append(" signal");
  }

 private:
  void print_number(std::int64_t value, int base = 10) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, base).ptr;
    text_.append(std::string_view(digits.data(), end));
  }
  /// Prints the number with its sign, even 0.
  void print_signed(std::int64_t value) {
    if (value >= 0) text_.append("+");
    print_number(value);
  }
  void print_offset(std::int64_t value) {
    if (value != 0) print_signed(value);
  }
  void print_reg(RegNum reg) {
    if (const RegisterInfo* const info = arch_.by_dwarf(reg)) return void(text_.append(info->name));
    text_.append("r");
    print_number(reg);
  }
  void print_expression(Expression bytes) {
    constexpr std::string_view k_digits = "0123456789abcdef";
    text_.append("expr(");
    for (const std::byte b : bytes) {
      text_.append(k_digits.substr(std::to_integer<unsigned>(b) >> 4, 1));
      text_.append(k_digits.substr(std::to_integer<unsigned>(b) & 15, 1));
    }
    text_.append(")");
  }
  template <class Print>
  void in_brackets(Print print) {
    text_.append("[");
    print();
    text_.append("]");
  }

  void print(const CfaRule& cfa) {
    switch (cfa.kind) {
      case CfaRule::Kind::none:
        return void(text_.append("none"));
      case CfaRule::Kind::offset:
        print_reg(cfa.reg);
        return print_offset(cfa.offset);
      case CfaRule::Kind::deref:
        in_brackets([&] { print_reg(cfa.reg), print_offset(cfa.offset); });
        return print_offset(cfa.add);
      case CfaRule::Kind::expression:
        return print_expression(cfa.expression);
    }
  }
  void print(const FrameRow::Entry& entry, RegNum return_address) {
    text_.append(" ");
    if (entry.reg == return_address)
      text_.append("ra");
    else
      print_reg(entry.reg);
    text_.append("=");
    print(entry.rule);
  }
  void print(const RegRule& rule) {
    using Kind = RegRule::Kind;
    switch (rule.kind) {
      case Kind::unspecified:
        return void(text_.append("unspecified"));
      case Kind::undefined:
        return void(text_.append("undefined"));
      case Kind::same:
        return void(text_.append("same"));
      case Kind::at_cfa:
        return in_brackets([&] { text_.append("cfa"), print_offset(rule.offset); });
      case Kind::is_cfa:
        text_.append("cfa");
        return print_offset(rule.offset);
      case Kind::in_reg:
        return print_reg(rule.reg);
      case Kind::at_reg:
        return in_brackets([&] { print_reg(rule.reg), print_offset(rule.offset); });
      case Kind::is_reg:
        print_reg(rule.reg);
        return print_signed(rule.offset);
      case Kind::at_expression:
        return in_brackets([&] { print_expression(rule.expression()); });
      case Kind::is_expression:
        return print_expression(rule.expression());
      case Kind::constant:
        return print_number(rule.offset);
    }
  }

  Text& text_;
  const Arch& arch_;
};

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
  std::string text;
  RowPrinter(text, arch).print(row);
  return text;
}

std::string to_text(std::uint64_t offset, const FrameRow& row, const Arch& arch) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), offset, 16).ptr;
  return "+" + std::string(digits.data(), end) + ": " + to_text(row, arch);
}

std::size_t write_text(const FrameRow& row, const Arch& arch, std::span<char> into) noexcept {
  CutText text(into.first(into.empty() ? 0 : into.size() - 1));
  RowPrinter(text, arch).print(row);
  if (!into.empty()) into[std::min(text.size(), into.size() - 1)] = '\0';
  return text.size();
}

Result<ParsedRow> parse_row(std::string_view text, const Arch& arch, ExpressionPool& pool) {
  return RowParser(text, arch, pool).parse();
}

}  // namespace jitunwind
