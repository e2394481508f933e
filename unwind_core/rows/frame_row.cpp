#include "jitunwind/unwind_core/rows/frame_row.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <functional>
#include <span>

#include "jitunwind/unwind_core/rows/row_text.h"

namespace jitunwind {
namespace {

bool same_bytes(Expression a, Expression b) noexcept {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace

bool operator==(const CfaRule& a, const CfaRule& b) noexcept {
  return a.kind == b.kind && a.reg == b.reg && a.offset == b.offset && a.add == b.add &&
         same_bytes(a.expression, b.expression);
}

bool operator==(const RegRule& a, const RegRule& b) noexcept {
  if (a.kind != b.kind || a.reg != b.reg) return false;
  return a.has_expression() ? same_bytes(a.expression(), b.expression()) : a.offset == b.offset;
}

const char* origin_name(RowOrigin origin) noexcept {
  switch (origin) {
    case RowOrigin::none:
      return "none";
    case RowOrigin::dyn_directives:
      return "dyn_directives";
    case RowOrigin::dyn_table:
      return "dyn_table";
    case RowOrigin::eh_frame:
      return "eh_frame";
    case RowOrigin::debug_frame:
      return "debug_frame";
    case RowOrigin::signal_frame:
      return "signal_frame";
    case RowOrigin::plt_stub:
      return "plt_stub";
    case RowOrigin::callback:
      return "callback";
    case RowOrigin::followed_code:
      return "followed_code";
    case RowOrigin::frame_pointer:
      return "frame_pointer";
    case RowOrigin::bad_call:
      return "bad_call";
    case RowOrigin::leaf:
      return "leaf";
    case RowOrigin::arm_exidx:
      return "arm_exidx";
  }
  return "?";
}

RegRule FrameRow::rule(RegNum reg) const noexcept {
  for (const Entry& e : entries())
    if (e.reg == reg) return e.rule;
  return {};
}

FrameRow::Entry* FrameRow::entry_of(RegNum reg) noexcept {
  Entry* const begin = first_entry();
  Entry* const end = begin + count_;
  Entry* at = end;
  while (at != begin && at[-1].reg >= reg) --at;
  if (at != end && at->reg == reg) return at;
  if (count_ == k_max_rules) return nullptr;
  for (Entry* to = end; to != at; --to) *to = to[-1];
  ++count_;
  return at;
}

bool FrameRow::remove(RegNum reg) noexcept {
  const std::span<Entry> all(first_entry(), count_);
  const auto found = std::ranges::find(all, reg, &Entry::reg);
  if (found == all.end()) return true;
  std::copy(found + 1, all.end(), found);
  --count_;
  return true;
}

bool operator==(const FrameRow& a, const FrameRow& b) noexcept {
  return a.cfa == b.cfa && a.ra == b.ra && a.args_size == b.args_size && a.signal_frame == b.signal_frame &&
         std::ranges::equal(a.entries(), b.entries(),
                            [](const auto& x, const auto& y) { return x.reg == y.reg && x.rule == y.rule; });
}

/// Replaces the bytes of every expression e of the row by place(e).
template <class Place>
void FrameRow::place_expressions(Place place) noexcept {
  cfa.expression = place(cfa.expression);
  for (std::size_t i = 0; i < count_; ++i) {
    RegRule& rule = first_entry()[i].rule;
    if (rule.kind == RegRule::Kind::at_expression) rule = RegRule::at(place(rule.expression()));
    if (rule.kind == RegRule::Kind::is_expression) rule = RegRule::is(place(rule.expression()));
  }
}

FrameRow& FrameRow::operator=(const FrameRow& other) noexcept {
  if (this == &other) return *this;
  cfa = other.cfa;
  range = other.range;
  args_size = other.args_size;
  ra = other.ra;
  origin = other.origin;
  keeps_by = other.keeps_by;
  signal_frame = other.signal_frame;
  signing_key = other.signing_key;
  count_ = other.count_;
  std::copy_n(other.first_entry(), count_, first_entry());
  owned_size_ = other.owned_size_;
  std::copy_n(other.owned_.data(), owned_size_, owned_.data());
  if (owned_size_ == 0) return *this;
  place_expressions([&](Expression e) {
    const std::less<const std::byte*> before;
    const std::byte* const owned = other.owned_.data();
    if (before(e.data(), owned) || !before(e.data(), owned + owned_size_)) return e;
    return Expression(owned_.data() + (e.data() - owned), e.size());
  });
  return *this;
}

bool FrameRow::own_expressions() noexcept {
  std::array<std::byte, k_max_owned_bytes> bytes;  // a copy, since owned_ may hold some of the expressions
  std::size_t size = 0;
  const auto take = [&](Expression e) {
    if (e.size() > bytes.size() - size) return false;
    std::copy_n(e.data(), e.size(), bytes.data() + size);
    size += e.size();
    return true;
  };
  if (!take(cfa.expression)) return false;
  for (const Entry& e : entries())
    if (!take(e.rule.expression())) return false;

  std::copy_n(bytes.data(), size, owned_.data());
  owned_size_ = static_cast<std::uint16_t>(size);
  std::size_t at = 0;
  place_expressions([&](Expression e) {
    at += e.size();
    return Expression(owned_.data() + at - e.size(), e.size());
  });
  return true;
}

FrameRow entry_row(const Arch& arch) noexcept {
  FrameRow row;
  row.cfa = CfaRule::at(arch.sp, arch.entry_cfa);
  row.ra = arch.ra;
  if (arch.ra_in_memory) (void)row.set(arch.ra, RegRule::at_cfa(arch.entry_ra));
  return row;
}

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
