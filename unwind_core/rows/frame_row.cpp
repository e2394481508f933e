#include "jitunwind/unwind_core/rows/frame_row.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>

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

}  // namespace jitunwind
