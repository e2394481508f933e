#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jitunwind/adapters/listen/listening_p.h"
#include "jitunwind/adapters/listen/publish/mapping_gate_p.h"
#include "jitunwind/dyn_info/registry/observers.h"
#include "jitunwind/sdk/published_pages_internal.h"
#include "jitunwind/unwind_core/targets/process_folder_internal.h"
#include "jitunwind/unwind_core/trace/log.h"
#include "jitunwind/unwind_core/uncancelled_internal.h"

namespace jitunwind {
namespace {

constexpr std::int64_t k_second = 1'000'000'000;
constexpr std::int64_t k_age = k_second;
constexpr unsigned k_most_doublings = 6;      // of the time after which refused code is tried again
constexpr unsigned k_doublings_of_parts = 2;  // of that after which parts are looked at that were not in memory
constexpr unsigned k_looks = 25;              // calls of publish_old_code() to a look
constexpr std::size_t k_most_files = 1024;
constexpr std::size_t k_most_known = std::size_t{1} << 18;

Addr page_begin(Addr at) noexcept { return at & ~(static_cast<Addr>(::getpagesize()) - 1); }
Addr page_end(Addr at) noexcept { return page_begin(at + static_cast<Addr>(::getpagesize()) - 1); }

bool overlap(const AddrRange& a, const AddrRange& b) noexcept { return a.begin < b.end && b.begin < a.end; }

/// A registered procedure.
struct Known {
  AddrRange code{};
  RegistrationKey key{};
  std::int64_t due = 0;  // may be published from then on
  unsigned tries = 0;    // that failed
  bool is_published = false;
  bool is_new = true;  // it was not there when a file of its pages was made
};
struct Candidate {
  const unw_dyn_info_t* info;
  Known known;
};
using Candidates = std::vector<Candidate>;

/// The pages of all files, which calls read without a lock: an owner of a heap may call munmap() while it has a lock of
/// its own, and for its own memory only.
struct Slot {
  std::atomic<Addr> begin{0};
  std::atomic<Addr> end{0};
};
constinit std::array<Slot, k_most_files> slots{};
constinit std::atomic<std::size_t> slots_used{0};

bool are_published(const AddrRange& pages) noexcept {
  const std::size_t used = slots_used.load(std::memory_order_acquire);
  return std::any_of(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(used), [&](const Slot& slot) {
    return overlap({slot.begin.load(std::memory_order_relaxed), slot.end.load(std::memory_order_relaxed)}, pages);
  });
}

constinit std::atomic<bool> has_forked{false};  // a process of the same memory may be there

constinit ForkableLock lock;  // guards everything below; never held while the registry is called

struct File {
  PublishedPages pages;
  Slot* slot;
};

class Publisher final : public RegistryObserver {
 public:
  void registered(std::span<const RegisteredProcedure> procedures) noexcept override;
  void cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept override;
  void retired() noexcept override;

  std::size_t look(std::int64_t at);
  void withdraw_unmapped(const AddrRange& pages) noexcept;
  void leave_to_parent() noexcept;
  void remove_files() noexcept;
  void report(ListenStatus& out) const noexcept;

 private:
  using Files = std::map<Addr, File>;  // by the begin of their pages
  struct Cluster {
    std::span<const Candidate> code;
    AddrRange pages;
    bool is_ready;
  };
  using Here = std::lock_guard<ForkableLock>;

  void withdraw(const Known& known) noexcept;
  Files::iterator first_over(const AddrRange& pages) noexcept;
  void withdraw_files_over(const AddrRange& pages) noexcept;
  Candidates candidates(std::int64_t at);
  static Cluster first_cluster(std::span<const Candidate> all, std::int64_t at) noexcept;
  std::size_t publish_parts(const Cluster& whole, std::int64_t at);
  bool publish_part(const Cluster& part, const Mappings& mappings, std::size_t& made, std::optional<Error>& lack);
  bool has_file(const Cluster& run) noexcept;
  Status publish(const Cluster& run);
  Result<PublishedPages*> enter(std::span<const Candidate> run, PublishedPages&& made);
  void take_out(Files::iterator file, Files& into) noexcept;
  void note(const Error& why) noexcept;
  void try_later(std::span<const Candidate> run, unsigned most_doublings) noexcept;
  void drop_unused() noexcept;

  std::unordered_map<const unw_dyn_info_t*, Known> known_;
  Files files_;
  std::int64_t due_ = INT64_MAX;  // nothing is due before
  bool has_ended_ = false;
  std::uint64_t refused_ = 0;
  Error latest_refusal_{};
};

/// Never destroyed: engines cancel code until the end.
alignas(Publisher) std::byte publisher_memory[sizeof(Publisher)];
constinit std::atomic<Publisher*> publisher{nullptr};
constinit std::atomic<pid_t> publishing_process{0};

void Publisher::registered(std::span<const RegisteredProcedure> procedures) noexcept {
  const std::int64_t due = nanoseconds_of(CLOCK_MONOTONIC) + k_age;
  const Here here(lock);
  try {
    for (const RegisteredProcedure& procedure : procedures) {
      const ProcedureHold hold(procedure.key);
      if (hold.info() == nullptr) continue;
      if (known_.size() >= k_most_known) throw std::bad_alloc();
      known_.try_emplace(procedure.info,
                         Known{{hold.info()->start_ip, hold.info()->end_ip}, procedure.key, due, 0, false, true});
    }
  } catch (const std::bad_alloc&) {
    ++refused_, latest_refusal_ = {ErrorCode::out_of_memory, 0, "too many procedures to publish them all"};
  }
  due_ = std::min(due_, due);
}

void Publisher::withdraw(const Known& known) noexcept {
  for (auto file = first_over(known.code); file != files_.end() && file->first < known.code.end; ++file)
    file->second.pages.withdraw(known.code);
}

void Publisher::cancelled(std::span<unw_dyn_info_t* const> procedures) noexcept {
  const Here here(lock);
  for (const unw_dyn_info_t* info : procedures) {
    const auto known = known_.find(info);
    if (known == known_.end()) continue;
    withdraw(known->second);
    known_.erase(known);
  }
}

void Publisher::retired() noexcept {
  const Here here(lock);
  std::erase_if(known_, [&](const auto& entry) {
    if (still_registered(entry.second.key)) return false;
    withdraw(entry.second);
    return true;
  });
}

Publisher::Files::iterator Publisher::first_over(const AddrRange& pages) noexcept {
  auto file = files_.upper_bound(pages.begin);
  if (file != files_.begin() && std::prev(file)->second.pages.pages().end > pages.begin) --file;
  return file == files_.end() || file->first >= pages.end ? files_.end() : file;
}

/// The kernel lists the rest of a file's pages as if they were its first ones.
void Publisher::withdraw_files_over(const AddrRange& pages) noexcept {
  for (auto file = first_over(pages); file != files_.end() && file->first < pages.end; ++file) {
    const AddrRange gone = file->second.pages.pages();
    file->second.pages.withdraw_all();
    for (auto& [info, known] : known_)
      if (overlap(gone, known.code)) known.is_published = false;
    due_ = 0;
  }
}

void Publisher::withdraw_unmapped(const AddrRange& pages) noexcept {
  const Here here(lock);
  withdraw_files_over(pages);
}

/// All procedures by address, if one of them is due.
Candidates Publisher::candidates(std::int64_t at) {
  Candidates all;
  {
    const Here here(lock);
    if (due_ > at || has_ended_) return all;
    due_ = INT64_MAX;
    for (const auto& [info, known] : known_) {
      all.push_back({info, known});
      if (!known.is_published && known.due > at) due_ = std::min(due_, known.due);
    }
  }
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return std::pair(a.known.code.begin, a.known.key.registration) <
           std::pair(b.known.code.begin, b.known.key.registration);
  });
  return all;
}

/// Whether all of it is old enough, and some is not published.
bool are_ready(std::span<const Candidate> code, std::int64_t at) noexcept {
  return std::ranges::all_of(code, [&](const Candidate& c) { return c.known.is_published || c.known.due <= at; }) &&
         std::ranges::any_of(code, [](const Candidate& c) { return !c.known.is_published; });
}

/// Code that shares pages.
Publisher::Cluster Publisher::first_cluster(std::span<const Candidate> all, std::int64_t at) noexcept {
  Cluster cluster{{}, {page_begin(all.front().known.code.begin), page_end(all.front().known.code.end)}, false};
  std::size_t count = 0;
  for (; count < all.size() && all[count].known.code.begin < cluster.pages.end; ++count)
    cluster.pages.end = std::max(cluster.pages.end, page_end(all[count].known.code.end));
  cluster.code = all.first(count);
  cluster.is_ready = are_ready(cluster.code, at);
  return cluster;
}

/// A file has a run of clusters.
std::size_t Publisher::look(std::int64_t at) {
  const Candidates all = candidates(at);
  std::size_t made = 0;
  std::span<const Candidate> rest = all;
  while (!rest.empty()) {
    Cluster run = first_cluster(rest, at);
    rest = rest.subspan(run.code.size());
    if (run.pages.size() > PublishedPages::k_most_bytes) {
      made += publish_parts(run, at);
      continue;
    }
    while (run.is_ready && !rest.empty()) {
      const Cluster next = first_cluster(rest, at);
      if (!next.is_ready || next.pages.begin != run.pages.end ||
          next.pages.end - run.pages.begin > PublishedPages::k_most_bytes)
        break;
      run.code = {run.code.data(), run.code.size() + next.code.size()};
      run.pages.end = next.pages.end;
      rest = rest.subspan(next.code.size());
    }
    if (!run.is_ready) continue;
    if (const Status published = publish(run); published) {
      ++made;
    } else {
      note(published.error());
      try_later(run.code, k_most_doublings);
    }
  }
  drop_unused();
  return made;
}

/// Whether a file may be laid over all of them.
Result<PagesKind> may_be_laid_over(const Mappings& mappings, const AddrRange& pages) noexcept {
  std::optional<PagesKind> kind;
  for (Addr at = pages.begin; at < pages.end;) {
    const Mapping* const mapping = mappings.find(at);
    if (mapping == nullptr) return Error{ErrorCode::io, at, "the code is not mapped"};
    const Result<PagesKind> here = may_be_laid_over(*mapping, !has_forked.load());
    if (!here) return Error{here.error().code, at, here.error().what};
    if (kind.value_or(*here) != *here) return Error{ErrorCode::io, at, "the code's pages are mapped in several ways"};
    kind = *here;
    at = mapping->range.end;
  }
  return *kind;
}

/// Whether any of them is in memory. Precondition: they are not too many for a file.
Result<bool> are_used(const AddrRange& pages) noexcept {
  std::array<unsigned char, PublishedPages::k_most_bytes / 4096> used{};
  if (::mincore(pointer_to(pages.begin), static_cast<std::size_t>(pages.size()), used.data()) != 0)
    return Error{ErrorCode::io, pages.begin, "the kernel does not say which pages are in memory"};
  return std::ranges::any_of(used, [](unsigned char page) { return (page & 1) != 0; });
}

/// Newer procedures hide older ones of the same code.
std::vector<AddrRange> code_of(const AddrRange& pages, std::span<const Candidate> run) {
  std::vector<AddrRange> code;
  for (const Candidate& candidate : run) {
    const AddrRange& whole = candidate.known.code;
    if (!overlap(whole, pages)) continue;
    const AddrRange range{std::max(whole.begin, pages.begin), std::min(whole.end, pages.end)};
    if (!code.empty() && code.back().begin == range.begin) code.pop_back();
    if (code.empty() || code.back().end <= range.begin) code.push_back(range);
  }
  return code;
}

/// Publishes code of one procedure, or of pages that procedures share, that is too large for one file. Its parts have a
/// file each, once they are in memory: files of memory that nobody has written to would only fill the disk.
std::size_t Publisher::publish_parts(const Cluster& whole, std::int64_t at) {
  constexpr Addr k_size = PublishedPages::k_most_bytes;
  std::size_t made = 0;
  std::optional<Error> lack;
  Candidates later;
  const Mappings mappings = ProcessFolder::own().mappings();
  std::span<const Candidate> rest = whole.code;
  auto behind = rest.begin(), behind_later = rest.begin();
  for (AddrRange part{whole.pages.begin, 0}; part.begin < whole.pages.end; part.begin = part.end) {
    part.end = std::min(whole.pages.end, (part.begin / k_size + 1) * k_size);
    while (!rest.empty() && rest.front().known.code.end <= part.begin) rest = rest.subspan(1);
    while (behind != whole.code.end() && behind->known.code.begin < part.end) ++behind;
    const std::span here(rest.begin(), std::max(rest.begin(), behind));
    if (!are_ready(here, at) || publish_part({here, part, true}, mappings, made, lack)) continue;
    later.insert(later.end(), std::max(here.begin(), behind_later), here.end());
    behind_later = here.end();
  }
  if (lack) note(*lack);
  try_later(later, lack ? k_most_doublings : k_doublings_of_parts);
  return made;
}

/// Publishes pages that are mapped together. Returns whether all have files then.
bool Publisher::publish_part(const Cluster& part, const Mappings& mappings, std::size_t& made,
                             std::optional<Error>& lack) {
  bool is_whole = true;
  for (AddrRange pages{part.pages.begin, 0}; pages.begin < part.pages.end; pages.begin = pages.end) {
    const Mapping* const mapping = mappings.find(pages.begin);
    pages.end = mapping == nullptr ? page_end(pages.begin + 1) : std::min(mapping->range.end, part.pages.end);
    const Cluster piece{part.code, pages, true};
    if (has_file(piece)) continue;
    const Result<bool> is_used = mapping == nullptr ? Result<bool>(false) : are_used(pages);
    const Status published = !is_used ? Status(is_used.error()) : *is_used ? publish(piece) : Status(Done{});
    if (!published) lack = published.error();
    const bool is_made = is_used && *is_used && published;
    made += is_made;
    is_whole = is_whole && is_made;
  }
  return is_whole;
}

/// Whether a file has these pages, and all of this code that is not new.
bool Publisher::has_file(const Cluster& run) noexcept {
  const std::vector<AddrRange> code = code_of(run.pages, run.code);
  const Here here(lock);
  const auto file = files_.find(run.pages.begin);
  if (file == files_.end() || file->second.pages.pages().end != run.pages.end) return code.empty();
  return std::ranges::none_of(run.code, [](const Candidate& candidate) { return candidate.known.is_new; }) &&
         std::ranges::all_of(code, [&](const AddrRange& range) { return file->second.pages.has(range); });
}

Error changed(const AddrRange& pages) noexcept {
  return {ErrorCode::not_registered, pages.begin, "the code changes just now"};
}

Status Publisher::publish(const Cluster& run) {
  if (!are_mapping_calls_heard()) return Error{ErrorCode::io, 0, "calls of mprotect do not reach this library"};
  const Mappings mappings = ProcessFolder::own().mappings();
  if (const auto may = may_be_laid_over(mappings, run.pages); !may) return may.error();
  Result<PublishedPages> made = PublishedPages::make(run.pages, code_of(run.pages, run.code), mappings);
  if (!made) return made.error();
  const Result<PublishedPages*> in = enter(run.code, std::move(*made));
  if (!in) return in.error();
  PublishedPages* const entered = *in;
  const MappingMoment moment;
  Status laid = changed(run.pages);
  if (moment.is_closed()) {
    const auto kind = may_be_laid_over(ProcessFolder::own().mappings(), run.pages);
    laid = kind ? entered->lay_over(*kind) : Status(kind.error());
  }
  if (!laid) {
    const Here here(lock);
    entered->withdraw_all();
    return laid;
  }
  if (const std::optional<Error>& lack = entered->lack()) note(*lack);
  if (logs(LogTopic::registry)) {
    LogLine(LogTopic::registry)
        .text("publishes ")
        .range(run.pages.begin, run.pages.end)
        .text(" in ")
        .foreign(entered->path());
  }
  return laid;
}

/// Refused: some of it has been cancelled meanwhile, the program ends, or there are too many files. Otherwise the files
/// that had any of its pages are closed, without the lock.
Result<PublishedPages*> Publisher::enter(std::span<const Candidate> run, PublishedPages&& made) {
  Files old;
  const Here here(lock);
  const auto slot = std::find_if(slots.begin(), slots.end(), [](const Slot& s) { return s.end.load() == 0; });
  const AddrRange pages = made.pages();
  if (has_ended_) return changed(pages);
  if (slot == slots.end()) return Error{ErrorCode::out_of_memory, pages.begin, "there are too many files"};
  for (const Candidate& candidate : run) {
    const auto known = known_.find(candidate.info);
    if (known == known_.end() || known->second.key.registration != candidate.known.key.registration)
      return changed(pages);
  }
  withdraw_files_over(pages);
  for (auto file = first_over(pages); file != files_.end(); file = first_over(pages)) take_out(file, old);
  for (const Candidate& candidate : run) {
    Known& known = known_.find(candidate.info)->second;
    known.is_new = false;
    known.is_published = pages.begin <= known.code.begin && known.code.end <= pages.end;
  }
  slot->begin.store(pages.begin, std::memory_order_relaxed);
  slot->end.store(pages.end, std::memory_order_relaxed);
  const auto behind = static_cast<std::size_t>(slot - slots.begin()) + 1;
  slots_used.store(std::max(slots_used.load(), behind), std::memory_order_release);
  return &files_.insert_or_assign(pages.begin, File{std::move(made), &*slot}).first->second.pages;
}

void Publisher::take_out(Files::iterator file, Files& into) noexcept {
  file->second.slot->begin.store(0, std::memory_order_relaxed);
  file->second.slot->end.store(0, std::memory_order_relaxed);
  into.insert(files_.extract(file));
}

/// Files without functions are of no use any more. They are closed without the lock.
void Publisher::drop_unused() noexcept {
  Files unused;
  const Here here(lock);
  for (auto file = files_.begin(); file != files_.end();) {
    const auto next = std::next(file);
    if (file->second.pages.functions() == 0) take_out(file, unused);
    file = next;
  }
}

void Publisher::note(const Error& why) noexcept {
  note_refusal("not published", why);
  const Here here(lock);
  ++refused_, latest_refusal_ = why;
}

void Publisher::try_later(std::span<const Candidate> run, unsigned most_doublings) noexcept {
  const std::int64_t now = nanoseconds_of(CLOCK_MONOTONIC);
  const Here here(lock);
  for (const Candidate& candidate : run) {
    const auto known = known_.find(candidate.info);
    if (known == known_.end()) continue;
    known->second.is_published = false;
    known->second.due = now + (k_age << std::min(known->second.tries, most_doublings));
    ++known->second.tries;
    due_ = std::min(due_, known->second.due);
  }
}

/// The child publishes what was published anew, when its own thread looks.
void Publisher::leave_to_parent() noexcept {
  for (auto& [begin, file] : files_) file.pages.leave_to_parent();
  for (auto& [info, known] : known_) known.is_published = false;
  due_ = 0;
}

void Publisher::remove_files() noexcept {
  has_ended_ = true;
  for (auto& [begin, file] : files_) file.pages.remove_file();
}

void Publisher::report(ListenStatus& out) const noexcept {
  const Here here(lock);
  for (const auto& [begin, file] : files_) {
    out.published += file.pages.functions();
    out.published_files += file.pages.functions() != 0;
  }
  out.unpublished = refused_;
  out.latest_unpublished = latest_refusal_;
}

/// Observers take the lock when somebody has the registry's. A fork has to take it after that, so these handlers are
/// there before the registry's own: handlers before a fork run in the reverse order. A fork waits until no file is
/// mapped over code: the child would have the former memory, which it shares with nobody then.
[[gnu::constructor(101)]] void take_part_in_forks() {
  const auto in_child = [] {
    forget_mapping_calls_in_child();
    if (Publisher* const known = publisher.load()) known->leave_to_parent(), publishing_process = ::getpid();
    lock.after_fork();
  };
  const auto before = [] {
    enter_mapping_gate();
    has_forked = true;
    lock.before_fork();
  };
  const auto in_parent = [] {
    lock.after_fork();
    leave_mapping_gate();
  };
  (void)::pthread_atfork(before, in_parent, in_child);
}

Publisher& the_publisher() {
  if (Publisher* const known = publisher.load()) return *known;
  auto* const made = new (publisher_memory) Publisher;
  publishing_process = ::getpid();
  publisher.store(made);
  if (const Status attached = attach_observer(*made); !attached) note_refusal("not published", attached.error());
  return *made;
}

}  // namespace

void publish_old_code() {
  constinit static unsigned calls = 0;
  if (++calls % k_looks == 0) (void)publish_code_due(nanoseconds_of(CLOCK_MONOTONIC));
}

std::size_t publish_code_due(std::int64_t at) { return the_publisher().look(at); }

void withdraw_unmapped(const AddrRange& pages) noexcept {
  if (are_published(pages)) publisher.load()->withdraw_unmapped(pages);
}

/// Files of programs that end with their code still there. A signal handler that interrupted a change may call exit().
/// A child of vfork() has its parent's memory.
[[gnu::destructor(101)]] void remove_published_files() noexcept {
  Publisher* const known = publisher.load();
  if (known == nullptr || publishing_process.load() != ::getpid() || !lock.try_lock()) return;
  known->remove_files();
  lock.unlock();
}

void report_published(ListenStatus& out) noexcept {
  if (const Publisher* const known = publisher.load()) known->report(out);
}

}  // namespace jitunwind
