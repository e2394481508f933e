#include "jitunwind/unwind_core/walk/address_walk_internal.h"

#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"
#include "jitunwind/unwind_core/trace/log.h"
#include "jitunwind/unwind_core/walk/caller_chain_p.h"
#include "jitunwind/unwind_core/walk/context.h"

namespace jitunwind {
namespace {

[[gnu::cold, gnu::noinline]] void log_chain_left(Addr at) noexcept {
  LogLine(LogTopic::walk).text("no rule leaves ").hex(at).text(": goes on with all registers");
}

class AddressWalk {
 public:
  AddressWalk(const AddressSpace& space, const WalkStart& start, WalkPart part, std::span<void*> into) noexcept
      : start_(start), chain_(space, start, part, into) {}

  std::size_t make() noexcept;

 private:
  using Stop = CallerChain::Stop;

  Stop go_on_by_rows(Stop stop) noexcept;
  void go_on_by_cursor() noexcept;
  /// Goes on from a place that no rule is known of. Needs room on the stack (small_stack_internal.h).
  [[gnu::noinline]] Stop find_new_places(Stop stop) noexcept {
    const Stop ended = stop == Stop::unknown ? go_on_by_rows(stop) : Stop::unknown;
    if (ended == Stop::unknown) go_on_by_cursor();
    return ended;
  }
  /// The last address was never looked up, as those before it were.
  bool ends_well(Stop stop) noexcept { return stop != Stop::full || ends_in_code(); }
  bool ends_in_code() noexcept {
    if (chain_.depth() == 0) return true;
    const Addr at = chain_.position().at;
    const Module* const module = chain_.space().modules.find_lasting(at);
    return (module && module->text.contains(at)) || chain_.find(at).holds || ends_in_other_code();
  }
  [[gnu::noinline]] bool ends_in_other_code() const noexcept {
    return with_room([&] {
      MemoryWindow window;
      AddrRange known;
      return bool(chain_.space().expect_code(CodeAddress::returned_to(chain_.position().at + 1), window, known));
    });
  }
  /// A key of the walk: call_with_room() knows by it a walk from the same place at the same depth.
  const void* place() const noexcept {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(hash_with(start_.sp, start_.address.value())));
  }

  const WalkStart& start_;
  CallerChain chain_;
};

/// Goes on where the chain has stopped, until there is no more room or no caller. Unknown: only all registers lead on,
/// or tell whether the last address is one of code.
CallerChain::Stop AddressWalk::go_on_by_rows(Stop stop) noexcept {
  while (stop == Stop::unknown) {
    stop = step_by_rows(chain_);
    if (stop == Stop::unknown) return stop;
    if (stop == Stop::full && !chain_.is_full()) stop = chain_.run();
  }
  return ends_well(stop) ? stop : Stop::unknown;
}

/// A cursor makes the steps that no rule tells. It has all registers, some of which earlier frames may have saved.
[[gnu::noinline]] void AddressWalk::go_on_by_cursor() noexcept {
  count_event(Counter::chain_left);
  if (logs(LogTopic::walk)) log_chain_left(chain_.position().at);
  Cursor cursor = cursor_at_start(chain_.space(), start_, chain_.stack().range());
  const std::size_t first = cursor.depth();
  for (;;) {
    chain_.stack().share_with(cursor);
    while (cursor.depth() - first < chain_.depth())
      if (const auto moved = cursor.step(); !moved || !*moved) return chain_.cut_to(cursor.depth() - first);
    if (chain_.is_full()) return;
    const Addr sp_before = cursor.sp();
    if (!step_by_cursor(chain_, cursor)) return;
    if (cursor.sp() <= sp_before) break;
    if (go_on_by_rows(chain_.run()) != Stop::unknown) return;
  }
  // A walk that always goes up ends. Only the cursor notices when another one comes round.
  while (!chain_.is_full() && step_by_cursor(chain_, cursor)) {
  }
}

[[gnu::hot]] std::size_t AddressWalk::make() noexcept {
  Stop stop = chain_.run();
  if (stop == Stop::unknown || !ends_well(stop)) [[unlikely]]
    stop = with_room(place(), [&] { return find_new_places(stop); });
  return chain_.found();
}

}  // namespace

[[gnu::noinline]] Cursor cursor_at_start(const AddressSpace& space, const WalkStart& start, AddrRange proven) noexcept {
  if (start.ucontext) {
    const auto from = start.address.is_return_address() ? 0 : reinterpret_cast<std::uintptr_t>(start.ucontext);
    Cursor cursor(space, start.ucontext, start.top(), nullptr, from);
    expect_walk_by(cursor);
    return cursor;
  }
  alignas(16) std::byte context[k_context_size];
  jitunwind_capture_context(context);
  Cursor cursor(space, context, Cursor::Top::returned_to);
  cursor.set_proven(proven);
  while (cursor.sp() != start.sp || cursor.pc() != start.address.value())
    if (const auto moved = cursor.step(); !moved || !*moved) break;
  return cursor;
}

[[gnu::hot]] std::size_t walk_addresses(const AddressSpace& space, const WalkStart& start, WalkPart part,
                                        std::span<void*> into) noexcept {
  if (space.row_cache) [[likely]]
    return AddressWalk(space, start, part, into).make();
  return with_room([&] {
    Cursor cursor = cursor_at_start(space, start, {});
    return list_addresses(cursor, part, into);
  });
}

std::size_t list_addresses(Cursor& cursor, WalkPart part, std::span<void*> into) noexcept {
  std::size_t found = 0;
  const auto arrive = [&] { into[found++] = reinterpret_cast<void*>(static_cast<std::uintptr_t>(cursor.pc())); };
  if (part == WalkPart::whole && !into.empty()) arrive();
  while (found < into.size()) {
    const auto moved = cursor.step();
    if (!moved || !*moved) break;
    arrive();
  }
  return found;
}

}  // namespace jitunwind
