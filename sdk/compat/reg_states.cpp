// The rows of a procedure as bytes that may be kept.
#include <algorithm>
#include <cstring>
#include <span>

#include "jitunwind/sdk/compat/callback_space_p.h"
#include "jitunwind/sdk/compat/target_p.h"
#include "jitunwind/unwind_core/emit/row_state.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {
namespace {

constexpr unsigned k_most_states = 1u << 20;  // in one procedure; no code has more

/// The row at an address of a procedure, and its range.
Result<AddrRange> row_from(Addr at, AddrRange procedure, const Cursor& cursor, FrameRow& out) noexcept {
  MemoryWindow window;
  window.argument = cursor.argument();
  Lookup lookup(cursor.space(), CodeAddress::interrupted(at), window);
  const Found found = cursor.space().find_row(lookup, out);
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::no_info, at, "no unwind information for this pc"};
  // Rows of aliases are valid only at the looked up address.
  const Addr end = out.range.contains(at) ? std::min(out.range.end, procedure.end) : at + cursor.space().arch.unit;
  return AddrRange{at, end};
}

/// The state from an address of a procedure on, and its range.
Result<AddrRange> state_from(Addr at, AddrRange procedure, const Cursor& cursor, RowState& out) noexcept {
  FrameRow row;
  const auto code = row_from(at, procedure, cursor, row);
  if (!code) return code;
  if (const Status written = write_row_state(row, *code, cursor.space().arch, out); !written) return written.error();
  return code;
}

Result<bool> step_by_state(Cursor& cursor, const void* data) noexcept {
  // The head has the length of the bytes; the program that kept them must not have changed it.
  std::uint32_t size = 0;
  std::memcpy(&size, static_cast<const std::byte*>(data) + sizeof(std::uint32_t), sizeof size);
  const std::size_t whole = RowState::k_head_size + std::min<std::size_t>(size, RowState::k_most);
  FrameRow row;
  const std::span bytes(static_cast<const std::byte*>(data), whole);
  if (const Status read = read_row_state(bytes, cursor.space().arch, row); !read) return read.error();
  return cursor.step_by(row);
}

}  // namespace
}  // namespace JITUNWIND_COMPAT
}  // namespace jitunwind

extern "C" {

int unw_reg_states_iterate(unw_cursor_t* cursor, unw_reg_states_callback callback, void* token) {
  if (!jitunwind::is_made(cursor)) return -UNW_EINVAL;
  jitunwind::Cursor& at = jitunwind::cursor_of(cursor);
  const auto procedure = at.procedure();
  if (!procedure) return jitunwind::negated(procedure.error());
  unsigned states = 0;
  for (jitunwind::Addr begin = procedure->range.begin; begin < procedure->range.end;) {
    if (++states > jitunwind::k_most_states) return -UNW_EBADFRAME;
    jitunwind::RowState state;
    const auto code =
        jitunwind::with_room(&at, [&] { return jitunwind::state_from(begin, procedure->range, at, state); });
    if (!code) return jitunwind::negated(code.error());
    const std::size_t size = state.whole_size();
    if (const int returned = callback(token, &state, size, code->begin, code->end); returned != 0) return returned;
    begin = code->end;
  }
  return UNW_ESUCCESS;
}

int unw_apply_reg_state(unw_cursor_t* cursor, void* data) {
  if (!jitunwind::is_made(cursor)) return -UNW_EINVAL;
  jitunwind::Cursor& at = jitunwind::cursor_of(cursor);
  const auto moved = jitunwind::with_room(&at, [&] { return jitunwind::step_by_state(at, data); });
  return moved ? int{UNW_ESUCCESS} : jitunwind::negated(moved.error());
}

JITUNWIND_LOCAL(reg_states_iterate)
JITUNWIND_LOCAL(apply_reg_state)
}
