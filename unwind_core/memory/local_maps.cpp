// Asks the kernel which pages this process may execute.
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/local.h"
#include "jitunwind/unwind_core/memory/page_answers_p.h"
#include "jitunwind/unwind_core/memory/small_stack_internal.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

/// Parses the lines of /proc/thread-self/maps: "begin-end rwxp ...", hex, ascending. The text may come in any pieces.
class MapsParser {
 public:
  explicit MapsParser(Addr wanted) noexcept : wanted_(wanted) {}

  /// Returns false when no more text is needed.
  bool feed(char c) noexcept {
    if (c == '\n') {
      if (found_) return false;
      field_ = Field::begin;
      range_ = {};
      return true;
    }
    switch (field_) {
      case Field::begin:
        return c == '-' ? next(Field::end) : digit(c, range_.begin);
      case Field::end:
        return c == ' ' ? next(Field::mode) : digit(c, range_.end);
      case Field::mode:
        if (c == ' ') return next(Field::rest);
        if (c == 'x') executable_ = true;
        return true;
      case Field::rest:
        break;
    }
    return range_.begin <= wanted_;
  }

  /// Precondition: feed() returned false, or the text has ended.
  bool is_executable() const noexcept { return found_ && executable_; }

 private:
  enum class Field : unsigned char { begin, end, mode, rest };

  bool next(Field field) noexcept {
    field_ = field;
    if (field == Field::mode) {
      found_ = range_.contains(wanted_);
      executable_ = false;
    }
    return field != Field::rest || !found_;
  }

  static bool digit(char c, Addr& into) noexcept {
    into = into << 4 | static_cast<Addr>(c <= '9' ? c - '0' : c - 'a' + 10);
    return true;
  }

  Addr wanted_;
  AddrRange range_{};
  Field field_ = Field::begin;
  bool found_ = false;
  bool executable_ = false;
};

class MapsFile {
 public:
  explicit MapsFile(const char* path) noexcept : file_(path) {}
  bool is_open() const noexcept { return file_.is_open(); }
  std::optional<bool> query(Addr at) const noexcept;
  std::optional<bool> search(Addr at) const noexcept;

 private:
  ReadableFile file_;
};

/// The ioctl PROCMAP_QUERY (Linux 6.11, include/uapi/linux/fs.h) finds the mapping of an address, however many there
/// are.
struct ProcmapQuery {
  std::uint64_t size;
  std::uint64_t query_flags;
  std::uint64_t query_addr;
  std::uint64_t vma_start;
  std::uint64_t vma_end;
  std::uint64_t vma_flags;
  std::uint64_t vma_page_size;
  std::uint64_t vma_offset;
  std::uint64_t inode;
  std::uint32_t dev_major;
  std::uint32_t dev_minor;
  std::uint32_t vma_name_size;
  std::uint32_t build_id_size;
  std::uint64_t vma_name_addr;
  std::uint64_t build_id_addr;
};
static_assert(sizeof(ProcmapQuery) == 104);
constexpr std::uint64_t k_vma_executable = 4;

/// Returns nothing when this kernel does not know the query.
std::optional<bool> MapsFile::query(Addr at) const noexcept {
  ProcmapQuery query{};
  query.size = sizeof query;
  query.query_addr = at;
  constexpr unsigned long k_procmap_query = _IOWR('f', 17, ProcmapQuery);
  if (::syscall(SYS_ioctl, file_.number(), k_procmap_query, &query) == 0)
    return (query.vma_flags & k_vma_executable) != 0;
  if (errno == ENOENT) return false;  // nothing is mapped there
  return std::nullopt;
}

/// Reads up to k_most_read of the file, since every mapping that is passed costs the kernel as much as a query. Returns
/// nothing when the address is behind that part.
std::optional<bool> MapsFile::search(Addr at) const noexcept {
  constexpr std::size_t k_most_read = 64 << 10;
  MapsParser parser(at);
  std::array<char, 1024> buffer;
  for (std::size_t read = 0; read < k_most_read;) {
    const long got = file_.read(buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return parser.is_executable();
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i)
      if (!parser.feed(buffer[i])) return parser.is_executable();
    read += static_cast<std::size_t>(got);
  }
  return std::nullopt;
}

[[gnu::section(".bss.large")]] constinit PageAnswers answers;

/// The maps to ask. Those of the thread exist even when the main thread has ended. An emulator of another CPU
/// (qemu-user) emulates only the maps of the process, and under the thread's name the kernel describes the emulator.
/// This case is recognised because this very code then seems not to be executable.
enum class Maps : int { untried, of_thread, of_process };
constinit std::atomic<Maps> maps_to_ask{Maps::untried};

struct KernelAnswer {
  PageAnswer answer;
  bool is_query = false;
};

KernelAnswer ask_maps(Maps whose, Addr at) noexcept {
  const MapsFile maps(whose == Maps::of_process ? "/proc/self/maps" : "/proc/thread-self/maps");
  if (!maps.is_open()) return {};
  if (const PageAnswer answer = maps.query(at)) return {answer, true};
  return {maps.search(at)};
}

KernelAnswer ask_right_maps(Addr at) noexcept {
  const Maps whose = maps_to_ask.load(std::memory_order_relaxed);
  const KernelAnswer answer = ask_maps(whose, at);
  if (whose != Maps::untried || answer.answer != false || answer.is_query) return answer;
  const Addr here = reinterpret_cast<std::uintptr_t>(&ask_maps);
  const bool is_right = ask_maps(whose, here).answer != false;
  maps_to_ask.store(is_right ? Maps::of_thread : Maps::of_process, std::memory_order_relaxed);
  return is_right ? answer : ask_maps(Maps::of_process, at);
}

/// Every answer that was read is kept. A query's answer is kept only if it is "executable": code made at run time is
/// written first and made executable afterwards, and that change must be seen at once.
PageAnswer ask_kernel(Addr at, std::optional<Moment> moment) noexcept {
  const ErrnoKeeper keeper;
  const auto [answer, is_query] = ask_right_maps(at);
  if (is_query && answer == false) return answer;
  if (moment) answers.keep(at, *moment, answer);
  return answer;
}

}  // namespace

std::optional<bool> LocalMemory::is_executable(Addr at, MemoryWindow&) const noexcept {
  if (at >> PageAnswers::k_address_bits != 0) return false;
  const auto moment = Moment::now();
  PageAnswer answer;
  if (moment && answers.find(at, *moment, answer)) return answer;
  return with_room([&] { return ask_kernel(at, moment); });
}

}  // namespace jitunwind
