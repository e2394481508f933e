#include "jitunwind/sdk/published_pages_internal.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "jitunwind/adapters/code_segments/segment_p.h"
#include "jitunwind/sdk/exceptions/copied_procedure_internal.h"
#include "jitunwind/sdk/exceptions/fde_encoder_internal.h"
#include "jitunwind/sdk/local_space.h"
#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/memory/own/mapped_internal.h"
#include "jitunwind/unwind_core/trace/log.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

/// References to the pages that are mapped somewhere now, which stay as they are mapped elsewhere or nowhere:
/// vmsplice(2). They tell what was written last to memory that is replaced.
class OldPages {
 public:
  explicit OldPages(const AddrRange& pages) noexcept : bytes_(static_cast<std::size_t>(pages.size())) {
    if (::syscall(SYS_pipe2, ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
    is_whole_ = ::syscall(SYS_fcntl, ends_[1], F_SETPIPE_SZ, static_cast<long>(bytes_)) >= static_cast<long>(bytes_);
    iovec part{pointer_to(pages.begin), bytes_};
    while (is_whole_ && part.iov_len != 0) {
      const long taken = ::syscall(SYS_vmsplice, ends_[1], &part, 1ul, 0u);
      is_whole_ = taken > 0;
      if (!is_whole_) break;
      part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
      part.iov_len -= static_cast<std::size_t>(taken);
    }
  }
  ~OldPages() {
    for (const int end : ends_)
      if (end >= 0) ::syscall(SYS_close, end);
  }
  OldPages(const OldPages&) = delete;
  OldPages& operator=(const OldPages&) = delete;

  bool is_whole() const noexcept { return is_whole_; }
  /// Copies their present content. False: it cannot be read.
  bool read(std::byte* into) const noexcept {
    for (std::size_t done = 0; done < bytes_;) {
      const long got = ::syscall(SYS_read, ends_[0], into + done, bytes_ - done);
      if (got <= 0) return false;
      done += static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  const std::size_t bytes_;
  std::array<int, 2> ends_{-1, -1};
  bool is_whole_ = false;
};

bool copy_from_here(Addr at, std::byte* into, std::size_t size) noexcept {
  const iovec here{into, size}, there{pointer_to(at), size};
  const long copied = copy_between(SYS_process_vm_readv, ::getpid(), {&here, 1}, {&there, 1});
  return copied == static_cast<long>(size);
}

/// Writes words that were written to the old pages after these were copied to the new ones, unless newer bytes are
/// there. Debuggers write to code in this way, and whoever calls the kernel without the C library.
bool write_again(Addr at, std::span<const std::byte> copied, std::span<const std::byte> last) noexcept {
  constexpr std::size_t k_word = 8;
  const ReadableFile memory("/proc/self/mem", O_RDWR);
  for (std::size_t done = 0; done < copied.size(); done += k_word) {
    std::array<std::byte, k_word> now;
    if (std::memcmp(copied.data() + done, last.data() + done, k_word) == 0) continue;
    if (!copy_from_here(at + done, now.data(), k_word)) return false;
    if (std::memcmp(now.data(), copied.data() + done, k_word) != 0) continue;
    if (write_at(memory.number(), last.data() + done, k_word, at + done) != long{k_word}) return false;
  }
  return true;
}

/// Threads that write to these pages wait until it is destroyed: userfaultfd(2), of Linux 5.7 and 5.19 for shared ones.
/// The kernel itself does not: calls that write there fail.
class HeldWriters {
 public:
  HeldWriters(const AddrRange& pages, bool are_shared) noexcept {
    constexpr long k_user_mode_only = 1;                               // Linux 5.11
    constexpr std::uint64_t k_shared_memory = std::uint64_t{1} << 12;  // Linux 5.19
    uffdio_api interface { UFFD_API, are_shared ? k_shared_memory : UFFD_FEATURE_PAGEFAULT_FLAG_WP, 0 };
    uffdio_register held{{pages.begin, pages.size()}, UFFDIO_REGISTER_MODE_WP, 0};
    uffdio_writeprotect protect{held.range, UFFDIO_WRITEPROTECT_MODE_WP};
    calls_ = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | k_user_mode_only));
    is_whole_ = calls_ >= 0 && ::ioctl(calls_, UFFDIO_API, &interface) == 0 &&
                ::ioctl(calls_, UFFDIO_REGISTER, &held) == 0 && ::ioctl(calls_, UFFDIO_WRITEPROTECT, &protect) == 0;
  }
  ~HeldWriters() {
    if (calls_ >= 0) ::syscall(SYS_close, calls_);
  }
  HeldWriters(const HeldWriters&) = delete;
  HeldWriters& operator=(const HeldWriters&) = delete;
  bool is_whole() const noexcept { return is_whole_; }

 private:
  int calls_ = -1;
  bool is_whole_ = false;
};

/// How far the main thread's stack may grow down. The kernel keeps some distance, too.
Addr stack_room() noexcept {
  constexpr Addr k_least = Addr{64} << 20, k_most = Addr{1} << 40;
  rlimit limit{};
  (void)::getrlimit(RLIMIT_STACK, &limit);
  return k_least + std::min<Addr>(limit.rlim_cur, k_most);
}

/// Room behind the code where nothing is mapped, at the begin of a gap. 0: there is none within the distance that the
/// tables can express.
Addr find_room(const Mappings& mappings, const AddrRange& pages, std::size_t bytes) noexcept {
  constexpr Addr k_farthest = (Addr{1} << 31) - PublishedPages::k_most_bytes;
  const std::vector<Mapping>& all = mappings.all();
  for (std::size_t next = mappings.index_of(pages.begin) + 1; next < all.size(); ++next) {
    const AddrRange gap{all[next - 1].range.end, all[next].range.begin};
    if (gap.begin + bytes - pages.begin > k_farthest) return 0;
    if (gap.size() >= bytes + (all[next].path == "[stack]" ? stack_room() : 0)) return gap.begin;
  }
  return 0;
}

/// The call frame information of one procedure.
class OneFde final : public FdeReceiver {
 public:
  OneFde(Addr start, Addr place) noexcept : start_(start), place_(place) {}

  Addr place() noexcept override { return place_; }
  void fde(AddrRange code, std::span<const std::byte> bytes) override {
    if (code.begin == start_ && bytes_.empty()) bytes_.assign(bytes.begin(), bytes.end());
  }
  void refused(const Error&) noexcept override {}
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  const Addr start_;
  const Addr place_;
  std::vector<std::byte> bytes_;
};

}  // namespace

class PublishedPages::Pages {
 public:
  Pages(const AddrRange& pages, SegmentMemory memory, const SegmentLayout& layout)
      : pages(pages), text(layout.text), segment(std::move(memory), layout) {
    (void)::lstat(segment.memory().path().c_str(), &made_);
  }

  void enter(const AddrRange& code, const Line& name) {
    const auto offset = [&](Addr at) { return static_cast<std::size_t>(at - pages.begin); };
    const Error no_room{ErrorCode::too_deep, code.begin, "the file's tables have no room for it"};
    const auto index = segment.append_at(offset(code.begin), offset(code.end), {});
    if (!index) return lacks(no_room);
    OneFde fde(code.begin, segment.next_frame());
    encode_fdes(code, fde);
    if (!segment.publish(*index, code.size(), fde.bytes(), name.view())) lacks(no_room);
    segment[*index].state = Segment::Function::State::committed;
    ++segment.live;
  }

  /// perf reads files when it reports, after the program has ended and taken its code back. A copy of the tables takes
  /// the file's name before the first function goes. The file that is mapped has no name then.
  void keep_tables() {
    const std::string unfinished = segment.memory().path() + k_unfinished;
    kept_ = segment.memory().path() + ".kept";
    const ReadableFile file = new_file(AT_FDCWD, unfinished.c_str());
    if (file.is_open() && write_whole(file.number(), {segment.memory().writable(), text}, 0) &&
        ::rename(unfinished.c_str(), kept_.c_str()) == 0)
      return;
    const char* const why = errno == ENOSPC ? k_disk_full : "the file cannot be copied";
    lacks({ErrorCode::io, pages.begin, why});
    if (file.is_open()) ::unlink(unfinished.c_str());
    kept_.clear();
  }
  void name_kept_tables() noexcept {
    if (!kept_.empty()) (void)::rename(kept_.c_str(), segment.memory().path().c_str());
    kept_.clear();
  }
  void forget_kept_tables() noexcept { kept_.clear(); }
  ~Pages() { name_kept_tables(); }

  /// The function of this code, cut to the pages.
  std::optional<Segment::Index> find(const AddrRange& code) const noexcept {
    const Addr begin = std::max(code.begin, pages.begin);
    if (!segment.is_published() || begin >= std::min(code.end, pages.end)) return std::nullopt;
    const auto index = segment.find(begin);
    return index && segment[*index].state == Segment::Function::State::committed ? index : std::nullopt;
  }
  void withdraw(Segment::Index index) noexcept {
    name_kept_tables();
    segment.withdraw(index);
    segment[index].state = Segment::Function::State::empty;
    --segment.live;
  }

  /// The file that was made.
  bool is(const ReadableFile& file) const noexcept {
    struct stat status {};
    return file.is_open() && ::fstat(file.number(), &status) == 0 && status.st_dev == made_.st_dev &&
           status.st_ino == made_.st_ino;
  }

  const AddrRange pages;
  const std::size_t text;  // its offset in the file
  Segment segment;
  std::optional<Error> lack;

 private:
  void lacks(const Error& why) noexcept {
    if (!lack) lack = why;
  }

  struct stat made_ {};
  std::string kept_;
};

Result<PagesKind> may_be_laid_over(const Mapping& mapping, bool is_alone) noexcept {
  const PagesKind kind{mapping.writable, mapping.shared};
  if (!mapping.readable || !mapping.executable) return not_published("the code's memory cannot be read and executed");
  if (mapping.shared && !is_alone) return not_published("the code's memory is shared with other processes");
  if (mapping.path.empty() || mapping.path.starts_with("[anon:")) return kind;
  if (mapping.shared && mapping.path == "/dev/zero" && mapping.deleted) return kind;  // without a file: shmem
  // Files of an earlier moment, and those of a parent.
  const std::string_view path = mapping.path, file = path.substr(path.rfind('/') + 1);
  const std::string_view folder = path.substr(0, path.size() - file.size());
  if (folder.substr(folder.rfind('/', folder.size() - 2) + 1).starts_with(k_code_folder_prefix) &&
      file.starts_with(k_pages_prefix))
    return kind;
  return not_published("the code's memory is a file's");
}

PublishedPages::PublishedPages(std::unique_ptr<Pages> pages) noexcept : it_(std::move(pages)) {}
PublishedPages::PublishedPages(PublishedPages&&) noexcept = default;
PublishedPages& PublishedPages::operator=(PublishedPages&&) noexcept = default;
PublishedPages::~PublishedPages() = default;

Result<PublishedPages> PublishedPages::make(const AddrRange& pages, std::span<const AddrRange> procedures,
                                            const Mappings& mappings) {
  const ErrnoKeeper keep_errno;
  const Arch& arch = local_space().arch;
  if (!SegmentLayout::can_be_written(arch))
    return Error{ErrorCode::invalid_argument, 0, "code of this CPU is not published"};
  if (const Status may = may_publish(); !may) return may.error();
  std::vector<Line> names;
  std::size_t long_names = 0;
  for (const AddrRange& code : procedures) {
    names.emplace_back().foreign(registered_name(code.begin));
    if (names.back().view().size() >= k_name_of_function) long_names += names.back().view().size() + 1;
  }
  SegmentLayout layout(arch, static_cast<std::size_t>(pages.size()),
                       procedures.size() + long_names / k_name_of_function + 1,
                       static_cast<std::size_t>(::getpagesize()));
  const Addr tables = find_room(mappings, pages, layout.end);
  if (tables == 0) return Error{ErrorCode::out_of_memory, pages.begin, "no room for tables near the code"};
  Error why{};
  const CodePlaces places = CodePlaces::of_environment();
  for (const std::string& place : places.paths) {
    Result<SegmentMemory> memory = SegmentMemory::publish_pages(place, places.files, layout, arch, pages.begin, tables);
    if (!memory) {
      if (why.what == Error{}.what) why = memory.error();
      continue;
    }
    auto made = std::make_unique<Pages>(pages, std::move(*memory), layout);
    for (std::size_t i = 0; i < procedures.size(); ++i) made->enter(procedures[i], names[i]);
    if (places.files == FilesAtEnd::kept) made->keep_tables();
    return PublishedPages(std::move(made));
  }
  return why;
}

Status PublishedPages::lay_over(PagesKind kind) noexcept {
  const ErrnoKeeper keep_errno;
  const AddrRange& pages = it_->pages;
  const auto bytes = static_cast<std::size_t>(pages.size());
  const ReadableFile file(path().c_str(), O_RDWR | O_NOFOLLOW);
  if (!it_->is(file)) return not_published("the file has vanished, or is another one");
  Block kept(bytes), copied(bytes);
  if (kept.empty() || copied.empty())
    return Error{ErrorCode::out_of_memory, pages.begin, "no memory for a copy of the pages"};
  const OldPages old(pages);
  if (!old.is_whole()) return not_published("the kernel does not keep the pages (vmsplice)");
  std::optional<HeldWriters> held;
  if (kind.writable && !held.emplace(pages, kind.shared).is_whole())
    return not_published("the code's memory is writable, and the kernel does not hold up writers (userfaultfd)");
  if (!copy_from_here(pages.begin, copied.bytes().data(), bytes)) return not_published("the code cannot be read");
  if (!write_whole(file.number(), copied.bytes().first(bytes), it_->text))
    return not_published("the file cannot be written to");
  const int protection = PROT_READ | PROT_EXEC | (kind.writable ? PROT_WRITE : 0);
  const int flags = MAP_FIXED | MAP_POPULATE | (kind.shared ? MAP_SHARED : MAP_PRIVATE);
  if (::mmap(pointer_to(pages.begin), bytes, protection, flags, file.number(), static_cast<off_t>(it_->text)) ==
      MAP_FAILED)
    return not_published("the file cannot be mapped over the code");
  std::byte* const last = kept.bytes().data();
  if (!old.read(last)) return not_published("the old pages cannot be read");
  // A file that somebody cut has no pages.
  std::byte end{};
  if (copy_from_here(pages.end - 1, &end, 1) && write_again(pages.begin, copied.bytes(), kept.bytes())) return Done{};
  if (::mprotect(last, bytes, protection) == 0 &&
      ::mremap(last, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer_to(pages.begin)) != MAP_FAILED)
    (void)kept.release();
  return not_published("the file was cut, or the code was written to and cannot be written to again");
}

const AddrRange& PublishedPages::pages() const noexcept { return it_->pages; }
const std::string& PublishedPages::path() const noexcept { return it_->segment.memory().path(); }
const std::optional<Error>& PublishedPages::lack() const noexcept { return it_->lack; }
std::size_t PublishedPages::functions() const noexcept { return it_->segment.live; }

bool PublishedPages::has(const AddrRange& code) const noexcept { return it_->find(code).has_value(); }
void PublishedPages::withdraw(const AddrRange& code) noexcept {
  if (const auto index = it_->find(code)) it_->withdraw(*index);
}

void PublishedPages::withdraw_all() noexcept {
  for (Segment::Index i = 0; functions() != 0 && i < it_->segment.count(); ++i)
    if (it_->segment[i].state == Segment::Function::State::committed) it_->withdraw(i);
}

void PublishedPages::remove_file() noexcept { it_->segment.memory().remove_file(); }
void PublishedPages::leave_to_parent() noexcept {
  it_->forget_kept_tables();
  it_->segment.live = 0;
  it_->segment.memory().leave_to_parent(nullptr, 0, 0);
}

}  // namespace jitunwind
