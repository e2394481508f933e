#include "jitunwind/unwind_core/rows/registers.h"

#include "jitunwind/unwind_core/memory/raw_access_internal.h"

namespace jitunwind {

std::uint64_t RegisterFile::read_in_place(int column) const noexcept {
  return raw_word(places_[static_cast<std::size_t>(column)]);
}

void RegisterFile::set_from(int column, const RegisterFile& other, int other_column) noexcept {
  const SaveLocation place = other.location(other_column);
  const std::uint64_t value = other.value(other_column);
  switch (place.kind) {
    case SaveLocation::Kind::memory:
      return set_from_memory(column, value, place.at);
    case SaveLocation::Kind::reg:
      return set_from_register(column, value, place.reg);
    case SaveLocation::Kind::none:
      return set(column, value);
  }
}

void RegisterFile::set_left(int column, const RegisterFile& callee) noexcept {
  const auto value = callee.get_for_rule(column);
  if (!value || left_bit(column) == 0) return;
  set(column, *value);
  known_ &= ~(std::uint64_t{1} << column);
  left_ |= left_bit(column);
}

}  // namespace jitunwind
