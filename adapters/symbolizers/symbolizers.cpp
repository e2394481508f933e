// dladdr(), dladdr1(), backtrace_symbols() and backtrace_symbols_fd() of the C library, in front of its own. They know
// registered code, by the names that walks give. Everything else is answered by the next definition. docs/listen.md,
// "dladdr and backtrace_symbols".
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>

#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/memory/raw_access_internal.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/trace/log.h"

#pragma weak dlsym  // a static program has none

namespace jitunwind {
namespace {

/// The C library's functions, which are called without this library.
struct NextSymbolizers {
  int (*dladdr)(const void* address, Dl_info* info) = nullptr;
  int (*dladdr1)(const void* address, Dl_info* info, void** extra, int flags) = nullptr;
  char** (*backtrace_symbols)(void* const* addresses, int size) = nullptr;
  void (*backtrace_symbols_fd)(void* const* addresses, int size, int fd) = nullptr;
};

constinit NextSymbolizers known_next;
constinit std::atomic<bool> is_next_known{false};

template <class Function>
void find_next(Function*& function, const char* name) noexcept {
  if (&dlsym != nullptr) function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Threads that come here at once write the same values.
[[gnu::constructor(101)]] void find_at_load() {
  const ErrnoKeeper keep_errno;
  NextSymbolizers found;
  find_next(found.dladdr, "dladdr");
  find_next(found.dladdr1, "dladdr1");
  find_next(found.backtrace_symbols, "backtrace_symbols");
  find_next(found.backtrace_symbols_fd, "backtrace_symbols_fd");
  known_next = found;
  is_next_known.store(true, std::memory_order_release);
}

/// The definitions that follow in search order. They are null in a static program, of whose addresses glibc's own
/// functions know nothing. They are looked up when the library is loaded, so that this is signal-safe afterwards.
const NextSymbolizers& next_symbolizers() noexcept {
  // Constructors of other libraries may call earlier, while there are no other threads.
  if (!is_next_known.load(std::memory_order_acquire)) find_at_load();
  return known_next;
}

// Names that are valid until the process ends, whatever becomes of the code that they name.

constexpr std::size_t k_most_lasting_bytes = std::size_t{64} << 20;

/// A name in a chain of those with the same hash. The text follows in memory.
struct Kept {
  Kept* next;
  std::size_t length;
  char* text() noexcept { return reinterpret_cast<char*>(this + 1); }
};

/// Memory for names, used from its begin to its end.
struct Piece {
  static constexpr std::size_t k_bytes = std::size_t{64} << 10;
  std::atomic<std::size_t> used{sizeof(Piece)};
};

constexpr unsigned k_chain_bits = 12;
constinit std::array<std::atomic<Kept*>, std::size_t{1} << k_chain_bits> chains{};
constinit std::atomic<Piece*> piece{nullptr};
constinit std::atomic<std::size_t> mapped{0};

void* take(Piece* from, std::size_t bytes) noexcept {
  if (from == nullptr) return nullptr;
  const std::size_t at = from->used.fetch_add(bytes, std::memory_order_relaxed);
  return at + bytes <= Piece::k_bytes ? reinterpret_cast<std::byte*>(from) + at : nullptr;
}

/// A name is smaller than a piece. A caller that finds the piece used up maps another one. If several do so at once,
/// one of their pieces stays.
void* allocate(std::size_t bytes) noexcept {
  for (;;) {
    Piece* now = piece.load(std::memory_order_acquire);
    if (void* const taken = take(now, bytes)) return taken;
    if (mapped.load(std::memory_order_relaxed) >= k_most_lasting_bytes) return nullptr;
    void* const memory = ::mmap(nullptr, Piece::k_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    if (piece.compare_exchange_strong(now, new (memory) Piece, std::memory_order_acq_rel))
      mapped.fetch_add(Piece::k_bytes, std::memory_order_relaxed);
    else
      ::munmap(memory, Piece::k_bytes);
  }
}

Kept* find_kept(Kept* chain, std::string_view name) noexcept {
  while (chain != nullptr &&
         (chain->length != name.size() || std::memcmp(chain->text(), name.data(), name.size()) != 0))
    chain = chain->next;
  return chain;
}

std::atomic<Kept*>& chain_of(std::string_view name) noexcept {
  std::uint64_t hash = 0;
  for (const char byte : name) hash = hash_with(hash, static_cast<unsigned char>(byte));
  return chains[table_place(hash, k_chain_bits)];
}

/// Returns the name, NUL-terminated; the same name has the same address, unless threads ask for it at once for the
/// first time. Null: there is no memory, or names of k_most_lasting_bytes are kept. Signal-safe, thread-safe, and never
/// waits. It allocates by mmap alone.
const char* lasting_name(std::string_view name) noexcept {
  std::atomic<Kept*>& chain = chain_of(name);
  Kept* first = chain.load(std::memory_order_acquire);
  if (Kept* const known = find_kept(first, name)) return known->text();
  const ErrnoKeeper keep_errno;
  constexpr std::size_t k_unit = alignof(Kept);
  void* const memory = allocate((sizeof(Kept) + name.size() + 1 + k_unit - 1) / k_unit * k_unit);
  if (memory == nullptr) return nullptr;
  Kept* const kept = new (memory) Kept{first, name.size()};
  std::memcpy(kept->text(), name.data(), name.size());
  kept->text()[name.size()] = '\0';
  while (!chain.compare_exchange_weak(kept->next, kept, std::memory_order_acq_rel)) {
  }
  return kept->text();
}

/// The name for the file of code that is in none, since users of dladdr() expect no null pointer.
constinit char no_file[] = "[jit]";

struct Symbol {
  Addr start = 0;
  std::string_view name{};  ///< empty: registered without one
  bool is_in_file = false;  ///< code of a module, which has a file
};

bool is_in_module(Addr at) noexcept {
  Module module;
  return local_modules().find(at, module);
}

/// The C library's functions take the dynamic linker's lock, also to answer that they know nothing of code outside of
/// files. A handler that interrupted them while they take it would wait for ever.
bool may_be_in_module(const void* at) noexcept {
  ModuleVersion version;
  return find_module_version(address_of(at), version);
}

/// A handler that interrupts a cancellation would otherwise wait for it, if the name cannot be read.
constexpr unsigned k_most_tries = 100;

/// Finds the registered procedure that covers `at`, and its name, which is empty if it has none.
bool find_registered(Addr at, std::span<char> into, ProcedureName& out) noexcept {
  MemoryWindow window;
  Lookup lookup(local_space().for_addresses(), CodeAddress::interrupted(at), window);
  for (unsigned tries = 1;; ++tries) {
    const ProcedureHold hold(at);
    if (hold.info() == nullptr) return false;
    const Found named = dyn_name_source().find_name(lookup, into, out);
    if (named && *named) return true;
    write_name({}, into, out);
    out.start = hold.info()->start_ip;
    // A procedure with a name was cancelled meanwhile, and another may be there now.
    if (hold.info()->u.pi.name_ptr == 0 || still_registered(hold.key()) || tries == k_most_tries) return true;
  }
}

/// Calls `use` with the registered symbol at `at`, whose name is valid during the call. Returns false if the C library
/// knows more: the code is not registered, or has no name and is in a file.
template <class Use>
bool with_symbol(Addr at, Use use) noexcept {
  if (!may_be_registered(at)) return false;
  return with_room([&] {
    std::array<char, 4096> name;
    ProcedureName found;
    if (!find_registered(at, name, found)) return false;
    const Symbol symbol{found.start, found.length == 0 ? "" : name.data(), is_in_module(at)};
    if (symbol.name.empty() && symbol.is_in_file) return false;
    use(symbol);
    return true;
  });
}

/// The object of code that the dynamic linker does not know, for dladdr1(). Addresses count from 0.
constinit ElfW(Dyn) no_entries{};
constinit link_map no_object{0, no_file, &no_entries, nullptr, nullptr};

/// `next`: fills `info` as the C library does, and returns 0 if it does not know the address.
template <class Next>
int answer(const void* address, Dl_info* info, Next next) noexcept {
  Symbol known;
  const bool is_known = with_symbol(address_of(address), [&](const Symbol& symbol) {
    known = symbol;
    const char* const name = symbol.name.empty() ? nullptr : lasting_name(symbol.name);
    known.name = name == nullptr ? std::string_view() : name;
  });
  if (!is_known) return may_be_in_module(address) ? next() : 0;
  if (!known.is_in_file || next() == 0) *info = {no_file, pointer_to(known.start), nullptr, nullptr};
  if (known.name.empty()) return 1;
  info->dli_sname = known.name.data();
  info->dli_saddr = pointer_to(known.start);
  return 1;
}

const char* file_at(Addr at, const Symbol& symbol) noexcept {
  Dl_info info;
  const auto next = next_symbolizers().dladdr;
  return symbol.is_in_file && next != nullptr && next(pointer_to(at), &info) != 0 ? info.dli_fname : no_file;
}

using Parts = std::array<std::string_view, 4>;

/// Calls `use` with the parts of glibc's text, "FILE(NAME+0xOFFSET) [0xADDRESS]". glibc 2.36 has no blank in files.
template <class Use>
bool with_text_of(Addr at, Addr looked_up, Use use) noexcept {
  return with_symbol(looked_up, [&](const Symbol& symbol) {
    Line tail;
    tail.text("+").hex(at - symbol.start).text(") [").hex(at).text("]");
    use(Parts{file_at(looked_up, symbol), "(", symbol.name, tail.view()});
  });
}

/// The address behind a call that ends a procedure is in none.
template <class Use>
bool with_text(const void* address, Use use) noexcept {
  const Addr at = address_of(address);
  return with_text_of(at, at, use) || with_text_of(at, at - 1, use);
}

/// The result of backtrace_symbols(): pointers to texts, and the texts, in one piece of memory.
class Texts {
 public:
  explicit Texts(std::size_t count) noexcept : pointers_(count * sizeof(char*)) { grow(pointers_); }
  Texts(const Texts&) = delete;
  Texts& operator=(const Texts&) = delete;
  ~Texts() { std::free(memory_); }

  void append(std::string_view text) noexcept {
    const std::size_t at = size_;
    if (grow(text.size())) std::memcpy(memory_ + at, text.data(), text.size());
  }
  void end() noexcept { append({"", 1}); }
  /// Null: there is no memory.
  char** release() noexcept {
    if (!has_memory_) return nullptr;
    auto** const texts = reinterpret_cast<char**>(memory_);
    char* text = memory_ + pointers_;
    for (std::size_t i = 0; i != pointers_ / sizeof(char*); ++i, text += std::strlen(text) + 1) texts[i] = text;
    memory_ = nullptr;
    return texts;
  }

 private:
  bool grow(std::size_t by) noexcept {
    auto* const moved = has_memory_ ? static_cast<char*>(std::realloc(memory_, size_ + by)) : nullptr;
    has_memory_ = moved != nullptr;
    if (has_memory_) memory_ = moved, size_ += by;
    return has_memory_;
  }

  const std::size_t pointers_;
  char* memory_ = nullptr;
  std::size_t size_ = 0;
  bool has_memory_ = true;
};

/// Puts the texts of registered code in the place of the C library's, if there are any.
char** with_own_texts(void* const* addresses, std::size_t count, char** theirs) noexcept {
  Texts both(count);
  bool are_ours = false;
  for (std::size_t i = 0; i != count; ++i) {
    const auto append = [&](const Parts& parts) {
      for (const std::string_view part : parts) both.append(part);
    };
    if (with_text(addresses[i], append))
      are_ours = true;
    else
      both.append(theirs != nullptr ? theirs[i] : Line().text("[").hex(address_of(addresses[i])).text("]").view());
    both.end();
  }
  if (!are_ours && theirs != nullptr) return theirs;
  std::free(theirs);
  return both.release();
}

void write_text(const Parts& parts, int fd) noexcept {
  std::array<iovec, 5> written;
  const auto piece = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
  for (std::size_t i = 0; i != parts.size(); ++i) written[i] = piece(parts[i]);
  written.back() = piece("\n");
  (void)::syscall(SYS_writev, fd, written.data(), written.size());  // writev() is a cancellation point
}

}  // namespace
}  // namespace jitunwind

extern "C" {

[[gnu::visibility("default")]] int dladdr(const void* address, Dl_info* info) noexcept {
  return jitunwind::answer(address, info, [&] {
    const auto next = jitunwind::next_symbolizers().dladdr;
    return next == nullptr ? 0 : next(address, info);
  });
}

[[gnu::visibility("default")]] int dladdr1(const void* address, Dl_info* info, void** extra, int flags) noexcept {
  if (flags == RTLD_DL_LINKMAP) *extra = &jitunwind::no_object;
  if (flags == RTLD_DL_SYMENT) *extra = nullptr;
  return jitunwind::answer(address, info, [&] {
    const auto next = jitunwind::next_symbolizers().dladdr1;
    return next == nullptr ? 0 : next(address, info, extra, flags);
  });
}

[[gnu::visibility("default")]] char** backtrace_symbols(void* const* addresses, int size) noexcept {
  const auto next = jitunwind::next_symbolizers().backtrace_symbols;
  char** const theirs = next == nullptr ? nullptr : next(addresses, size);
  if (size <= 0 || (next != nullptr && theirs == nullptr)) return theirs;
  return jitunwind::with_own_texts(addresses, static_cast<std::size_t>(size), theirs);
}

[[gnu::visibility("default")]] void backtrace_symbols_fd(void* const* addresses, int size, int fd) noexcept {
  const auto next = jitunwind::next_symbolizers().backtrace_symbols_fd;
  for (int i = 0; i < size; ++i) {
    const auto write = [&](const jitunwind::Parts& parts) { jitunwind::write_text(parts, fd); };
    if (jitunwind::with_text(addresses[i], write)) continue;
    if (next != nullptr && jitunwind::may_be_in_module(addresses[i]))
      next(&addresses[i], 1, fd);
    else
      jitunwind::Line().text("[").hex(jitunwind::address_of(addresses[i])).text("]").write_to(fd);
  }
}
}
