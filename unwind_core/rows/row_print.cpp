#include <algorithm>
#include <array>
#include <charconv>

#include "jitunwind/unwind_core/rows/row_text.h"

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

class RowPrinter {
 public:
  RowPrinter(CutText& text, const Arch& arch) noexcept : text_(text), arch_(arch) {}

  void print(const FrameRow& row) noexcept {
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

  CutText& text_;
  const Arch& arch_;
};

}  // namespace

std::size_t write_text(const FrameRow& row, const Arch& arch, std::span<char> into) noexcept {
  CutText text(into.first(into.empty() ? 0 : into.size() - 1));
  RowPrinter(text, arch).print(row);
  if (!into.empty()) into[std::min(text.size(), into.size() - 1)] = '\0';
  return text.size();
}

}  // namespace jitunwind
