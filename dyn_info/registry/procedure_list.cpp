#include "jitunwind/dyn_info/registry/registry_state_p.h"

#include "jitunwind/dyn_info/list_changes_p.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

// Layout 1 is libunwind's, with words and pointers both of 8 bytes or both of 4. Layout 2 has words of 8 bytes and
// pointers of 4: a 32-bit program uses it, since its descriptors may be of code of any CPU. The layout is also the
// version of the head, so that readers which do not know it report that. Linkers have no relocation of 8 bytes for
// 32-bit programs. A distance is 4 bytes and zeros there, which is right because data lie behind notes.
#define JITUNWIND_TEXT_OF(x) #x
#define JITUNWIND_TEXT(x) JITUNWIND_TEXT_OF(x)
#if UINTPTR_MAX == UINT64_MAX
#define JITUNWIND_LAYOUT 1
#define JITUNWIND_DISTANCE_TO(symbol) ".quad " #symbol " - ."
#else
#define JITUNWIND_LAYOUT 2
#define JITUNWIND_DISTANCE_TO(symbol) ".long " #symbol " - ., 0"
#endif

// The head has two names. The note refers to the hidden one, which needs no relocation and which no other library's
// symbol can preempt. Readers find the head by the exported one where there is no note.
extern "C" {
__attribute__((visibility("hidden"))) constinit unw_dyn_info_list_t jitunwind_dyn_info_list = {JITUNWIND_LAYOUT, 0,
                                                                                               nullptr};
extern __attribute__((visibility("default"), alias("jitunwind_dyn_info_list"))) unw_dyn_info_list_t _U_dyn_info_list;
__attribute__((visibility("hidden"), used,
               section(".bss.large"))) constinit jitunwind::ListChanges jitunwind_dyn_changes{};
}

// The ELF notes have the name "UNWDYN" (docs/registry.md "Finding the list"). Type 1 holds the layout of the
// descriptors, the size of a word, and the address of the head relative to the field that holds it. Type 2 holds the
// number of changes that are kept, the size of a word, and the address of the changes relative to the field that holds
// it.
asm(".set .Ljitunwind_layout, " JITUNWIND_TEXT(JITUNWIND_LAYOUT) R"(
  .pushsection .note.unwdyn, "a", %note
  .balign 4
  .long 7
  .long 16
  .long 1
  .asciz "UNWDYN"
  .balign 4
  .long .Ljitunwind_layout
  .long 8
  )" JITUNWIND_DISTANCE_TO(jitunwind_dyn_info_list) R"(
  .balign 4
  .long 7
  .long 16
  .long 2
  .asciz "UNWDYN"
  .balign 4
  .long 256
  .long 8
  )" JITUNWIND_DISTANCE_TO(jitunwind_dyn_changes) R"(
  .popsection
)");

namespace jitunwind {
namespace {

static_assert(sizeof(unw_dyn_info_t) == (JITUNWIND_LAYOUT == 1 ? 80 : 72) && sizeof(unw_word_t) == 8 &&
                  ListChanges::k_kept == 256,
              "what the notes say");

std::atomic_ref<unw_dyn_info_t*> atomic_next(unw_dyn_info_t* info) noexcept {
  return std::atomic_ref<unw_dyn_info_t*>(info->next);
}

std::atomic_ref<unw_dyn_info_t*> atomic_first() noexcept {
  return std::atomic_ref<unw_dyn_info_t*>(jitunwind_dyn_info_list.first);
}

/// The node must still have its descriptor and its code.
void note_change(const ProcedureNode& node, bool is_registered) noexcept {
  const auto descriptor = reinterpret_cast<std::uintptr_t>(node.info.load(std::memory_order_relaxed));
  jitunwind_dyn_changes.note(descriptor, is_registered,
                             {node.start.load(std::memory_order_relaxed), node.end.load(std::memory_order_relaxed)});
}

constexpr int k_longest_run = 1 << 20;  // longest run of dead nodes, retired by other suspended threads, to step over

std::atomic_ref<std::uint32_t> atomic_generation() noexcept {
  return std::atomic_ref<std::uint32_t>(jitunwind_dyn_info_list.generation);
}

/// The store is ordered: no part of the change that it begins or ends becomes visible on its other side.
[[gnu::always_inline]] inline void count_generation() noexcept {
  atomic_generation().store(atomic_generation().load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

/// Begins the first change of a list. A library that is loaded anew may have its list where an earlier one was. Nothing
/// in the process tells of that, and a reader may have seen both. So the generation and the count of changes start from
/// the clock, which is ahead of both: a change takes more than a nanosecond, and loading a library again takes more
/// than 256. The earlier list counted less, by more than the changes that are kept. Generations have 32 bits: the clock
/// yields a new odd one every two microseconds, and the same one after 73 minutes. A list whose generation wraps to 0
/// seems to be loaded anew. The counters start from 0 if there is no clock. Signal-safe.
[[gnu::cold, gnu::noinline]] void begin_list() noexcept {
  const auto nanoseconds = static_cast<std::uint64_t>(nanoseconds_of(CLOCK_MONOTONIC));
  atomic_generation().store(static_cast<std::uint32_t>(nanoseconds >> 10) | 1, std::memory_order_release);
  jitunwind_dyn_changes.count.store(nanoseconds, std::memory_order_release);
}

}  // namespace

unw_dyn_info_list_t& procedure_list_head() noexcept { return jitunwind_dyn_info_list; }

// Every store of a change is a release store as well, so none of them is visible before the odd generation.
void ProcedureList::begin_change() noexcept {
  if (atomic_generation().load(std::memory_order_relaxed) == 0) [[unlikely]]
    return begin_list();
  count_generation();
}
void ProcedureList::end_change() noexcept { count_generation(); }

void ProcedureList::prefetch_neighbours(unw_dyn_info_t* info) noexcept {
  __builtin_prefetch(NodePool::probably_newer(info), 1);
  __builtin_prefetch(atomic_next(info).load(std::memory_order_relaxed), 1);
}

void ProcedureList::push_front(NodeId id, ProcedureNode& node) noexcept {
  unw_dyn_info_t* info = node.info.load(std::memory_order_relaxed);
  atomic_next(info).store(nullptr, std::memory_order_release);  // `next` may hold anything
  being_pushed_.store(id, std::memory_order_release);
  atomic_next(info).store(atomic_first().load(std::memory_order_relaxed), std::memory_order_release);
  node.list_next.store(first_, std::memory_order_relaxed);
  node.list_previous.store(0, std::memory_order_relaxed);
  if (first_ != 0) {
    ProcedureNode& older = nodes_[first_];
    older.list_previous.store(id, std::memory_order_relaxed);
    NodePool::note_newer(older.info.load(std::memory_order_relaxed), info);
  }
  atomic_first().store(info, std::memory_order_release);
  note_change(node, true);
  first_ = id;
  being_pushed_.store(0, std::memory_order_release);
}

void ProcedureList::unlink(const ProcedureNode& node) noexcept {
  note_change(node, false);
  const NodeId next = node.list_next.load(std::memory_order_relaxed);
  const NodeId previous = node.list_previous.load(std::memory_order_relaxed);
  ProcedureNode* const older = next == 0 ? nullptr : &nodes_[next];
  unw_dyn_info_t* const older_info = older == nullptr ? nullptr : older->info.load(std::memory_order_relaxed);
  unw_dyn_info_t* newer_info = nullptr;
  if (previous == 0) {
    atomic_first().store(older_info, std::memory_order_release);
    first_ = next;
  } else {
    ProcedureNode& newer = nodes_[previous];
    newer_info = newer.info.load(std::memory_order_relaxed);
    atomic_next(newer_info).store(older_info, std::memory_order_release);
    newer.list_next.store(next, std::memory_order_relaxed);
  }
  if (older == nullptr) return;
  older->list_previous.store(previous, std::memory_order_relaxed);
  NodePool::note_newer(older_info, newer_info);
}

bool ProcedureList::is_live(NodeId id) const noexcept {
  return NodeState(nodes_[id].state.load(std::memory_order_acquire)).live();
}

/// Makes `place` lead to the next descriptor whose node is live.
void ProcedureList::skip_dead(unw_dyn_info_t*& place) const noexcept {
  constexpr int k_most = 1000;  // other threads bend the same link
  for (int i = 0; i < k_most; ++i) {
    std::atomic_ref<unw_dyn_info_t*> link(place);
    unw_dyn_info_t* old = link.load(std::memory_order_acquire);
    unw_dyn_info_t* info = old;
    while (info != nullptr && !nodes_.find(info).state.live()) info = atomic_next(info).load(std::memory_order_acquire);
    if (info == old || link.compare_exchange_strong(old, info, std::memory_order_acq_rel)) return;
  }
}

void ProcedureList::skip_dead_behind(NodeId id) const noexcept {
  unw_dyn_info_t* info = nodes_[id].info.load(std::memory_order_acquire);
  if (info != nullptr) skip_dead(info->next);
}

// The holder of the lock may be anywhere in push_front() or unlink(). Each of these makes one store to the image, so
// that the order among nodes is at most one procedure off. So besides the nodes before those of the batch, two more
// places may lead to one of the batch: the head, and the node that is being pushed.
void ProcedureList::bend_around(NodeId batch) const noexcept {
  skip_dead(jitunwind_dyn_info_list.first);
  if (const NodeId id = being_pushed_.load(std::memory_order_acquire); id != 0) skip_dead_behind(id);
  for (NodeId id = batch; id != 0; id = nodes_[id].batch_next) {
    NodeId before = nodes_[id].list_previous.load(std::memory_order_acquire);
    const auto same_batch = [&] {
      return nodes_[before].batch.load(std::memory_order_relaxed) == nodes_[id].batch.load(std::memory_order_relaxed);
    };
    // The walk goes back to where the dead nodes begin. If they begin in this batch, the iteration for that node does
    // the work. If the holder of the lock runs on meanwhile, the walk may go astray, but then the holder does all of
    // the work.
    for (int i = 0; i < k_longest_run && before != 0 && !is_live(before) && !same_batch(); ++i) {
      before = nodes_[before].list_previous.load(std::memory_order_acquire);
    }
    if (before != 0 && is_live(before)) skip_dead_behind(before);
  }
  skip_dead(jitunwind_dyn_info_list.first);
}

}  // namespace jitunwind
