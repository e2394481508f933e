// dladdr(), dladdr1(), backtrace_symbols() and backtrace_symbols_fd() of the C library, in front of its own. They know
// registered code, by the names that walks give. Everything else is answered by the next definition. docs/listen.md,
// "dladdr and backtrace_symbols".
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "jitunwind/adapters/symbolizers/symbolizers_p.h"
#include "jitunwind/dyn_info/directives/directives.h"
#include "jitunwind/dyn_info/registry/registry.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/modules/local_modules.h"
#include "jitunwind/unwind_core/trace/log.h"

namespace jitunwind {
namespace {

/// The name for the file of code that is in none, since users of dladdr() expect no null pointer.
constinit char no_file[] = "[jit]";

struct Symbol {
  Addr start = 0;
  std::string_view name{};  ///< empty: registered without one
  bool is_in_file = false;  ///< code of a module, which has a file
};

Addr address_of(const void* at) noexcept { return reinterpret_cast<std::uintptr_t>(at); }
void* pointer_to(Addr at) noexcept { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }

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

/// Calls `use` with the parts of glibc's text, "FILE(NAME+0xOFFSET) [0xADDRESS]". `address_begins`: " [" or "[".
template <class Use>
bool with_text_of(Addr at, Addr looked_up, std::string_view address_begins, Use use) noexcept {
  return with_symbol(looked_up, [&](const Symbol& symbol) {
    Line tail;
    tail.text("+").hex(at - symbol.start).text(")").text(address_begins).hex(at).text("]");
    use(Parts{file_at(looked_up, symbol), "(", symbol.name, tail.view()});
  });
}

/// The address behind a call that ends a procedure is in none.
template <class Use>
bool with_text(const void* address, std::string_view address_begins, Use use) noexcept {
  const Addr at = address_of(address);
  return with_text_of(at, at, address_begins, use) || with_text_of(at, at - 1, address_begins, use);
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
    if (with_text(addresses[i], " [", append))
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
    if (jitunwind::with_text(addresses[i], "[", write)) continue;
    if (next != nullptr && jitunwind::may_be_in_module(addresses[i]))
      next(&addresses[i], 1, fd);
    else
      jitunwind::Line().text("[").hex(jitunwind::address_of(addresses[i])).text("]").write_to(fd);
  }
}
}
