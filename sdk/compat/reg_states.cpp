// The rows of a procedure as bytes that may be kept: call frame information with one row, which any address may hold.
#include <array>
#include <cstring>

#include "jitunwind/sdk/compat/callback_space_p.h"
#include "jitunwind/sdk/compat/cursor_p.h"
#include "jitunwind/sdk/compat/local_names_p.h"
#include "jitunwind/unwind_core/emit/eh_frame.h"
#include "jitunwind/unwind_core/memory/small_stack_p.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
inline namespace JITUNWIND_COMPAT {
namespace {

struct StateHead {
  std::uint32_t magic = k_magic;
  std::uint32_t size = 0;  ///< of the bytes behind it
  static constexpr std::uint32_t k_magic = 0x6a775253;
};

constexpr unsigned k_most_states = 1u << 20;  // of a procedure; what has more is no code

constexpr std::size_t k_max_state = 1024;  // 40 rules of at most 12 bytes, and 256 bytes of expressions

struct State {
  StateHead head;
  std::array<std::byte, k_max_state> bytes;
};

/// Error of the row, or of what cannot be said in call frame information.
Status write_state(const FrameRow& row, AddrRange code, const Arch& arch, State& out) noexcept {
  EhFrameWriter writer(arch, out.bytes);
  CieParameters parameters;
  parameters.signal_frame = row.signal_frame;
  parameters.return_address = row.ra;
  parameters.data_alignment = -1;
  writer.begin_cie(parameters);
  writer.begin_fde(code, 0);
  if (const Status written = writer.row(0, row); !written) return written.error();
  writer.end_fde();
  if (!writer.fits()) return Error{ErrorCode::row_too_wide, code.begin, "state of registers"};
  out.head.size = static_cast<std::uint32_t>(writer.size());
  return Done{};
}

Status read_state(const void* data, const Arch& arch, FrameRow& out) noexcept {
  StateHead head;
  std::memcpy(&head, data, sizeof head);
  if (head.magic != StateHead::k_magic || head.size > k_max_state)
    return Error{ErrorCode::unsupported_version, 0, "state of registers"};
  const SectionBytes section{{static_cast<const std::byte*>(data) + sizeof head, head.size}, 0};
  const CfiContext context{arch};
  SectionView view(section);
  FdeScan entries(view, context, {0, head.size});
  Fde fde;
  const Result<bool> found = entries.next(fde);
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::bad_structure, 0, "state of registers"};
  return row_at(fde, context, fde.range.begin, out);
}

/// What holds at an address of a procedure: the row, and how far it reaches.
Result<AddrRange> row_from(Addr at, AddrRange procedure, const Cursor& cursor, FrameRow& out) noexcept {
  MemoryWindow window;
  window.argument = cursor.argument();
  Lookup lookup(cursor.space(), CodeAddress::interrupted(at), window);
  const Found found = cursor.space().find_row(lookup, out);
  if (!found) return found.error();
  if (!*found) return Error{ErrorCode::no_info, at, "no unwind information for this pc"};
  // Rows of aliases hold where they were asked for.
  const Addr end = out.range.contains(at) ? std::min(out.range.end, procedure.end) : at + cursor.space().arch.unit;
  return AddrRange{at, end};
}

/// What holds from an address of a procedure on.
Result<AddrRange> state_from(Addr at, AddrRange procedure, const Cursor& cursor, State& out) noexcept {
  FrameRow row;
  const auto code = row_from(at, procedure, cursor, row);
  if (!code) return code;
  if (const Status written = write_state(row, *code, cursor.space().arch, out); !written) return written.error();
  return code;
}

Result<bool> step_by_state(Cursor& cursor, const void* data) noexcept {
  FrameRow row;
  if (const Status read = read_state(data, cursor.space().arch, row); !read) return read.error();
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
    jitunwind::State state;
    const auto code =
        jitunwind::with_room(&at, [&] { return jitunwind::state_from(begin, procedure->range, at, state); });
    if (!code) return jitunwind::negated(code.error());
    const std::size_t size = sizeof state.head + state.head.size;
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
