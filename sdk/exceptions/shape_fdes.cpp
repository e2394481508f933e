// One FDE for all procedures of a shape. The unwinder gets the function's begin beside the FDE, and reads neither begin
// nor size of the code in the FDE (libgcc: uw_frame_state_for() takes dwarf_eh_bases::func). So such an FDE is right
// for any code. It covers the code in front of a region that is counted from the end.
#include <cstdint>
#include <limits>

#include "jitunwind/dyn_info/code_shape_internal.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"

namespace jitunwind {

const DerivedRecord* find_shape_fde(const ProcedureHold& hold) noexcept {
  const unw_dyn_info_t& info = *hold.info();
  if (info.u.pi.handler != 0 || info.gp != 0) return nullptr;
  CodeShape* const shape = find_shape(hold);
  if (shape == nullptr) return nullptr;
  const DerivedRecord* known = shape->fde.load(std::memory_order_acquire);
  // A larger distance between two rows would be written as DW_CFA_set_loc, which has an address of its own.
  if (known != nullptr || shape->front >= std::numeric_limits<std::uint32_t>::max() || !has_room_for_shared())
    return known;
  // The last unit need not exist: it only gives the last row before the tail a place.
  const Addr end = (shape->front + 1) * shape->unit;
  unw_dyn_info_t alike{};  // no copy: writers change the list's links meanwhile
  alike.end_ip = end + shape->tail * shape->unit;
  alike.format = info.format;
  alike.u.pi = info.u.pi;
  DerivedRecord* const made = with_room([&] { return encode_shape(alike, end); });
  if (made == nullptr) return nullptr;
  if (shape->fde.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return count_shared(*made), made;
  give_back_derived(made);
  return known;
}

}  // namespace jitunwind
