// The objects of C libraries that have no _dl_find_object and never unload an object, as musl, where dlclose() does
// nothing. They are kept in a list, which is read by dl_iterate_phdr(). That waits for threads in dlopen(), as a signal
// handler must not, so that it is called only where no handler is. A lookup finds objects that were loaded since in the
// list that the linker shows debuggers: a chain that grows at its end, and which only a dlopen() that fails makes
// shorter.
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/modules/local_modules_p.h"

#ifdef JITUNWIND_KEEPS_OBJECT_LIST
#include <array>
#include <atomic>
#include <optional>

#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

struct KeptObject {
  AddrRange range{};
  Addr eh_frame_hdr = 0;
  link_map map{};  ///< what does not change of it, a copy

  dl_find_object answer(link_map* linked) const noexcept {
    return {pointer_to(range.begin), pointer_to(range.end), linked, pointer_to(eh_frame_hdr)};
  }
};

/// None: it has no segments.
std::optional<KeptObject> describe_object(const LoadedObject& object) noexcept {
  link_map map{object.bias, const_cast<char*>(object.name), nullptr, nullptr, nullptr};
  Module module;
  bool is_read = false;
  for (const ElfW(Phdr) & header : object.headers) {
    const Addr at = object.bias + header.p_vaddr;
    if (header.p_type == PT_DYNAMIC) map.l_ld = static_cast<ElfW(Dyn)*>(pointer_to(at));
    if (header.p_type == PT_LOAD && !is_read) is_read = read_module(object, at, module);
  }
  return is_read ? std::optional(KeptObject{module.range, module.eh_frame_hdr.address, map}) : std::nullopt;
}

/// It only grows, so that readers need no lock.
struct ObjectList {
  std::atomic<std::size_t> count{0};
  std::array<KeptObject, 256> objects{};     ///< those beyond these are looked up in the chain
  std::atomic<unsigned long long> loads{0};  ///< loads_now() when all of them were read
  std::atomic<bool> is_read{false};          ///< a child that was forked meanwhile never reads it again
  std::atomic<link_map*> last{nullptr};      ///< one of these in the chain; null: a static program

  const KeptObject* find(Addr at) const noexcept {
    for (std::size_t i = count.load(std::memory_order_acquire); i-- != 0;)
      if (objects[i].range.contains(at)) return &objects[i];
    return nullptr;
  }
};
constinit ObjectList kept_objects;

/// A count that grows when dlopen() has loaded something. The linker takes no lock before it tells of the first object.
unsigned long long loads_now() noexcept {
  unsigned long long now = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* argument) {
        *static_cast<unsigned long long*>(argument) = info->dlpi_adds;
        return 1;
      },
      &now);
  return now;
}

int read_kept_object(dl_phdr_info* info, std::size_t, void* of) noexcept {
  bool& is_whole = *static_cast<bool*>(of);
  ObjectList& list = kept_objects;
  const auto object = describe_object(listed_object(*info));
  if (!object) return 0;
  for (const ElfW(Dyn)* entry = object->map.l_ld; !list.last && entry && entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == DT_DEBUG) list.last = reinterpret_cast<const r_debug*>(entry->d_un.d_ptr)->r_map;
  if (list.find(object->range.begin)) return 0;
  const std::size_t used = list.count.load(std::memory_order_relaxed);
  is_whole = used < list.objects.size();
  if (!is_whole) return 1;
  list.objects[used] = *object;
  list.count.store(used + 1, std::memory_order_release);
  return 0;
}

/// Objects that a dlopen() has just taken back may be read, and found: code of theirs is on no stack.
std::optional<dl_find_object> find_in_chain(Addr at) noexcept {
  constexpr unsigned k_most_linked = 1u << 16;
  MemoryWindow window;
  const LocalMemory memory;
  link_map* next = kept_objects.last.load(std::memory_order_relaxed);
  for (unsigned i = 0; next != nullptr && i < k_most_linked; ++i) {
    link_map map;
    if (!read_object(memory, window, address_of(next), map)) return std::nullopt;
    const Addr begin = map.l_addr;  // of a shared library
    if (kept_objects.find(begin)) {
      kept_objects.last.store(next, std::memory_order_relaxed);
    } else {
      const auto object = describe_object({begin, map.l_name, headers_of({begin, begin + k_page_size}, window)});
      if (object && object->range.contains(at)) return object->answer(next);
    }
    next = map.l_next;
  }
  return std::nullopt;
}

}  // namespace

void renew_linked_objects() noexcept {
  ObjectList& list = kept_objects;
  const unsigned long long now = loads_now();
  const bool is_known =
      list.count.load(std::memory_order_relaxed) != 0 && now == list.loads.load(std::memory_order_relaxed);
  if (is_known || list.is_read.exchange(true)) return;
  bool is_whole = true;
  ::dl_iterate_phdr(&read_kept_object, &is_whole);
  if (is_whole) list.loads.store(now, std::memory_order_release);
  list.is_read.store(false);
}

int _dl_find_object(void* at, dl_find_object* out) noexcept {
  const Addr address = address_of(at);
  const unsigned long long known = kept_objects.loads.load(std::memory_order_acquire);
  if (const KeptObject* const kept = kept_objects.find(address)) {
    *out = kept->answer(const_cast<link_map*>(&kept->map));
    return 0;
  }
  const auto found = known == loads_now() ? std::nullopt : find_in_chain(address);
  if (found) *out = *found;
  return found ? 0 : -1;
}

}  // namespace jitunwind
#endif
