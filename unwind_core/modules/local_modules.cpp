// Modules of this process. The dynamic linker says which one covers an address; its program headers in memory say where
// its parts are.
#include "jitunwind/unwind_core/modules/local_modules.h"

#include <limits.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "jitunwind/unwind_core/environment.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/image/elf_internal.h"
#include "jitunwind/unwind_core/memory/copied.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/modules/local_modules_p.h"
#include "jitunwind/unwind_core/modules/module_memo_p.h"
#include "jitunwind/unwind_core/modules/object_list_internal.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/row_source.h"
#include "jitunwind/unwind_core/trace/counters.h"

// A weak reference lets the library load where the C library is older than the headers.
#ifdef JITUNWIND_HAS_DL_FIND_OBJECT
#pragma weak _dl_find_object
#endif

namespace jitunwind {
namespace {

struct Search {
  Addr at;
  Module* out;
};

int ask_one(dl_phdr_info* info, std::size_t, void* argument) noexcept {
  const Search& search = *static_cast<const Search*>(argument);
  return read_module(listed_object(*info), search.at, *search.out) ? 1 : 0;
}

struct PathSearch {
  Addr at;
  std::span<char> into;
  ProcedureName* out;
};

int ask_one_for_path(dl_phdr_info* info, std::size_t, void* argument) noexcept {
  const PathSearch& search = *static_cast<const PathSearch*>(argument);
  Module module;
  if (!read_module(listed_object(*info), search.at, module)) return 0;
  write_name(module.path, search.into, *search.out);
  return 1;
}

#if defined(JITUNWIND_HAS_DL_FIND_OBJECT) || defined(JITUNWIND_KEEPS_OBJECT_LIST)
constinit ModuleMemo memo;

constinit bool memo_keeps = true;

[[gnu::constructor]] void prepare_memo() {
  memo_keeps = !is_to_keep_nothing();
  if (memo_keeps) memo.make_ready();
}

LoadedObjectKey key_of(const dl_find_object& found) noexcept {
  return {address_of(found.dlfo_map_start), address_of(found.dlfo_map_end),        address_of(found.dlfo_link_map),
          found.dlfo_link_map->l_addr,      address_of(found.dlfo_link_map->l_ld), address_of(found.dlfo_eh_frame)};
}

/// A copy of the link map, which the linker may have freed. Only its public beginning is copied.
std::optional<link_map> copied_link_map(const dl_find_object& found) noexcept {
  link_map copy;
  const auto at = reinterpret_cast<std::uintptr_t>(found.dlfo_link_map);
  const auto bytes = std::as_writable_bytes(std::span(&copy, 1));
  return copy_memory(at, bytes) == bytes.size() ? std::optional(copy) : std::nullopt;
}

/// An object that is gone, but still known, is not found: the linker forgets objects after it has unmapped them (glibc,
/// elf/dl-close.c). The linker's state is asked for first. If it was consistent then, no object that is known and gone
/// lies where there was code by then. The address and the beginning of its range must be mapped. Gaps between segments
/// may not be, as in the loader on AArch64, which the kernel maps, and whose segments lie 64 KiB apart.
bool find_object(Addr at, dl_find_object& out) noexcept {
  const bool may_be_gone = !is_linker_consistent();
  if (_dl_find_object(pointer_to(at), &out) != 0) return false;
  if (!may_be_gone) return true;
  const auto begin = reinterpret_cast<std::uintptr_t>(out.dlfo_map_start);
  std::array<std::byte, SELFMAG> magic;
  return is_mapped(at) && copy_memory(begin, magic) == magic.size() && std::memcmp(magic.data(), ELFMAG, SELFMAG) == 0;
}

/// False: there are parts that cannot be kept.
[[gnu::hot]] bool parts_of(const Module& module, const LoadedObjectKey& key, AddrRange identity,
                           KeptParts& out) noexcept {
  const AddrRange segment{module.eh_segment.address, module.eh_segment.address + module.eh_segment.bytes.size()};
  const auto put = [&](AddrRange range, KeptParts::Part& part) {
    if (range.empty()) return true;
    const Addr begin = range.begin - key.map_begin, end = range.end - key.map_begin;
    part = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
    return begin == part.begin && end == part.end;
  };
  const bool is_where_linker_says = module.eh_frame_hdr.empty() || module.eh_frame_hdr.address == key.eh_frame_hdr;
  return put(module.range, out.whole) && put(module.text, out.text) && put(segment, out.eh_segment) &&
         put(identity, out.identity) && is_where_linker_says;
}

/// The module, without its path.
[[gnu::hot]] Module module_of(const LoadedObjectKey& key, const KeptParts& parts) noexcept {
  Module module;
  module.range = parts.whole.from(key.map_begin);
  module.load_bias = key.load_bias;
  module.text = parts.text.from(key.map_begin);
  if (parts.eh_segment.empty()) return module;
  const AddrRange segment = parts.eh_segment.from(key.map_begin);
  module.eh_segment = bytes_of(segment);
  module.eh_frame_hdr = bytes_of({key.eh_frame_hdr, segment.end});
  return module;
}

/// Looks at the object itself, and keeps the parts that it finds. The module is complete but for what depends on the
/// address in question.
[[gnu::hot]] bool look_at(const dl_find_object& found, const LoadedObjectKey& key, Addr at, Module& module,
                          AddrRange& identity) noexcept {
  count_event(Counter::module_read);
  MemoryWindow window;
  const AddrRange map{key.map_begin, key.map_end};
  const LoadedObject object{key.load_bias, found.dlfo_link_map->l_name, headers_of(map, window)};
  if (object.headers.empty() || !read_module(object, at, module)) return false;
  const auto id = build_id_of(object, map.begin, window);
  const Addr id_at = reinterpret_cast<std::uintptr_t>(id.data());
  identity = id.size() < sizeof(std::uint64_t) ? AddrRange{} : AddrRange{id_at, id_at + id.size()};
  KeptParts parts;
  if (memo_keeps && parts_of(module, key, identity, parts)) memo.keep(key, parts);
  return true;
}

/// Type and name of the note whose contents a build id is (gABI, "Note Section"): NT_GNU_BUILD_ID of "GNU".
constexpr std::uint64_t k_build_id_note = std::uint64_t{0x00554e47} << 32 | NT_GNU_BUILD_ID;

/// 0: the object has other contents where one that was laid out alike had its build id. All of the id counts. An id
/// that is not a hash of the contents may share any part with those of other objects.
[[gnu::hot]] std::uint64_t content_version(const LoadedObjectKey& key, AddrRange identity) noexcept {
  constexpr std::size_t k_part = sizeof(std::uint64_t);
  if (identity.empty()) return 0;
  const auto* const id = pointer_to<const std::byte>(identity.begin);
  if (raw_eight_bytes(id - sizeof k_build_id_note) != k_build_id_note) return 0;
  const auto size = static_cast<std::size_t>(identity.size());
  std::uint64_t version = raw_eight_bytes(id + size - k_part);
  for (std::size_t at = 0; at + k_part < size; at += k_part) version = hash_with(version, raw_eight_bytes(id + at));
  for (const Addr part : {key.map_begin, key.map_end, key.link_map, key.load_bias, key.dynamic, key.eh_frame_hdr})
    version = hash_with(version, part);
  return version == 0 ? 1 : version;
}

[[gnu::hot]] bool find_by_dl_find_object(Addr at, Module& out) noexcept {
  dl_find_object found;
  if (!find_object(at, found)) return false;
  const LoadedObjectKey key = key_of(found);
  KeptParts parts;
  AddrRange identity;
  // One text segment is kept of each module; most have no other.
  if (memo.find(key, parts) && parts.text.from(key.map_begin).contains(at)) {
    count_warm_event(Counter::module_known);
    out = module_of(key, parts);
    identity = parts.identity.from(key.map_begin);
  } else if (!look_at(found, key, at, out, identity)) {
    return find_module_by(&::dl_iterate_phdr, at, out);
  }
  out.version = content_version(key, identity);
  out.path = path_of(found.dlfo_link_map->l_name);
  return true;
}

/// Finds a module by a copy of its first page. If the linker has no object there any more, its lock is not asked for
/// either.
bool find_copied(Addr at, Module& out) noexcept {
  dl_find_object found;
  if (!find_object(at, found)) return false;
  if (copy_module(reinterpret_cast<std::uintptr_t>(found.dlfo_map_start), at, out)) return true;
  return find_object(at, found) && find_module_by(&::dl_iterate_phdr, at, out);
}

/// Gives `use` the string at `at` piece by piece. False: it cannot be read, or has no end that a path could have.
template <class Use>
bool read_string(Addr at, Use use) noexcept {
  std::array<char, 256> piece;
  for (std::size_t length = 0; length < PATH_MAX;) {
    const Addr next = at + length;
    const std::size_t on_page = std::min<std::size_t>(piece.size(), k_page_size - next % k_page_size);
    const auto room = std::span(piece).first(on_page);
    if (copy_memory(next, std::as_writable_bytes(room)) != room.size()) return false;
    const auto end = std::ranges::find(room, '\0');
    const std::string_view text(room.data(), static_cast<std::size_t>(end - room.begin()));
    use(text);
    length += text.size();
    if (end != room.end()) return true;
  }
  return false;
}

/// A path in memory that the linker may free and use again at any moment, by its length and a hash besides what fits.
struct CopiedPath {
  std::span<char> into;
  std::size_t length = 0;
  std::uint64_t hash = 0;

  bool copy(const link_map& map) noexcept {
    length = 0;
    hash = 0;
    return read_string(reinterpret_cast<std::uintptr_t>(map.l_name), [&](std::string_view text) {
      for (const char c : text) {
        hash = hash_with(hash, static_cast<unsigned char>(c));
        if (length + 1 < into.size()) into[length] = c;
        ++length;
      }
      if (!into.empty()) into[std::min(length, into.size() - 1)] = '\0';
    });
  }
};

/// Copies a path that is the same when it is read twice, and the linker names the object each time.
std::size_t copy_path_by_dl_find_object(Addr at, std::span<char> into) noexcept {
  constexpr int k_most_tries = 8;
  dl_find_object found, again;
  for (int time = 0; time < k_most_tries && find_object(at, found); ++time) {
    CopiedPath path{into}, path_again{into};
    const auto map = copied_link_map(found);
    if (!map || !path.copy(*map) || !find_object(at, again) || again.dlfo_link_map != found.dlfo_link_map) continue;
    const auto map_again = copied_link_map(again);
    const bool is_same = map_again && path_again.copy(*map_again) && path_again.hash == path.hash &&
                         path_again.length == path.length && map_again->l_addr == map->l_addr &&
                         map_again->l_ld == map->l_ld;
    if (!is_same) continue;
    if (path.length != 0) return path.length;
    ProcedureName program;
    write_name(path_of(""), into, program);
    return program.length;
  }
  return 0;
}

bool version_by_dl_find_object(Addr at, ModuleVersion& out) noexcept {
  dl_find_object found;
  if (!find_object(at, found)) return false;
  const LoadedObjectKey key = key_of(found);
  KeptParts parts;
  AddrRange identity;
  if (Module module; memo.find(key, parts)) {
    count_warm_event(Counter::module_known);
    identity = parts.identity.from(key.map_begin);
  } else if (!look_at(found, key, at, module, identity)) {
    identity = {};
  }
  out.range = {key.map_begin, key.map_end};
  out.version = content_version(key, identity);
  out.is_lasting = false;
  return true;
}
#else
bool find_by_dl_find_object(Addr at, Module& out) noexcept { return find_module_by(&::dl_iterate_phdr, at, out); }
bool find_copied(Addr at, Module& out) noexcept { return find_module_by(&::dl_iterate_phdr, at, out); }
std::size_t copy_path_by_dl_find_object(Addr, std::span<char>) noexcept { return 0; }
bool version_by_dl_find_object(Addr, ModuleVersion& out) noexcept {
  out = {};
  return true;
}
#endif

}  // namespace

bool find_module(Addr at, Module& out) noexcept {
  return has_dl_find_object() ? find_by_dl_find_object(at, out) : find_module_by(&::dl_iterate_phdr, at, out);
}

bool find_module_by(PhdrIteration iterate, Addr at, Module& out) noexcept {
  Search search{at, &out};
  return iterate(&ask_one, &search) == 1;
}

bool find_copied_module(Addr at, Module& out) noexcept {
  return has_dl_find_object() ? find_copied(at, out) : find_module_by(&::dl_iterate_phdr, at, out);
}

std::size_t copy_path_by(PhdrIteration iterate, Addr at, std::span<char> into) noexcept {
  ProcedureName path;
  PathSearch search{at, into, &path};
  return iterate(&ask_one_for_path, &search) == 1 ? path.length : 0;
}

std::size_t copy_module_path(Addr at, std::span<char> into) noexcept {
  return has_dl_find_object() ? copy_path_by_dl_find_object(at, into) : copy_path_by(&::dl_iterate_phdr, at, into);
}

bool find_module_version(Addr at, ModuleVersion& out) noexcept {
  if (const Module* const module = find_lasting_module(at)) {
    out = version_of(*module);
    return true;
  }
  if (has_dl_find_object()) return version_by_dl_find_object(at, out);
  out = {};
  return true;
}

bool has_dl_find_object() noexcept {
#if defined(JITUNWIND_KEEPS_OBJECT_LIST)
  return true;
#elif defined(JITUNWIND_HAS_DL_FIND_OBJECT)
  return &::_dl_find_object != nullptr;
#else
  return false;
#endif
}

}  // namespace jitunwind
