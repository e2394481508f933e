#include "jitunwind/adapters/symbolizers/symbolizers_p.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>

#include "jitunwind/unwind_core/errno_keeper_internal.h"
#include "jitunwind/unwind_core/hash.h"

namespace jitunwind {
namespace {

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

Kept* find(Kept* chain, std::string_view name) noexcept {
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

}  // namespace

const char* lasting_name(std::string_view name) noexcept {
  std::atomic<Kept*>& chain = chain_of(name);
  Kept* first = chain.load(std::memory_order_acquire);
  if (Kept* const known = find(first, name)) return known->text();
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

}  // namespace jitunwind
