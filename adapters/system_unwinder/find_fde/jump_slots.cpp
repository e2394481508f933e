#include "jitunwind/adapters/system_unwinder/find_fde/jump_slots_p.h"

#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <span>

#include "jitunwind/adapters/system_unwinder/find_fde/next_definition_p.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
extern "C" [[gnu::weak]] jitunwind::FindEnclosingFunction _Unwind_FindEnclosingFunction;

namespace jitunwind {
namespace {

std::uintptr_t value_of(FindFde* function) noexcept { return reinterpret_cast<std::uintptr_t>(function); }

/// Whether dlclose() may unload this code.
bool may_be_unloaded() noexcept {
  const Addr own = own_dynamic_section();
  if (own == 0 || find_lasting_module(own) != nullptr) return false;
  return !DynamicObject(local_space().memory, local_space().arch, 0, own).stays_loaded();
}

enum class Written : std::uint8_t { done, changed, refused };

struct Exchange {
  std::uintptr_t* word;
  std::uintptr_t from;
  std::uintptr_t to;
  Written result = Written::refused;

  void write() noexcept {
    const bool same = __atomic_compare_exchange_n(word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    result = same ? Written::done : Written::changed;
  }
  /// The linker may have placed the slot in memory that becomes read-only after relocation (-z relro, -z now). The page
  /// is made writable for these few instructions, as it was while the object was loaded.
  void write_to_page() noexcept {
    const Addr at = address_of(word);
    if (is_writable(at)) return write();
    const std::size_t size = ::getauxval(AT_PAGESZ);
    void* const page = pointer_to(at & -Addr{size});
    if (::mprotect(page, size, PROT_READ | PROT_WRITE) != 0) return;
    write();
    ::mprotect(page, size, PROT_READ);
  }
};

/// One thread at a time: otherwise a thread could make the page read-only before the store of another one.
Written exchange(std::uintptr_t* word, std::uintptr_t from, std::uintptr_t to) noexcept {
  Exchange exchange{word, from, to};
  with_object_list([](void* of) { static_cast<Exchange*>(of)->write_to_page(); }, &exchange);
  return exchange.result;
}

/// Whether one object contains both addresses.
bool are_in_one_object(Addr a, Addr b) noexcept {
  Module module;
  return local_modules().find(a, module) && module.range.contains(b);
}

}  // namespace

/// One function for all entries: there are many of the latter.
[[gnu::noinline]] const void* JumpSlots::find(void* pc, EhBases* bases, const void* caller, Entry& entry) noexcept {
  return entry.next.find_or_ours(pc, bases, caller);
}

template <std::size_t k_index>
const void* JumpSlots::function(void* pc, EhBases* bases) noexcept {
  return find(pc, bases, __builtin_return_address(0), entries_[k_index]);
}

/// The linker relocates pointers to functions at the start of each program. They are constants, because the page of
/// constants is written to anyway; the entries would have a page of their own.
template <std::size_t... k_indices>
struct JumpSlots::Functions<std::index_sequence<k_indices...>> {
  static constexpr FindFde* k_all[]{&JumpSlots::function<k_indices>...};
};

constinit std::array<JumpSlots::Entry, JumpSlots::k_most_entries> JumpSlots::entries_;
constinit JumpSlots jump_slots;

[[gnu::hot]] std::size_t JumpSlots::entries_used() const noexcept {
  return std::min<std::size_t>(entries_used_.load(std::memory_order_acquire), k_most_entries);
}

bool JumpSlots::is_ours(std::uintptr_t value) const noexcept {
  return std::any_of(entries_.begin(), entries_.begin() + entries_used(), [&](const Entry& entry) {
    return value != 0 && value_of(entry.lead.load(std::memory_order_acquire)) == value;
  });
}

JumpSlots::Entry* JumpSlots::entry_for(std::uintptr_t* word, FindFde* next) noexcept {
  const auto end = entries_.begin() + entries_used();
  const auto same = std::find_if(entries_.begin(), end, [&](const Entry& entry) {
    return entry.lead.load(std::memory_order_acquire) != nullptr &&
           entry.word.load(std::memory_order_relaxed) == word && entry.next.get() == next;
  });
  if (same != end) return &*same;
  if (entries_used() == k_most_entries) return nullptr;
  const unsigned index = entries_used_.fetch_add(1, std::memory_order_acq_rel);
  if (index >= k_most_entries) return nullptr;
  Entry& entry = entries_[index];
  entry.word.store(word, std::memory_order_relaxed);
  FindFde* const function = Functions<std::make_index_sequence<k_most_entries>>::k_all[index];
  entry.next.be(function);
  entry.next.set(next);
  FindFde* const lead = may_be_unloaded() ? make_forwarder(function) : function;
  entry.lead.store(lead, std::memory_order_release);
  return lead != nullptr ? &entry : nullptr;
}

void JumpSlots::leave(std::uintptr_t* word, std::uintptr_t value) noexcept {
  for (Slot& slot : slots_) {
    std::uintptr_t* other = nullptr;
    if (slot.word.compare_exchange_strong(other, word) || other == word)
      return slot.left.store(value, std::memory_order_relaxed);
  }
}

constexpr const char* k_no_slot = "it has no jump slot";
constexpr const char* k_not_used = "it does not call through its jump slot";
constexpr const char* k_refused = "its jump slot cannot be written";
constexpr const char* k_no_entry = "jump slots were taken too often, or there is no executable memory";

/// Runs with the list of objects locked, so that the copy stays loaded. The copy is not probed, because the first call
/// of its functions may bind them and take another lock. If the copy binds the slot at the same time, the next look()
/// handles it.
const char* JumpSlots::take_in_passing(const UnwinderCopy& copy, bool& again) noexcept {
  if (copy.slot == nullptr) return k_no_slot;
  const std::uintptr_t stands = load(copy.slot);
  if (is_ours(stands) || stands == value_of(next_find_fde().own())) return nullptr;
  const SlotState state = state_of_slot(copy, stands);
  again = again || state != SlotState::bound;
  if (state == SlotState::unrelocated) return "it is being loaded";
  FindFde* const next = state == SlotState::bound ? reinterpret_cast<FindFde*>(stands) : copy.definition;
  const Entry* const entry = entry_for(copy.slot, next);
  if (entry == nullptr) return k_no_entry;
  Exchange exchange{copy.slot, stands, value_of(entry->lead.load(std::memory_order_relaxed))};
  exchange.write_to_page();
  again = again || exchange.result == Written::changed;
  return exchange.result == Written::refused ? k_refused : nullptr;
}

const char* JumpSlots::take(const UnwinderCopy& copy, std::uintptr_t& left) noexcept {
  constexpr int k_attempts = 8;  // each fails because another thread has written to the slot
  for (int i = 0; i < k_attempts; ++i) {
    left = load(copy.slot);
    if (is_ours(left)) return question_arrives(copy.ask) ? nullptr : k_not_used;
    FindFde* const next = left != 0 ? reinterpret_cast<FindFde*>(left) : copy.definition;
    keep_loaded(next, copy);
    const Entry* const entry = entry_for(copy.slot, next);
    if (entry == nullptr) return k_no_entry;
    const std::uintptr_t ours = value_of(entry->lead.load(std::memory_order_relaxed));
    const Written written = exchange(copy.slot, left, ours);
    if (written == Written::refused) return k_refused;
    if (written == Written::changed) continue;
    if (question_arrives(copy.ask)) return left = ours, nullptr;
    if (exchange(copy.slot, ours, left) == Written::done) return k_not_used;
  }
  return "others write to its jump slot";
}

/// The probe binds the slot, unless it is never bound (LD_BIND_NOT, auditors): its code then looks the definition up
/// each time, and does not write to the slot.
const char* JumpSlots::reach(const UnwinderCopy& copy, std::uintptr_t& left) noexcept {
  if (question_arrives(copy.ask)) return nullptr;
  return copy.slot != nullptr ? take(copy, left) : k_no_slot;
}

class JumpSlots::Visitor final : public ObjectVisitor {
 public:
  explicit Visitor(JumpSlots& slots) noexcept : slots_(slots) {}

  void visit(const ListedObject& object) noexcept override {
    const auto copy = read_unwinder_copy(object);
    if (!copy) return;
    if (!copy->stays)
      note(*copy, slots_.take_in_passing(*copy, seen.again));
    else if (found_ < staying_.size())
      staying_[found_++] = *copy;
  }
  std::span<const UnwinderCopy> staying() const noexcept { return std::span(staying_).first(found_); }

  void note(const UnwinderCopy& copy, const char* why_not) noexcept {
    if (why_not != nullptr)
      ++seen.unreached, seen.why = why_not;
    else if (copy.slot != nullptr && slots_.is_ours(load(copy.slot)))
      ++seen.taken;
  }

  Seen seen{};

 private:
  JumpSlots& slots_;
  std::array<UnwinderCopy, k_most_slots> staying_{};
  std::size_t found_ = 0;
};

void JumpSlots::look() noexcept {
  const ErrnoKeeper keep_errno;
  Visitor visitor(*this);
  visit_objects(visitor);
  for (const UnwinderCopy& copy : visitor.staying()) {
    std::uintptr_t left = copy.slot != nullptr ? load(copy.slot) : 0;
    visitor.note(copy, reach(copy, left));
    if (copy.slot != nullptr) leave(copy.slot, left);
  }
  taken_.store(visitor.seen.taken, std::memory_order_relaxed);
  unreached_.store(visitor.seen.unreached, std::memory_order_relaxed);
  why_.store(visitor.seen.why, std::memory_order_relaxed);
  again_.store(visitor.seen.again, std::memory_order_relaxed);
}

JumpSlots::Seen JumpSlots::seen() const noexcept {
  return {taken_.load(std::memory_order_relaxed), unreached_.load(std::memory_order_relaxed),
          why_.load(std::memory_order_relaxed), again_.load(std::memory_order_relaxed)};
}

[[gnu::hot]] void JumpSlots::give_back() noexcept {
  for (Entry& entry : std::span(entries_).first(entries_used())) {
    FindFde* const lead = entry.lead.load(std::memory_order_acquire);
    if (lead == nullptr || lead == entry.next.own()) continue;
    FindFde* const next = entry.next.get();
    (void)exchange(entry.word.load(std::memory_order_relaxed), value_of(lead), value_of(next));
    redirect(lead, next);
  }
}

namespace {

/// Runs last, when the object's own code does not throw any more. It is also right if the code stays loaded.
[[gnu::destructor(101)]] void give_back_at_unload() { jump_slots.give_back(); }

}  // namespace

std::optional<UnwinderCopy> read_unwinder_copy(const ListedObject& listed) noexcept {
  DynamicObject object(local_space().memory, local_space().arch, listed.bias, listed.dynamic);
  const auto find = object.find_function("_Unwind_Find_FDE");
  if (!find) return std::nullopt;
  const auto ask = object.find_function("_Unwind_FindEnclosingFunction");
  // A static libgcc hides its functions. The one that is linked to this library calls this library's definition, or
  // calls through a slot as well.
  const bool is_own = listed.dynamic == own_dynamic_section();
  if (!ask && !is_own) return std::nullopt;
  UnwinderCopy copy;
  copy.definition = reinterpret_cast<FindFde*>(find->address);
  copy.ask = ask ? reinterpret_cast<FindEnclosingFunction*>(ask->address) : &_Unwind_FindEnclosingFunction;
  copy.bias = listed.bias;
  // Libraries that this one is bound to are not unloaded before it.
  copy.stays = copy.ask == &_Unwind_FindEnclosingFunction || find_lasting_module(listed.dynamic) != nullptr;
  MemoryWindow window;
  const Addr slot = object.find_slot(*find);
  if (slot != 0 && local_space().memory.view(slot, sizeof(std::uintptr_t), window) != nullptr)
    copy.slot = static_cast<std::uintptr_t*>(pointer_to(slot));
  if (!ask && copy.slot == nullptr) return std::nullopt;
  return copy;
}

/// An unbound slot leads to its origin, the procedure linkage table; before relocation it holds the address in the
/// file.
SlotState state_of_slot(const UnwinderCopy& copy, std::uintptr_t value) noexcept {
  const Addr slot = address_of(copy.slot);
  if (value == 0) return SlotState::unrelocated;
  if (value == reinterpret_cast<std::uintptr_t>(copy.definition)) return SlotState::bound;
  if (are_in_one_object(value, slot)) return SlotState::unbound;
  return are_in_one_object(value + copy.bias, slot) ? SlotState::unrelocated : SlotState::bound;
}

void keep_loaded(FindFde* code, const UnwinderCopy& copy) noexcept {
  const Addr at = reinterpret_cast<std::uintptr_t>(code);
  Module module;
  if (!local_modules().find(at, module) || module.range.contains(address_of(copy.slot)) ||
      find_lasting_module(at) != nullptr)
    return;
  (void)open_loaded_at(pointer_to(at));
}

}  // namespace jitunwind
