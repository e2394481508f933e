// The program and the objects that it needs by DT_NEEDED, directly and by way of others. They were loaded before it
// started and are never unloaded, whatever dlclose() is called with (dlopen(3): reference counts of what was loaded at
// start-up never fall to zero). Objects that were preloaded or opened later are not among them.

#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/modules/loaded_object_internal.h"
#include "jitunwind/unwind_core/modules/local_modules_p.h"

namespace jitunwind {
namespace {

/// A loaded object as dl_iterate_phdr() tells of it.
struct Object {
  std::optional<Module> module{};  ///< none: no code
  std::string_view name{};         ///< by which others need it
  const ElfW(Dyn) * dynamic = nullptr;
  const char* strings = nullptr;
  bool lasts = false;

  bool covers(Addr at) const noexcept { return module && module->range.contains(at); }
};

/// Objects beyond these are looked up like others.
constexpr std::size_t k_most = 512;

class Collection {
 public:
  void begin() noexcept { count_ = 0; }
  void add(const dl_phdr_info& info) noexcept {
    if (count_ == k_most) return;
    Object& object = objects_[count_++];
    Addr text = 0;
    for (const ElfW(Phdr) & header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
      const Addr begin = info.dlpi_addr + header.p_vaddr;
      if (header.p_type == PT_DYNAMIC) object.dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
      if (header.p_type == PT_LOAD && (header.p_flags & PF_X) && text == 0) text = begin;
    }
    const LoadedObject loaded = listed_object(info);
    Module module;
    if (text != 0 && read_module(loaded, text, module)) {
      MemoryWindow window;
      keep_build_id(build_id_of(loaded, module.range.begin, window), module);
      object.module = module;
    }
    read_names(object, info);
  }

  /// The lasting objects, in the order of addresses.
  std::span<const Object* const> lasting() noexcept {
    const std::span<Object> all(objects_.data(), count_);
    // The list of another namespace (dlmopen) begins with what may be closed.
    if (all.empty() || !all[0].covers(::getauxval(AT_ENTRY))) return {};
    mark(all[0]);
    const Addr kernels = ::getauxval(AT_SYSINFO_EHDR);
    std::size_t found = 0;
    for (Object& object : all)
      if (object.module && (k_unloads_nothing || object.lasts || object.covers(kernels))) pointers_[found++] = &object;
    const std::span<Object*> sorted(pointers_.data(), found);
    std::ranges::sort(sorted, {}, [](const Object* o) { return o->module->range.begin; });
    return sorted;
  }

 private:
  template <class Visit>
  static void each_entry(const Object& object, ElfW(Sxword) tag, Visit visit) noexcept {
    for (const ElfW(Dyn)* entry = object.dynamic; entry && entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == tag) visit(entry->d_un.d_val);
  }

  static void read_names(Object& object, const dl_phdr_info& info) noexcept {
    // glibc has made it a run-time address, but where the section cannot be written (the kernel's object).
    each_entry(object, DT_STRTAB, [&](Addr at) {
      object.strings = reinterpret_cast<const char*>(at < info.dlpi_addr ? at + info.dlpi_addr : at);
    });
    if (!object.strings) object.dynamic = nullptr;
    object.name = info.dlpi_name ? info.dlpi_name : "";
    object.name.remove_prefix(object.name.rfind('/') + 1);
    each_entry(object, DT_SONAME, [&](Addr offset) { object.name = object.strings + offset; });
  }

  /// The first of a name is the one that the dynamic linker takes for all who need it.
  Object* by_name(std::string_view name) noexcept {
    const std::span<Object> all(objects_.data(), count_);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Object& o) { return o.name == name; });
    return found == all.end() ? nullptr : &*found;
  }

  void mark(Object& first) noexcept {
    std::size_t waiting = 0;
    const auto take = [&](Object& object) {
      if (object.lasts) return;
      object.lasts = true;
      pointers_[waiting++] = &object;
    };
    take(first);
    while (waiting != 0) {
      const Object& object = *pointers_[--waiting];
      each_entry(object, DT_NEEDED, [&](Addr offset) {
        if (Object* const needed = by_name(object.strings + offset)) take(*needed);
      });
    }
  }

  std::size_t count_ = 0;
  std::array<Object, k_most> objects_{};
  std::array<Object*, k_most> pointers_{};
};

// All zeros to begin with, so that what is not used is never touched.
[[gnu::section(".bss.large")]] constinit Collection collection;

/// Members that each start of a program writes stand together.
struct LastingModules {
  std::atomic<std::size_t> count{0};
  std::array<AddrRange, k_most> ranges{};
  std::array<std::optional<Module>, k_most> modules{};
};
[[gnu::section(".bss.large")]] constinit LastingModules lasting;

/// The version of a module that stays where it is.
std::uint64_t version_of(AddrRange range) noexcept { return hash_with(spread(range.begin), range.end) | 1; }

[[gnu::hot]] int add_one(dl_phdr_info* info, std::size_t, void*) noexcept {
  collection.add(*info);
  return 0;
}

[[gnu::constructor]] void collect() {
  // Written first: a page that is read first is mapped twice.
  collection.begin();
  ::dl_iterate_phdr(&add_one, nullptr);
  std::size_t count = 0;
  for (const Object* const object : collection.lasting()) {
    lasting.ranges[count] = object->module->range;
    lasting.modules[count] = object->module;
    lasting.modules[count]->version = version_of(object->module->range);
    lasting.modules[count++]->is_lasting = true;
  }
  lasting.count.store(count, std::memory_order_release);
  renew_linked_objects();
}

/// The one that the thread has met last: neighbours on a stack are mostly in one module.
constinit thread_local const Module* met = nullptr;

[[gnu::noinline]] const Module* search_lasting(Addr at) noexcept {
  const AddrRange* first = lasting.ranges.data();
  std::size_t left = lasting.count.load(std::memory_order_acquire);
  if (left == 0) return nullptr;
  // The last one that does not begin behind `at`, if there is one; without a jump to mispredict.
  while (left > 1) {
    const std::size_t half = left / 2;
    first = first[half].begin <= at ? first + half : first;
    left -= half;
  }
  if (!first->contains(at)) return nullptr;
  return met = &*lasting.modules[static_cast<std::size_t>(first - lasting.ranges.data())];
}

}  // namespace

[[gnu::hot]] const Module* find_lasting_module(Addr at) noexcept {
  const Module* const known = met;
  return known && known->text.contains(at) ? known : search_lasting(at);
}

}  // namespace jitunwind
