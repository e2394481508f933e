#include "jitunwind/unwind_core/image/module_cache_p.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/page_internal.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {
namespace {

/// The files of one object with its identity. They are in a mapping of their own, so that their address is the address
/// of a page.
struct KeptFiles {
  KeptFiles(const ObjectIdentity& i, Mapped<ModuleFiles> f) noexcept : identity(i), files(std::move(f)) {}

  ObjectIdentity identity;
  Mapped<ModuleFiles> files;
  // Load addresses at which the object was seen. When it is loaded at more than two places at a time, its files are
  // kept for good.
  std::array<std::atomic<Addr>, 2> places{};
  std::atomic<bool> stays{false};

  void see_at(Addr place, WantedObject& object) noexcept {
    if (place == 0 || stays.load(std::memory_order_relaxed)) return stays.store(true, std::memory_order_relaxed);
    for (const auto& known : places)
      if (known.load(std::memory_order_relaxed) == place) return;
    for (auto& known : places) {
      Addr there = known.load(std::memory_order_relaxed);
      if (there != 0 && object.is_still_at(there, identity)) continue;
      if (known.compare_exchange_strong(there, place, std::memory_order_relaxed)) return;
    }
    stays.store(true, std::memory_order_relaxed);
  }
  bool is_gone(WantedObject& asking) const noexcept {
    if (stays.load(std::memory_order_relaxed)) return false;
    return std::ranges::none_of(places, [&](const std::atomic<Addr>& place) {
      const Addr at = place.load(std::memory_order_relaxed);
      return at != 0 && asking.is_still_at(at, identity);
    });
  }
};

/// One atomic word holds the page of the files, some bits of their hash, and the number of their users. Each of
/// finding, acquiring and removing the files is therefore a single step, and nobody sees an intermediate state.
class Slot {
 public:
  /// Returns null when the slot is empty, holds other files, or has the largest possible number of users. Otherwise the
  /// caller must release() the files.
  KeptFiles* use(std::uint64_t hash) noexcept {
    return use_if([tag = tag_of(hash)](Word word) { return tag_in(word) == tag; });
  }
  KeptFiles* use() noexcept {
    return use_if([](Word) { return true; });
  }
  /// Precondition: the caller uses the files.
  KeptFiles* in_use() const noexcept { return files_in(word_.load(std::memory_order_relaxed)); }
  void release() noexcept { word_.fetch_sub(1, std::memory_order_release); }

  bool is_empty() const noexcept { return word_.load(std::memory_order_relaxed) == 0; }
  /// The caller uses the files from then on. Returns false and changes nothing when the slot is not empty.
  bool put(KeptFiles* files, std::uint64_t hash) noexcept {
    const Word word = page_number(files) << k_page_at | tag_of(hash) << k_tag_at | 1;
    Word none = 0;
    return word_.compare_exchange_strong(none, word, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  /// Ends the caller's use of the files. The result is empty when others still use them.
  Mapped<KeptFiles> take_out(KeptFiles* files) noexcept {
    Word word = word_.load(std::memory_order_relaxed);
    if ((word & k_users) == 1 && word_.compare_exchange_strong(word, 0, std::memory_order_acq_rel))
      return Mapped<KeptFiles>(files);
    release();
    return {};
  }

 private:
  using Word = std::uint64_t;
  static constexpr unsigned k_tag_at = 12, k_page_at = 24, k_page_bits = 12;
  static constexpr Word k_users = (Word{1} << k_tag_at) - 1, k_tag = (Word{1} << (k_page_at - k_tag_at)) - 1;

  static Word page_number(const KeptFiles* files) noexcept {
    return static_cast<Word>(reinterpret_cast<std::uintptr_t>(files) >> k_page_bits);
  }
  static KeptFiles* files_in(Word word) noexcept { return pointer_to<KeptFiles>(word >> k_page_at << k_page_bits); }
  static Word tag_of(std::uint64_t hash) noexcept { return hash >> 40 & k_tag; }
  static Word tag_in(Word word) noexcept { return word >> k_tag_at & k_tag; }

  template <class Predicate>
  KeptFiles* use_if(Predicate wanted) noexcept {
    Word word = word_.load(std::memory_order_relaxed);
    while (word != 0 && (word & k_users) != k_users && wanted(word))
      if (word_.compare_exchange_weak(word, word + 1, std::memory_order_acquire, std::memory_order_relaxed))
        return files_in(word);
    return nullptr;
  }

  std::atomic<Word> word_{0};
};

// Open addressing: a hash has this many possible places. The slots are leaked at exit, since signal handlers may run
// then, too.
constexpr std::size_t k_probes = 32;
[[gnu::section(".bss.large")]] constinit std::array<Slot, 4096> slots{};

// Each lookup checks this many slots for modules that are no longer loaded.
constexpr std::size_t k_looked_at_by_each = slots.size() / k_lookups_to_forget;
constexpr std::size_t k_looked_at_by_opening = slots.size() / k_openings_to_forget;

Slot& slot(std::uint64_t hash, std::size_t probe) noexcept { return slots[(hash + probe) % slots.size()]; }

std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t hash = 0) noexcept {
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), sizeof hash))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
    hash = hash_with(hash, word);
  }
  hash = spread(hash ^ hash >> 32);
  return hash ^ hash >> 32;  // the lower bits choose the slot
}

/// Hashes the parts that is_same_object() compares in objects without a build ID.
std::uint64_t hash_of(const ElfImage& image) noexcept {
  std::uint64_t hash = hash_of(image.header_bytes());
  for (std::size_t i = 0; i < image.segment_count(); ++i)
    if (const ElfSegment s = image.segment(i); is_read_only(s))
      hash = hash_of(image.at_address(s.address, std::min(s.file_size, k_page_size)), hash);
  return hash;
}

/// The caller uses the files in the returned slot.
Slot* find_kept(const ObjectIdentity& identity) noexcept {
  for (std::size_t probe = 0; probe < k_probes; ++probe) {
    Slot& at = slot(identity.hash, probe);
    const KeptFiles* const kept = at.use(identity.hash);
    if (!kept) continue;
    if (kept->identity == identity) return &at;
    at.release();
  }
  return nullptr;
}

/// The caller uses the files in the returned slot. When two callers put the same files, the first one wins. Returns
/// null and leaves `made` untouched when there is no room.
Slot* put(Mapped<KeptFiles>& made) noexcept {
  const ObjectIdentity& identity = made->identity;
  for (std::size_t probe = 0; probe < k_probes; ++probe) {
    Slot& at = slot(identity.hash, probe);
    if (at.is_empty() && at.put(made.get(), identity.hash)) return (void)made.release(), &at;
    const KeptFiles* const there = at.use(identity.hash);
    if (!there) continue;
    if (there->identity == identity) return &at;
    at.release();
  }
  return nullptr;
}

constinit std::atomic<std::size_t> next_to_look_at{0};

/// Checks this many slots, from where the previous check ended.
void forget_unloaded(WantedObject& asking, std::size_t places) noexcept {
  std::size_t next = next_to_look_at.fetch_add(places, std::memory_order_relaxed);
  for (; places != 0; --places, ++next) {
    Slot& at = slots[next % slots.size()];
    KeptFiles* const kept = at.use();
    if (!kept) continue;
    if (kept->is_gone(asking))
      (void)at.take_out(kept);
    else
      at.release();
  }
}

}  // namespace

std::optional<ObjectIdentity> identity_of(WantedObject& object) noexcept {
  ObjectIdentity identity;
  const auto id = object.build_id();
  if (!id.empty()) {
    identity.hash = hash_of(id);
    identity.id_size = id.size();
    std::ranges::copy(id.first(std::min(id.size(), identity.id.size())), identity.id.begin());
    return identity;
  }
  const char* const path = object.path();
  const auto file = path ? identify_file(path) : Error{ErrorCode::io, 0, "file"};
  if (!file) return std::nullopt;
  identity.file = *file;
  identity.hash = hash_of(std::as_bytes(std::span(&identity.file, 1)));
  if (const ElfImage* const image = object.image()) identity.hash = hash_with(identity.hash, hash_of(*image));
  return identity;
}

const ModuleFiles* ModuleFilesLease::files() const noexcept {
  return kept_ ? static_cast<const Slot*>(kept_)->in_use()->files.get() : own_.get();
}

void ModuleFilesLease::give_back(void* kept) noexcept {
  if (kept) static_cast<Slot*>(kept)->release();
}

ModuleFilesLease find_module_files(WantedObject& object) noexcept {
  ModuleFilesLease lease;
  const auto identity = identity_of(object);
  if (!identity) return lease;
  Slot* kept = find_kept(*identity);
  forget_unloaded(object, kept ? k_looked_at_by_each : k_looked_at_by_opening);
  if (kept) {
    count_warm_event(Counter::files_known);
  } else {
    const char* const path = object.path();
    auto opened = path ? ModuleFiles::open(path, object.image()) : Error{ErrorCode::io, 0, "file"};
    if (!opened) return lease;
    auto made = make_mapped<KeptFiles>(*identity, std::move(*opened));
    if (!made) return lease;
    // The path may lead to another file than the one that was identified.
    if (identity->id_size != 0 || made->files->identity() == identity->file) kept = put(made);
    count_event(Counter::files_opened);
    if (!kept) {
      count_event(Counter::files_refused);
      lease.own_ = std::move(made->files);
    }
  }
  if (kept) kept->in_use()->see_at(object.place(), object);
  lease.kept_ = kept;
  return lease;
}

}  // namespace jitunwind
