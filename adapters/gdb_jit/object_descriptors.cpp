#include "jitunwind/adapters/gdb_jit/object_descriptors_p.h"

#include <elf.h>
#include <limits.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/image/dynamic_object_internal.h"
#include "jitunwind/unwind_core/modules/loaded_object_internal.h"
#include "jitunwind/unwind_core/page_internal.h"

namespace jitunwind {
namespace {

constexpr std::string_view k_descriptor = "__jit_debug_descriptor";
constexpr std::string_view k_breakpoint = "__jit_debug_register_code";

/// The library's own reads are used: ThreadSanitizer does not see the lock with which the dynamic linker frees the
/// path.
void copy_path(const char* name, std::span<char> into) noexcept {
  MemoryWindow window;
  const Addr at{std::bit_cast<std::uintptr_t>(name)};
  const std::size_t size = local_space().memory.read(at, std::as_writable_bytes(into), window);
  if (std::string_view(into.data(), size).find('\0') == std::string_view::npos) into[0] = '\0';
}

/// 0: there is none.
Addr find_symbol(const ElfSymbols& symbols, std::string_view name, unsigned type, std::uint64_t least_size) noexcept {
  for (std::size_t i = 0; i < symbols.count(); ++i) {
    const ElfSymbol symbol = symbols[i];
    if (symbol.type != type || symbol.size < least_size || symbol.section == SHN_UNDEF) continue;
    const std::string_view begins = symbols.beginning(symbol, name.size() + 1);
    if (begins.size() > name.size() && begins.back() == '\0' && begins.substr(0, name.size()) == name)
      return symbol.value;
  }
  return 0;
}

}  // namespace

bool ObjectSnapshot::take() noexcept {
  count_ = 0;
  version_ = visit_own_objects(*this);
  return version_.loads != 0;
}

void ObjectSnapshot::visit(const ListedObject& object) noexcept {
  if (count_ < objects_.size()) objects_[count_++] = object;
}

std::size_t ObjectSnapshot::index_of(Addr dynamic) const noexcept {
  std::size_t i = 0;
  while (i < count_ && objects_[i].dynamic != dynamic) ++i;
  return i;
}

bool ObjectDescriptor::find(const ListedObject& object, const ListVersion& version,
                            std::optional<ObjectDescriptor>& out) noexcept {
  std::array<char, PATH_MAX> path;
  bool exports = false;
  const bool same = while_they_stay(version, [&] {
    copy_path(object.name, path);
    DynamicObject dynamic(local_space().memory, local_space().arch, object.bias, object.dynamic);
    exports = dynamic.find_function(k_breakpoint).has_value();
  });
  auto files = same ? ModuleFiles::open(path_of(path.data()), nullptr) : Error{};
  if (!files) return same;
  ObjectDescriptor found(object);
  if (!found.find_symbols((*files)->open_again(), exports)) return true;
  // The second image drops the pages that the search has read.
  found.file_ = (*files)->open_again().file;
  if (!found.file_.image) return true;
  // The data that is_loaded() compares is read while the file is unchanged.
  (void)found.file_.image->header_bytes();
  (void)found.file_.image->build_id();
  out.emplace(std::move(found));
  return true;
}

/// Both symbols must be in one object, as GDB requires. Debuggers accept symbols that are not exported, too.
bool ObjectDescriptor::find_symbols(const ModuleFiles::BothFiles& files, bool exports) noexcept {
  const auto& file = files.file.image;
  const auto& debug = files.debug.image;
  if (!file) return false;
  for (const auto& image : {file, debug}) {
    if (!image) continue;
    if (const auto read = read_symbols(*image); read && find_symbols(read->symbols)) return true;
  }
  return exports && find_symbols(file->symbols(SHT_DYNSYM));
}

bool ObjectDescriptor::find_symbols(const ElfSymbols& symbols) noexcept {
  const Addr data = find_symbol(symbols, k_descriptor, STT_OBJECT, sizeof(jit_descriptor));
  const Addr code = data != 0 ? find_symbol(symbols, k_breakpoint, STT_FUNC, 0) : 0;
  if (code == 0) return false;
  const Addr at = data + object_.bias;
  if (at % alignof(jit_descriptor) != 0 || !is_writable(at) || !is_writable(at + sizeof(jit_descriptor) - 1))
    return false;
  descriptor_ = reinterpret_cast<jit_descriptor*>(static_cast<std::uintptr_t>(at));
  breakpoint_ = reinterpret_cast<void (*)()>(static_cast<std::uintptr_t>(code + object_.bias));
  return true;
}

/// Compares bytes of the file with the loaded bytes. Bytes that are not loaded count as equal.
bool ObjectDescriptor::has_in_memory(std::span<const std::byte> of_file) const noexcept {
  const ElfImage& image = *file_.image;
  if (of_file.empty()) return true;
  const std::uint64_t offset = file_.parts->offset_of(of_file);
  for (std::size_t i = 0; i < image.segment_count(); ++i) {
    const ElfSegment s = image.segment(i);
    if (s.type != PT_LOAD || (s.flags & PF_R) == 0 || offset < s.offset || offset - s.offset >= s.file_size ||
        s.file_size - (offset - s.offset) < of_file.size())
      continue;
    const Addr at = object_.bias + s.address + (offset - s.offset);
    return std::memcmp(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(at)), of_file.data(),
                       of_file.size()) == 0;
  }
  return true;
}

bool ObjectDescriptor::is_loaded() const noexcept {
  const ElfImage& image = *file_.image;
  return has_in_memory(image.header_bytes()) && has_in_memory(image.build_id()) && descriptor_->version == 1;
}

}  // namespace jitunwind
