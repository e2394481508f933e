#include "jitunwind/adapters/listen/names/heard_names_p.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/builders/shapes/procedure_of_fde_internal.h"
#include "jitunwind/dyn_info/own_fde_internal.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/dialects/itt_event.h"
#include "jitunwind/sdk/dialects/source_lines.h"
#include "jitunwind/unwind_core/heap_internal.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/local_modules.h"

namespace jitunwind {

namespace {

constexpr std::uint64_t k_largest_code = std::uint64_t{1} << 30;
constexpr std::size_t k_most_names = std::size_t{1} << 20;

/// A registered procedure; its name follows in memory.
struct Named {
  unw_dyn_info_t info;
  SourceLines* lines;  // from make_on_heap(); null: none
  const char* name() const noexcept { return reinterpret_cast<const char*>(this + 1); }
};

/// Names by the start of the code. Entries do not overlap, except that a joined name is as long as its FDE.
using Names = std::map<Addr, Named*>;

alignas(Names) std::byte names_memory[sizeof(Names)];
constinit Names* names_made = nullptr;
constinit std::atomic<bool> any{false};  // there has been a name
constinit Addr name_looked_at = 0;       // the start of the name that was checked last
constinit std::uint32_t names_since_look = 0;

/// Never destroyed, since engines announce names until the end.
Names& names() {
  if (names_made == nullptr) names_made = new (names_memory) Names();
  any.store(true, std::memory_order_seq_cst);
  return *names_made;
}

void note(ErrorCode code, Addr at, const char* what) noexcept { note_unheard({code, at, what}); }

Named* make(const unw_dyn_info_t& info, std::string_view name) noexcept {
  name = name.substr(0, k_longest_told_name);
  auto* const made = static_cast<Named*>(allocate(sizeof(Named) + name.size() + 1));
  if (made == nullptr) return nullptr;
  made->info = info;
  made->lines = nullptr;
  auto* const text = reinterpret_cast<char*>(made + 1);
  std::memcpy(text, name.data(), name.size());
  text[name.size()] = '\0';
  made->info.u.rti.name_ptr = reinterpret_cast<std::uintptr_t>(made->name());
  return made;
}

void forget(Named* named) noexcept {
  const Status cancelled = cancel_procedure(&named->info);
  if (!cancelled && cancelled.error().code == ErrorCode::in_signal_handler) return note_unheard(cancelled.error());
  count_heard(Heard::names, -1);
  destroy_on_heap(named->lines);
  give_back(named);
}

/// Registers the new name before the replaced one is cancelled, so that the code is never unknown. Lines of the same
/// code stay.
void put(const unw_dyn_info_t& info, std::string_view name) {
  Named*& place = names()[info.start_ip];
  Named* const made = make(info, name);
  const Status registered = made != nullptr
                                ? register_procedure(&made->info)
                                : Status(Error{ErrorCode::out_of_memory, info.start_ip, "no memory for a name"});
  if (!registered) {
    note_unheard(registered.error());
    give_back(made);
    if (place == nullptr) names().erase(info.start_ip);
    return;
  }
  count_heard(Heard::names);
  Named* const old = std::exchange(place, made);
  if (old == nullptr) return;
  if (old->info.end_ip == info.end_ip) made->lines = std::exchange(old->lines, nullptr);
  forget(old);
}

/// Finds the announced procedure at `at`, if it is call frame information without a name.
bool find_told(Addr at, unw_dyn_info_t& out) noexcept {
  const ProcedureHold hold(at);
  if (!hold.info()) return false;
  out = *hold.info();
  return was_told(out) && out.start_ip == at;
}

/// Gaps between a module's parts do not count. If the parts are 64 KiB apart, as on AArch64, the kernel leaves the gaps
/// of the loader and the program unmapped. It then gives that place to other mappings.
bool is_code_of_a_module(Addr at) noexcept {
  Module module;
  return local_modules().find(at, module) && module.text.contains(at);
}

/// The name of the same code; null: there is none.
const Named* find_named(const AddrRange& code) {
  const auto known = names().find(code.begin);
  return known == names().end() || known->second->info.end_ip != code.end ? nullptr : known->second;
}

/// Whether somebody registered the code who did not announce it: perf's map tells what the program has registered, too,
/// if it attached perf.
bool is_registered_by_others(Addr at) {
  if (names().contains(at)) return false;
  const ProcedureHold hold(at);
  return hold.info() && !was_told(*hold.info()) && !names().contains(hold.info()->start_ip);
}

/// Forgets all names that begin in the code, and the one before it that reaches into it. The name that starts at `but`
/// stays.
void forget_overlapped(const AddrRange& code, Addr but) {
  Names& all = names();
  auto at = all.lower_bound(code.begin);
  if (at != all.begin() && std::prev(at)->second->info.end_ip > code.begin) --at;
  while (at != all.end() && at->first < code.end) {
    if (at->first == but) {
      ++at;
      continue;
    }
    forget(at->second);
    at = all.erase(at);
  }
}

/// Names that are checked together lie within this distance.
constexpr Addr k_near = Addr{1} << 20;

/// Checks the next names, at most `most`, as far as they are near each other. Returns their number.
std::size_t look_at_next(std::size_t most) {
  Names& all = names();
  if (all.empty() || most == 0) return 0;
  auto first = all.upper_bound(name_looked_at);
  if (first == all.end()) first = all.begin();
  auto end = first;
  std::size_t count = 0;
  for (; end != all.end() && count < most && end->first - first->first < k_near; ++end) ++count;
  name_looked_at = std::prev(end)->first;
  if (are_mapped(first->first, name_looked_at)) return count;
  while (first != end) {
    if (!is_mapped(first->first)) {
      forget(first->second);
      first = all.erase(first);
    } else {
      ++first;
    }
  }
  return count;
}

}  // namespace

void name_code(const AddrRange& code, std::string_view name) noexcept { describe_code(code, name, 0); }

void describe_code(const AddrRange& code, std::string_view name, Addr fde) noexcept {
  keep_names_whole_in_forks();
  if (code.end <= code.begin || code.end - code.begin > k_largest_code)
    return note(ErrorCode::e_range, code.begin, "name for no code, or for more than a procedure can be");
  if (is_code_of_a_module(code.begin)) return note(ErrorCode::e_range, code.begin, "name for code of a module");
  try {
    const std::lock_guard lock(names_lock);
    if (++names_since_look % k_calls_to_a_look == 0) look_at_next(1);
    if (names().size() >= k_most_names) return note(ErrorCode::out_of_memory, code.begin, "too many names");
    if (is_registered_by_others(code.begin)) return;
    // A description that is known stays what it is, which says whether its memory must be probed.
    const Named* const known = fde == 0 ? find_named(code) : nullptr;
    if (known != nullptr && name.substr(0, k_longest_told_name) == known->name()) return;
    unw_dyn_info_t info;
    if (find_told(code.begin, info)) {
      if (name.empty()) return;
    } else {
      info = known != nullptr ? known->info : procedure_without_personality(code, fde);
    }
    forget_overlapped(code_of(info), info.start_ip);
    put(info, name);
  } catch (const std::bad_alloc&) {
    note(ErrorCode::out_of_memory, code.begin, "no memory for a name");
  }
}

void add_lines(Addr begin, SourceLines&& lines) noexcept {
  if (lines.empty()) return;
  const std::lock_guard lock(names_lock);
  const auto known = names().find(begin);
  if (known == names().end()) return;
  destroy_on_heap(std::exchange(known->second->lines, make_on_heap<SourceLines>(std::move(lines))));
}

bool receive_heard_line(Addr at, void (*receive)(void*, const ToldLine&) noexcept, void* into) noexcept {
  if (!any.load(std::memory_order_seq_cst)) return false;
  const std::lock_guard lock(names_lock);
  const auto behind = names().upper_bound(at);
  if (behind == names().begin()) return false;
  const Named& named = *std::prev(behind)->second;
  if (named.lines == nullptr || at >= named.info.end_ip) return false;
  const auto line = named.lines->told_at(at - named.info.start_ip);
  if (line) receive(into, *line);
  return line.has_value();
}

void move_name(Addr from, const AddrRange& to) noexcept {
  try {
    std::string name;
    SourceLines lines;
    {
      const std::lock_guard lock(names_lock);
      const auto known = names().find(from);
      if (known == names().end()) return;
      name = known->second->name();
      if (known->second->lines != nullptr) lines = std::move(*known->second->lines);
      forget(known->second);
      names().erase(known);
    }
    name_code(to, name);
    add_lines(to.begin, std::move(lines));
  } catch (const std::bad_alloc&) {
    note(ErrorCode::out_of_memory, from, "no memory for a name");
  }
}

void forget_names(const AddrRange& code) noexcept {
  if (!any.load(std::memory_order_seq_cst)) return;
  const std::lock_guard lock(names_lock);
  Names& all = names();
  for (auto at = all.lower_bound(code.begin); at != all.end() && at->first < code.end; at = all.erase(at))
    forget(at->second);
}

void forget_description(Addr start, Addr fde) noexcept {
  if (!any.load(std::memory_order_seq_cst)) return;
  const std::lock_guard lock(names_lock);
  const auto known = names().find(start);
  if (known == names().end() || known->second->info.u.rti.segbase != fde) return;
  forget(known->second);
  names().erase(known);
}

void forget_unmapped_names(std::size_t most) noexcept {
  if (!any.load(std::memory_order_seq_cst)) return;
  const std::lock_guard lock(names_lock);
  for (std::size_t left = std::min(most, names().size()); left != 0;) {
    const std::size_t looked_at = look_at_next(left);
    if (looked_at == 0) return;
    left -= looked_at;
  }
}

/// The map may be half changed, so it is abandoned. Registered procedures stay registered.
void forget_names_in_child() noexcept {
  names_made = nullptr;
  any.store(false, std::memory_order_relaxed);
}

void join_names(std::span<unw_dyn_info_t* const> told) noexcept {
  if (!any.load(std::memory_order_seq_cst)) return;
  try {
    const std::lock_guard lock(names_lock);
    for (const unw_dyn_info_t* info : told) {
      const auto at = names().find(info->start_ip);
      if (at != names().end()) put(*info, at->second->name());
    }
  } catch (const std::bad_alloc&) {
    note(ErrorCode::out_of_memory, 0, "no memory for a name");
  }
}

void part_from_names(std::span<unw_dyn_info_t* const> cancelled) noexcept {
  if (!any.load(std::memory_order_seq_cst)) return;
  const std::lock_guard lock(names_lock);
  for (const unw_dyn_info_t* info : cancelled) {
    const auto at = names().find(info->start_ip);
    if (at == names().end() || at->second->info.u.rti.segbase != info->u.rti.segbase) continue;
    forget(at->second);
    names().erase(at);
  }
}

namespace {

// Methods of Intel's interface for JITs, by the numbers that engines give them.

constinit const LocalMemory k_own_memory;

/// Engines announce the end of a method by its number. Guarded by names_lock; never destroyed, since engines call until
/// the end.
constinit std::map<std::uint32_t, AddrRange>* methods = nullptr;

void note_loaded(std::uint32_t method, const AddrRange& code) {
  keep_names_whole_in_forks();
  const std::lock_guard lock(names_lock);
  if (methods == nullptr) methods = new std::map<std::uint32_t, AddrRange>();
  methods->insert_or_assign(method, code);
}

/// Empty: the method was not loaded.
AddrRange take_unloaded(std::uint32_t method) noexcept {
  const std::lock_guard lock(names_lock);
  if (methods == nullptr) return {};
  const auto gone = methods->extract(method);
  return gone ? gone.mapped() : AddrRange{};
}

}  // namespace

void forget_itt_methods_in_child() noexcept { methods = nullptr; }

void hear_itt_event(std::int32_t event, const void* data) noexcept {
  try {
    auto read = read_itt_event(event, reinterpret_cast<std::uintptr_t>(data), k_own_memory);
    if (!read || read->kind == IttEvent::Kind::other) return;
    if (read->kind == IttEvent::Kind::unloaded) return say_gone(Dialect::itt, take_unloaded(read->method));
    note_loaded(read->method, read->code);
    say_name(Dialect::itt, read->code, read->name);
    if (listens_to(Dialect::itt)) add_lines(read->code.begin, std::move(read->lines));
  } catch (const std::bad_alloc&) {
    note_unheard({ErrorCode::out_of_memory, 0, "no memory for an event of ITT"});
  }
}

}  // namespace jitunwind
