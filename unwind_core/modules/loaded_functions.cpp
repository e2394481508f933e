#include "jitunwind/unwind_core/modules/object_list_internal.h"

#include <link.h>

#include <array>
#include <optional>
#include <span>

#include "jitunwind/unwind_core/arch/arch.h"
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/modules/local_modules_p.h"

namespace jitunwind {
namespace {

constinit const LocalMemory k_memory;
constexpr unsigned k_most_objects = 1u << 16;

/// An object of the linker's list, as <link.h> shows it.
class LinkedObject {
 public:
  /// None: it cannot be read.
  static std::optional<LinkedObject> at(const link_map* at, MemoryWindow& window) noexcept {
    LinkedObject object;
    return at && read_object(k_memory, window, address_of(at), object.map_) ? std::optional(object) : std::nullopt;
  }

  const link_map* next() const noexcept { return map_.l_next; }
  const link_map* before() const noexcept { return map_.l_prev; }
  void* find_function(std::string_view name) const noexcept {
    DynamicObject object(k_memory, *host_arch(), map_.l_addr, address_of(map_.l_ld));
    const auto found = object.find_function(name);
    return found ? pointer_to(found->address) : nullptr;
  }
  bool is_of_file(std::string_view name, MemoryWindow& window) const noexcept {
    std::array<char, 4096> path;
    const std::size_t size = k_memory.read(address_of(map_.l_name), std::as_writable_bytes(std::span(path)), window);
    const std::string_view read(path.data(), size);
    const std::string_view whole = read.substr(0, read.find('\0'));
    return whole.substr(whole.rfind('/') + 1) == name;
  }

 private:
  link_map map_;
};

/// The object whose memory `at` is in; null for the stack and the heap, and where only a locked look would tell.
const link_map* object_at(Addr at) noexcept {
#ifdef JITUNWIND_HAS_DL_FIND_OBJECT
  dl_find_object found;
  if (has_dl_find_object() && ::_dl_find_object(pointer_to(at), &found) == 0) return found.dlfo_link_map;
#endif
  (void)at;
  return nullptr;
}

LoadedFunction loaded(void* function) noexcept {
  if (!function) return {};
  const Addr at = address_of(function);
  return {function, find_lasting_module(at) ? nullptr : object_at(at)};
}

}  // namespace

LoadedFunction find_function_around(Addr at, std::string_view name) noexcept {
  MemoryWindow window;
  const auto entry = LinkedObject::at(object_at(at), window);
  return entry ? loaded(entry->find_function(name)) : LoadedFunction();
}

LoadedFunction find_function_behind(Addr at, std::string_view library, std::string_view name) noexcept {
  MemoryWindow window;
  const link_map* const around = object_at(at);
  const auto self = LinkedObject::at(around ? around : (&_r_debug ? _r_debug.r_map : nullptr), window);
  if (!self) return {};
  void* behind = nullptr;
  // Returns the library's, if it is this way.
  const auto search = [&](const link_map* (LinkedObject::*leads)() const noexcept, bool is_behind) -> void* {
    auto object = LinkedObject::at(((*self).*leads)(), window);
    for (unsigned i = 0; object && i < k_most_objects; ++i, object = LinkedObject::at(((*object).*leads)(), window)) {
      void* const found = object->find_function(name);
      if (found && object->is_of_file(library, window)) return found;
      if (is_behind && !behind) behind = found;
    }
    return nullptr;
  };
  if (void* const later = search(&LinkedObject::next, true)) return loaded(later);
  if (void* const earlier = search(&LinkedObject::before, false)) return loaded(earlier);
  return loaded(behind);
}

bool is_still_loaded(const LoadedFunction& found, std::string_view name) noexcept {
  if (!found.object) return true;
  const link_map* const object = object_at(address_of(found.function));
  MemoryWindow window;
  const auto entry = object == found.object ? LinkedObject::at(object, window) : std::nullopt;
  return entry && entry->find_function(name) == found.function;
}

}  // namespace jitunwind
