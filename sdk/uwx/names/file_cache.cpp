#include "jitunwind/sdk/uwx/names/file_cache_p.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "jitunwind/unwind_core/memory/local.h"

#ifdef JITUNWIND_HAS_LIBDW
#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace jitunwind::uwx {
namespace {

/// The functions of libdw that are used, by their names.
struct Libdw {
  decltype(&::dwfl_begin) dwfl_begin;
  decltype(&::dwfl_end) dwfl_end;
  decltype(&::dwfl_report_elf) dwfl_report_elf;
  decltype(&::dwfl_report_end) dwfl_report_end;
  decltype(&::dwfl_addrmodule) dwfl_addrmodule;
  decltype(&::dwfl_module_addrdie) dwfl_module_addrdie;
  decltype(&::dwfl_module_nextcu) dwfl_module_nextcu;
  decltype(&::dwarf_haspc) dwarf_haspc;
  decltype(&::dwarf_getsrc_die) dwarf_getsrc_die;
  decltype(&::dwarf_linesrc) dwarf_linesrc;
  decltype(&::dwarf_lineno) dwarf_lineno;
  decltype(&::dwarf_getscopes) dwarf_getscopes;
  decltype(&::dwarf_getscopes_die) dwarf_getscopes_die;
  decltype(&::dwarf_tag) dwarf_tag;
  decltype(&::dwarf_diename) dwarf_diename;
  decltype(&::dwarf_attr) dwarf_attr;
  decltype(&::dwarf_attr_integrate) dwarf_attr_integrate;
  decltype(&::dwarf_formudata) dwarf_formudata;
  decltype(&::dwarf_formstring) dwarf_formstring;
  decltype(&::dwarf_getsrcfiles) dwarf_getsrcfiles;
  decltype(&::dwarf_filesrc) dwarf_filesrc;
  Dwfl_Callbacks callbacks;
};

bool load(Libdw& into) noexcept {
  void* const library = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  bool complete = true;
  const auto find = [&]<class F>(F& function, const char* name) {
    function = reinterpret_cast<F>(::dlsym(library, name));
    complete = complete && function;
  };
#define JITUNWIND_FIND(name) find(into.name, #name)
  JITUNWIND_FIND(dwfl_begin), JITUNWIND_FIND(dwfl_end), JITUNWIND_FIND(dwfl_report_elf);
  JITUNWIND_FIND(dwfl_report_end), JITUNWIND_FIND(dwfl_addrmodule), JITUNWIND_FIND(dwfl_module_addrdie);
  JITUNWIND_FIND(dwfl_module_nextcu), JITUNWIND_FIND(dwarf_haspc), JITUNWIND_FIND(dwarf_getsrc_die);
  JITUNWIND_FIND(dwarf_linesrc), JITUNWIND_FIND(dwarf_lineno), JITUNWIND_FIND(dwarf_getscopes);
  JITUNWIND_FIND(dwarf_getscopes_die), JITUNWIND_FIND(dwarf_tag), JITUNWIND_FIND(dwarf_diename);
  JITUNWIND_FIND(dwarf_attr), JITUNWIND_FIND(dwarf_attr_integrate), JITUNWIND_FIND(dwarf_formudata);
  JITUNWIND_FIND(dwarf_formstring), JITUNWIND_FIND(dwarf_getsrcfiles), JITUNWIND_FIND(dwarf_filesrc);
#undef JITUNWIND_FIND
  // The standard function is not used, since it queries servers on the network.
  find(into.callbacks.find_debuginfo, "dwfl_build_id_find_debuginfo");
  find(into.callbacks.section_address, "dwfl_offline_section_address");
  find(into.callbacks.find_elf, "dwfl_build_id_find_elf");
  return complete;
}

/// Null: there is no libdw, now and later. It is never unloaded.
const Libdw* libdw() noexcept {
  enum class State { unknown, filling, ready, missing };
  static constinit std::atomic<State> state{State::unknown};
  static constinit Libdw table{};
  State expected = State::unknown;
  if (state.compare_exchange_strong(expected, State::filling, std::memory_order_acq_rel)) {
    expected = load(table) ? State::ready : State::missing;
    state.store(expected, std::memory_order_release);
    state.notify_all();
  } else if (expected == State::filling) {
    state.wait(State::filling, std::memory_order_acquire);
    expected = state.load(std::memory_order_acquire);
  }
  return expected == State::ready ? &table : nullptr;
}

/// Owns the scopes that libdw allocates with malloc.
class Scopes {
 public:
  Scopes(Dwarf_Die* dies, int count) noexcept : dies_(dies), count_(count > 0 ? count : 0) {}
  ~Scopes() { std::free(dies_); }
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;
  int count() const noexcept { return count_; }
  Dwarf_Die* operator[](int i) noexcept { return &dies_[i]; }

 private:
  Dwarf_Die* dies_;
  int count_;
};

/// The function's name as in symbols.
const char* name_of(const Libdw& dw, Dwarf_Die* die) noexcept {
  Dwarf_Attribute attribute;
  if (Dwarf_Attribute* const linkage = dw.dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute))
    if (const char* const name = dw.dwarf_formstring(linkage)) return name;
  return dw.dwarf_diename(die);
}

Dwarf_Word number_of(const Libdw& dw, Dwarf_Die* die, unsigned attribute_name) noexcept {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  Dwarf_Attribute* const found = dw.dwarf_attr(die, attribute_name, &attribute);
  return found && dw.dwarf_formudata(found, &value) == 0 ? value : 0;
}

/// Finds the unit by .debug_aranges. Some compilers, for example clang, write none: the ranges of each unit are
/// searched then.
Dwarf_Die* unit_at(const Libdw& dw, Dwfl_Module* module, Addr at, Dwarf_Addr& bias) noexcept {
  Dwarf_Die* unit = dw.dwfl_module_addrdie(module, at, &bias);
  if (unit) return unit;
  while ((unit = dw.dwfl_module_nextcu(module, unit, &bias)) != nullptr)
    if (dw.dwarf_haspc(unit, at - bias) > 0) return unit;
  return nullptr;
}

void take_call_site(const Libdw& dw, Dwarf_Die* unit, Dwarf_Die* call, SourcePosition& out) noexcept {
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  out.line = static_cast<int>(number_of(dw, call, DW_AT_call_line));
  if (dw.dwarf_getsrcfiles(unit, &files, &count) != 0) return;
  if (const Dwarf_Word file = number_of(dw, call, DW_AT_call_file); file < count)
    out.file = dw.dwarf_filesrc(files, static_cast<std::size_t>(file), nullptr, nullptr);
}

}  // namespace

SourceFile::SourceFile(const char* path) noexcept {
  const Libdw* const dw = libdw();
  Dwfl* const dwfl = dw ? dw->dwfl_begin(&dw->callbacks) : nullptr;
  if (!dwfl) return;
  const bool is_reported = dw->dwfl_report_elf(dwfl, path, path, -1, 0, true) != nullptr;
  if (dw->dwfl_report_end(dwfl, nullptr, nullptr) == 0 && is_reported)
    debug_info_ = dwfl;
  else
    dw->dwfl_end(dwfl);
}

SourceFile::~SourceFile() {
  if (debug_info_) libdw()->dwfl_end(static_cast<Dwfl*>(debug_info_));
}

SourcePosition SourceFile::find(Addr at, int context) noexcept {
  if (!debug_info_) return {};
  const Libdw& dw = *libdw();
  Dwfl_Module* const module = dw.dwfl_addrmodule(static_cast<Dwfl*>(debug_info_), at);
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = module ? unit_at(dw, module, at, bias) : nullptr;
  if (!unit) return {};

  SourcePosition found;
  Dwarf_Die* innermost = nullptr;
  const int depth = dw.dwarf_getscopes(unit, at - bias, &innermost);
  const Scopes at_address(innermost, depth);
  Dwarf_Die* parents = nullptr;
  const int parent_count = depth > 0 ? dw.dwarf_getscopes_die(innermost, &parents) : 0;
  Scopes scopes(parents, parent_count);
  // The calls are passed from the innermost one outwards: `context` of them.
  int passed = 0;
  Dwarf_Die* last_call = nullptr;
  for (int i = 0; i < scopes.count() && dw.dwarf_tag(scopes[i]) != DW_TAG_subprogram; ++i) {
    if (dw.dwarf_tag(scopes[i]) != DW_TAG_inlined_subroutine) continue;
    if (passed == context) {
      found.inlined = name_of(dw, scopes[i]);
      found.context = context + 1;
      break;
    }
    last_call = scopes[i];
    ++passed;
  }
  if (passed != context) return {};
  if (last_call) {
    take_call_site(dw, unit, last_call, found);
  } else if (Dwarf_Line* const line = dw.dwarf_getsrc_die(unit, at - bias)) {
    found.file = dw.dwarf_linesrc(line, nullptr, nullptr);
    (void)dw.dwarf_lineno(line, &found.line);
  }
  return found;
}

}  // namespace jitunwind::uwx

#else  // builds without libdw's headers have no source positions

namespace jitunwind::uwx {

SourceFile::SourceFile(const char*) noexcept {}
SourceFile::~SourceFile() = default;
SourcePosition SourceFile::find(Addr, int) noexcept { return {}; }

}  // namespace jitunwind::uwx

#endif

namespace jitunwind::uwx {

FileCache::~FileCache() {
  while (first_) {
    File* const next = first_->next;
    first_->~File();
    allocator_.release(first_);
    first_ = next;
  }
}

Result<FileCache::File*> FileCache::find(const char* path) noexcept {
  struct stat status;
  if (!path || ::stat(path, &status) != 0) return Error{ErrorCode::io, 0, "file"};
  const File::Identity identity{status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
                                status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  for (File* file = first_; file; file = file->next)
    if (file->identity == identity && std::strcmp(file->path, path) == 0) return file;
  auto symbols = SymbolFile::open(path);
  if (!symbols) return symbols.error();
  File* const added = add(path, identity, std::move(*symbols));
  if (!added) return Error{ErrorCode::out_of_memory, 0, "file"};
  return added;
}

FileCache::File* FileCache::add(const char* path, const File::Identity& identity, SymbolFile symbols) noexcept {
  const std::size_t length = std::strlen(path) + 1;
  void* const memory = allocator_.allocate(sizeof(File) + length);
  if (!memory) return nullptr;
  File* const file = new (memory) File;
  char* const copy = reinterpret_cast<char*>(file + 1);
  std::memcpy(copy, path, length);
  file->symbols = std::move(symbols);
  file->identity = identity;
  file->path = copy;
  file->next = first_;
  return first_ = file;
}

std::span<char> StringPool::room(std::size_t size) noexcept {
  if (size <= first_.size() - used_) {
    const auto found = std::span(first_).subspan(used_, size);
    used_ += size;
    return found;
  }
  void* const memory = allocator_.allocate(sizeof(Block) + size);
  if (!memory) return {};
  more_ = new (memory) Block{more_};
  return {reinterpret_cast<char*>(more_ + 1), size};
}

char* StringPool::keep(std::string_view text) noexcept {
  const auto into = room(text.size() + 1);
  if (into.empty()) return nullptr;
  *std::ranges::copy(text, into.begin()).out = '\0';
  return into.data();
}

char* StringPool::keep(const void* text) noexcept {
  constexpr std::size_t k_most = 1u << 16;
  const Addr begin = reinterpret_cast<std::uintptr_t>(text);
  const LocalMemory memory;
  MemoryWindow window;
  std::array<char, 256> piece;
  std::size_t length = 0;
  for (bool ended = false; !ended && length < k_most;) {
    const std::size_t size = memory.read(begin + length, std::as_writable_bytes(std::span(piece)), window);
    const std::size_t found = std::string_view(piece.data(), size).find('\0');
    ended = size < piece.size() || found != std::string_view::npos;
    length += std::min(size, found);
  }
  const auto into = room(length + 1);
  if (into.empty()) return nullptr;
  const std::size_t size = memory.read(begin, std::as_writable_bytes(into.first(length)), window);
  into[size] = '\0';
  return into.data();
}

void StringPool::clear() noexcept {
  while (more_) {
    Block* const next = more_->next;
    allocator_.release(more_);
    more_ = next;
  }
  used_ = 0;
}

}  // namespace jitunwind::uwx
