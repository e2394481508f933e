#include "jitunwind/unwind_core/modules/object_list_internal.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string_view>

#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/modules/local_modules_p.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

AddrRange run_time_range(const LoadedObject& object, const ElfW(Phdr) & header, Addr size) noexcept {
  const Addr begin = object.bias + header.p_vaddr;
  return {begin, begin + size};
}

/// Sets .eh_frame_hdr, and the segment around it.
[[gnu::hot]] void read_eh_frame_parts(const LoadedObject& object, Addr eh_frame_hdr, Module& out) noexcept {
  for (const ElfW(Phdr) & header : object.headers) {
    if (header.p_type != PT_LOAD || !(header.p_flags & PF_R)) continue;
    const AddrRange from_file = run_time_range(object, header, header.p_filesz);
    if (!from_file.contains(eh_frame_hdr)) continue;
    out.eh_segment = bytes_of(from_file);
    out.eh_frame_hdr = bytes_of({eh_frame_hdr, from_file.end});
  }
}

/// `count` program headers in memory, which the object's own code could have overwritten or unmapped; empty when they
/// are not readable.
[[gnu::hot]] std::span<const ElfW(Phdr)> headers_at(Addr at, std::size_t count, MemoryWindow& window) noexcept {
  const std::byte* const bytes = LocalMemory().view(at, count * sizeof(ElfW(Phdr)), window);
  if (!bytes || at % alignof(ElfW(Phdr)) != 0) return {};
  return {reinterpret_cast<const ElfW(Phdr)*>(bytes), count};
}

}  // namespace

[[gnu::hot]] LoadedObject listed_object(const dl_phdr_info& info) noexcept {
  const char* name = info.dlpi_name;
#ifndef __GLIBC__
  // musl calls the main program by its first argument, which may lead from another folder than the present one.
  if (reinterpret_cast<std::uintptr_t>(info.dlpi_phdr) == ::getauxval(AT_PHDR)) name = "";
#endif
  return {info.dlpi_addr, name, {info.dlpi_phdr, info.dlpi_phnum}};
}

[[gnu::hot]] SectionBytes bytes_of(AddrRange range) noexcept {
  return {{pointer_to<const std::byte>(range.begin), static_cast<std::size_t>(range.size())}, range.begin};
}

[[gnu::hot]] const char* path_of(const char* name) noexcept { return name && *name ? name : "/proc/self/exe"; }

[[gnu::hot]] std::span<const ElfW(Phdr)> headers_of(AddrRange map, MemoryWindow& window) noexcept {
  const Addr main_headers = ::getauxval(AT_PHDR);
  if (map.contains(main_headers)) return headers_at(main_headers, ::getauxval(AT_PHNUM), window);
  ElfW(Ehdr) header;
  if (!read_object(LocalMemory(), window, map.begin, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(ElfW(Phdr)))
    return {};
  return headers_at(map.begin + header.e_phoff, header.e_phnum, window);
}

[[gnu::hot]] bool read_module(const LoadedObject& object, Addr at, Module& out) noexcept {
  out = {};
  out.load_bias = object.bias;
  out.path = path_of(object.name);
  Addr eh_frame_hdr = 0;
  out.range = {~Addr{0}, 0};
  for (const ElfW(Phdr) & header : object.headers) {
    if (header.p_type == PT_GNU_EH_FRAME) eh_frame_hdr = object.bias + header.p_vaddr;
    if (header.p_type != PT_LOAD || header.p_memsz == 0) continue;
    const AddrRange loaded = run_time_range(object, header, header.p_memsz);
    out.range = {std::min(out.range.begin, page_of(loaded.begin)), std::max(out.range.end, loaded.end)};
    if (header.p_flags & PF_X && loaded.contains(at)) out.text = loaded;
    if (header.p_flags & PF_W && header.p_flags & PF_R) out.data = {loaded.begin, loaded.begin + header.p_filesz};
  }
  if (!out.range.contains(at)) return false;
  if (eh_frame_hdr != 0) read_eh_frame_parts(object, eh_frame_hdr, out);
  return true;
}

[[gnu::hot]] std::span<const std::byte> build_id_of(const LoadedObject& object, Addr begin,
                                                    MemoryWindow& window) noexcept {
  constexpr bool k_big_endian = std::endian::native == std::endian::big;
  for (const ElfW(Phdr) & header : object.headers) {
    const Addr at = object.bias + header.p_vaddr;
    if (header.p_type != PT_NOTE || at < begin || header.p_filesz > k_page_size ||
        at + header.p_filesz > begin + k_page_size)
      continue;
    const std::byte* const notes = LocalMemory().view(at, header.p_filesz, window);
    if (!notes) continue;
    const auto id = find_note({notes, header.p_filesz}, k_big_endian, header.p_align, ELF_NOTE_GNU, NT_GNU_BUILD_ID);
    if (!id.empty()) return id;
  }
  return {};
}

[[gnu::hot]] void keep_build_id(std::span<const std::byte> id, Module& module) noexcept {
  if (id.size() > module.build_id.size()) return;
  std::ranges::copy(id, module.build_id.begin());
  module.build_id_size = static_cast<std::uint8_t>(id.size());
}

namespace {

// The program and the objects that it needs by DT_NEEDED, directly and by way of others. They were loaded before it
// started and are never unloaded, whatever dlclose() is called with (dlopen(3): reference counts of what was loaded at
// start-up never fall to zero). Objects that were preloaded or opened later are not among them.

/// A loaded object as dl_iterate_phdr() tells of it.
struct Object {
  std::optional<Module> module{};  ///< none: no code
  std::string_view name{};         ///< by which others need it
  const ElfW(Dyn) * dynamic = nullptr;
  const char* strings = nullptr;
  bool lasts = false;

  bool covers(Addr at) const noexcept { return module && module->range.contains(at); }
};

/// A lasting object, and the range of its module beside those of others, which are searched.
struct Lasting {
  AddrRange range{};
  Object* object = nullptr;
};

/// The objects that are there when the library is loaded. Those beyond `most` are looked up like others, as are all if
/// there is no memory.
class Collection {
 public:
  explicit Collection(std::size_t most) noexcept : memory_(most * (sizeof(Lasting) + sizeof(Object))) {
    if (memory_.empty()) return;
    lasting_ = reinterpret_cast<Lasting*>(memory_.bytes().data());
    objects_ = reinterpret_cast<Object*>(lasting_ + most);
    most_ = most;
  }

  [[gnu::hot]] void add(const dl_phdr_info& info) noexcept {
    if (count_ == most_) return;
    Object& object = *new (&objects_[count_++]) Object;
    Addr text = 0;
    for (const ElfW(Phdr) & header : std::span(info.dlpi_phdr, info.dlpi_phnum)) {
      const Addr begin = info.dlpi_addr + header.p_vaddr;
      if (header.p_type == PT_DYNAMIC) object.dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
      if (header.p_type == PT_LOAD && (header.p_flags & PF_X) && text == 0) text = begin;
    }
    const LoadedObject loaded = listed_object(info);
    Module module;
    if (text != 0 && read_module(loaded, text, module)) {
      keep_build_id(build_id_of(loaded, module.range.begin, window_), module);
      object.module = module;
    }
    read_names(object, info);
  }

  /// The lasting objects, in the order of addresses. They are never unmapped.
  [[gnu::hot]] std::span<const Lasting> lasting() noexcept {
    const std::span<Object> all(objects_, count_);
    // The list of another namespace (dlmopen) begins with what may be closed.
    if (all.empty() || !all[0].covers(::getauxval(AT_ENTRY))) return {};
    mark(all[0]);
    const Addr kernels = ::getauxval(AT_SYSINFO_EHDR);
    std::size_t found = 0;
    for (Object& object : all)
      if (object.module && (k_unloads_nothing || object.lasts || object.covers(kernels)))
        lasting_[found++] = {object.module->range, &object};
    const std::span<Lasting> sorted(lasting_, found);
    std::ranges::sort(sorted, {}, [](const Lasting& l) { return l.range.begin; });
    if (found != 0) (void)memory_.release();
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
    const std::span<Object> all(objects_, count_);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Object& o) { return o.name == name; });
    return found == all.end() ? nullptr : &*found;
  }

  [[gnu::hot]] void mark(Object& first) noexcept {
    std::size_t waiting = 0;
    const auto take = [&](Object& object) {
      if (object.lasts) return;
      object.lasts = true;
      lasting_[waiting++].object = &object;
    };
    take(first);
    while (waiting != 0) {
      const Object& object = *lasting_[--waiting].object;
      each_entry(object, DT_NEEDED, [&](Addr offset) {
        if (Object* const needed = by_name(object.strings + offset)) take(*needed);
      });
    }
  }

  Block memory_;
  MemoryWindow window_;
  Lasting* lasting_ = nullptr;  // also those of which the needed ones are to be marked
  Object* objects_ = nullptr;
  std::size_t most_ = 0;
  std::size_t count_ = 0;
};

constinit const Lasting* lasting = nullptr;
constinit std::atomic<std::size_t> lasting_count{0};

/// The version of a module that stays where it is.
std::uint64_t version_of(AddrRange range) noexcept { return hash_with(spread(range.begin), range.end) | 1; }

[[gnu::hot]] int count_one(dl_phdr_info*, std::size_t, void* count) noexcept {
  return ++*static_cast<std::size_t*>(count), 0;
}

[[gnu::hot]] int add_one(dl_phdr_info* info, std::size_t, void* collection) noexcept {
  static_cast<Collection*>(collection)->add(*info);
  return 0;
}

[[gnu::constructor]] void collect() {
  std::size_t loaded = 0;
  ::dl_iterate_phdr(&count_one, &loaded);
  Collection collection(loaded);
  ::dl_iterate_phdr(&add_one, &collection);
  const std::span<const Lasting> found = collection.lasting();
  for (const Lasting& l : found) {
    l.object->module->version = version_of(l.range);
    l.object->module->is_lasting = true;
  }
  lasting = found.data();
  lasting_count.store(found.size(), std::memory_order_release);
  renew_linked_objects();
}

/// The one that the thread has met last: neighbours on a stack are mostly in one module.
constinit thread_local const Module* met = nullptr;

[[gnu::noinline]] const Module* search_lasting(Addr at) noexcept {
  std::size_t left = lasting_count.load(std::memory_order_acquire);
  if (left == 0) return nullptr;
  const Lasting* first = lasting;
  // The last one that does not begin behind `at`, if there is one; without a jump to mispredict.
  while (left > 1) {
    const std::size_t half = left / 2;
    first = first[half].range.begin <= at ? first + half : first;
    left -= half;
  }
  return first->range.contains(at) ? met = &*first->object->module : nullptr;
}

}  // namespace

[[gnu::hot]] const Module* find_lasting_module(Addr at) noexcept {
  const Module* const known = met;
  return known && known->text.contains(at) ? known : search_lasting(at);
}

}  // namespace jitunwind
