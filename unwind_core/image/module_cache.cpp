#include <array>
#include <atomic>

#include "unwind_core/image/module_cache_p.h"

namespace jitunwind {
namespace {

struct CachedFiles {
  CachedFiles(std::uint64_t h, Mapped<ModuleFiles> f) noexcept : hash(h), files(std::move(f)) {}
  std::uint64_t hash;
  Mapped<ModuleFiles> files;
};

// Open addressing; entries are only ever added. Leaked at exit, since handlers may run then too.
constexpr std::size_t k_slots = 4096;
constexpr std::size_t k_probes = 32;
constinit std::array<std::atomic<const CachedFiles*>, k_slots> slots{};

std::atomic<const CachedFiles*>& slot(std::uint64_t hash, std::size_t probe) noexcept {
  return slots[(hash + probe) % k_slots];
}

/// FNV-1a.
std::uint64_t hash_of(std::span<const std::byte> bytes) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte b : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3u;
  return hash;
}

/// What identifies the object: its build id, or the file that its path names now.
struct Wanted {
  const ElfImage* loaded;
  bool by_build_id = false;
  FileIdentity identity{};
  std::uint64_t hash = 0;

  bool is(const CachedFiles& cached) const noexcept {
    if (cached.hash != hash || (!by_build_id && cached.files->identity() != identity)) return false;
    return !loaded || is_same_object(cached.files->image(), *loaded);
  }
};

std::optional<Wanted> wanted(const char* path, const ElfImage* loaded) noexcept {
  Wanted w{loaded};
  const auto build_id = loaded ? loaded->build_id() : std::span<const std::byte>{};
  w.by_build_id = !build_id.empty();
  if (w.by_build_id) {
    w.hash = hash_of(build_id);
    return w;
  }
  const auto identity = identify_file(path);
  if (!identity) return std::nullopt;
  w.identity = *identity;
  w.hash = hash_of(std::as_bytes(std::span(&w.identity, 1)));
  return w;
}

const ModuleFiles* find_cached(const Wanted& w) noexcept {
  for (std::size_t probe = 0; probe < k_probes; ++probe) {
    const CachedFiles* const cached = slot(w.hash, probe).load(std::memory_order_acquire);
    if (!cached) return nullptr;
    if (w.is(*cached)) return cached->files.get();
  }
  return nullptr;
}

/// Null, and `made` untouched, when there is no room. Whoever publishes the same files first wins.
const ModuleFiles* publish(const Wanted& w, Mapped<CachedFiles>& made) noexcept {
  for (std::size_t probe = 0; probe < k_probes; ++probe) {
    const CachedFiles* there = nullptr;
    if (slot(w.hash, probe)
            .compare_exchange_strong(there, made.get(), std::memory_order_acq_rel, std::memory_order_acquire))
      return made.release()->files.get();
    if (w.is(*there)) return there->files.get();
  }
  return nullptr;
}

}  // namespace

ModuleFilesLease find_module_files(const char* path, const ElfImage* loaded) noexcept {
  const auto w = wanted(path, loaded);
  if (!w) return {};
  if (const ModuleFiles* const cached = find_cached(*w)) return {cached, nullptr};
  auto opened = ModuleFiles::open(path, loaded);
  if (!opened) return {};
  auto made = make_mapped<CachedFiles>(w->hash, std::move(*opened));
  if (!made) return {};
  // The path may have got another file since it was looked at.
  const bool same = w->by_build_id || made->files->identity() == w->identity;
  if (same)
    if (const ModuleFiles* const published = publish(*w, made)) return {published, nullptr};
  Mapped<ModuleFiles> own = std::move(made->files);
  const ModuleFiles* const files = own.get();
  return {files, std::move(own)};
}

}  // namespace jitunwind
