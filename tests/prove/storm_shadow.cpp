#include "tests/prove/storm_shadow.h"

#include <algorithm>

namespace jitunwind::storm {
namespace {

constexpr Addr k_slot = 256;  // of code made at run time

Addr number(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bool is(const Walked& frame, const Call& call) {
  return frame.pc == number(call.pc) && (frame.sp == 0 || frame.sp == number(call.sp));
}

/// The frame is a procedure's that has pushed itself, and does not call yet, or no longer does.
bool is_interrupted(const Walked& frame, const Call& call, Addr interrupted) {
  return frame.pc == interrupted && frame.pc / k_slot == number(call.pc) / k_slot &&
         (frame.sp == 0 || frame.sp == number(call.sp));
}

/// True if the interrupted code is among the inner frames and no procedure has called it: a procedure would have pushed
/// itself before.
bool may_be_there(std::span<const Walked> further_in, Addr interrupted, IsProcedure is_procedure) {
  const auto at = std::ranges::find(further_in, interrupted, &Walked::pc);
  return at != further_in.end() &&
         std::none_of(at + 1, further_in.end(), [&](const Walked& frame) { return is_procedure(frame.pc); });
}

}  // namespace

Verdict judge(const Shadow& shadow, std::span<const Walked> walk, Addr interrupted, IsProcedure is_procedure) noexcept {
  const auto calls = shadow.all();
  const auto from_outermost = [&](std::size_t i) { return walk[walk.size() - 1 - i]; };
  if (walk.empty() || from_outermost(0).pc != number(calls[0].pc)) return Verdict::too_short;
  std::size_t found = 0;
  while (found < calls.size() && found < walk.size() && is(from_outermost(found), calls[found])) ++found;
  if (interrupted != 0 && found + 1 >= calls.size() && walk.size() >= calls.size() &&
      is_interrupted(from_outermost(calls.size() - 1), calls.back(), interrupted))
    return Verdict::right;
  if (found < shadow.count_of_certain()) return Verdict::wrong;
  if (interrupted == 0) return Verdict::right;
  return may_be_there(walk.first(walk.size() - found), interrupted, is_procedure) ? Verdict::right : Verdict::wrong;
}

}  // namespace jitunwind::storm
