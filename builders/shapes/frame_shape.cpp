#include "jitunwind/builders/shapes/frame_shape.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "jitunwind/builders/shapes/shape_pool_p.h"
#include "jitunwind/dyn_info/registry/locking/forkable_lock_internal.h"
#include "jitunwind/unwind_core/hash.h"
#include "jitunwind/unwind_core/trace/counters.h"

namespace jitunwind {

std::uint64_t ShapeContent::hash() const noexcept { return regions.hash() ^ rows.hash() ^ spread(arch->elf_machine); }

bool operator==(const ShapeContent& a, const ShapeContent& b) noexcept {
  return a.arch == b.arch && a.min_size == b.min_size && a.regions == b.regions && a.rows == b.rows;
}

/// Guarded by pool_lock.
struct ShapePool::State {
  std::unordered_multimap<std::uint64_t, FrameShape::Node*> nodes;  // by hash
  std::size_t bytes = 0;

  FrameShape::Node* find(const ShapeContent& content, std::uint64_t hash) const {
    const auto [begin, end] = nodes.equal_range(hash);
    const auto it = std::find_if(begin, end, [&](const auto& entry) { return entry.second->content == content; });
    return it == end ? nullptr : it->second;
  }
};

namespace {

/// The lock is initialised before any thread starts. A static local would not do: if a thread is making it at a fork,
/// the child never gets it.
constinit ForkableLock pool_lock;

[[gnu::constructor]] void hold_across_forks() { keep_whole_in_forks<pool_lock>(); }

}  // namespace

ShapePool::State& ShapePool::state() {
  static constinit State* pool = nullptr;
  if (pool == nullptr) pool = new State;
  return *pool;
}

FrameShape ShapePool::find(const ShapeContent& content) {
  const std::uint64_t hash = content.hash();
  const std::lock_guard guard(pool_lock);
  State& pool = state();
  FrameShape::Node* const found = pool.find(content, hash);
  if (!found) return FrameShape();
  acquire(*found);
  count_event(Counter::shape_known);
  return FrameShape(found);
}

FrameShape ShapePool::intern(ShapeContent&& content, std::vector<Finding>&& warnings) {
  const std::uint64_t hash = content.hash();
  const std::lock_guard guard(pool_lock);
  State& pool = state();
  if (FrameShape::Node* const found = pool.find(content, hash)) {
    acquire(*found);
    count_event(Counter::shape_known);
    return FrameShape(found);
  }
  count_event(Counter::shape_made);
  auto made = std::make_unique<FrameShape::Node>(std::move(content), std::move(warnings), hash);
  pool.nodes.emplace(hash, made.get());
  pool.bytes += made->bytes();
  return FrameShape(made.release());
}

void ShapePool::release(FrameShape::Node& node) noexcept {
  // The lock covers the release of the last reference, so that no thread finds the node and acquires it meanwhile.
  std::size_t references = node.references.load(std::memory_order_relaxed);
  while (references > 1)
    if (node.references.compare_exchange_weak(references, references - 1, std::memory_order_release)) return;

  const std::lock_guard guard(pool_lock);
  State& pool = state();
  if (node.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto [begin, end] = pool.nodes.equal_range(node.hash);
  pool.nodes.erase(std::find_if(begin, end, [&](const auto& entry) { return entry.second == &node; }));
  pool.bytes -= node.bytes();
  delete &node;
}

FrameShapeStatistics ShapePool::statistics() noexcept {
  const std::lock_guard guard(pool_lock);
  State& pool = state();
  return {pool.nodes.size(), pool.bytes};
}

FrameShape::FrameShape(const FrameShape& other) noexcept : node_(other.node_) {
  if (node_) ShapePool::acquire(*node_);
}

FrameShape::~FrameShape() {
  if (node_) ShapePool::release(*node_);
}

const Arch& FrameShape::arch() const noexcept { return *node_->content.arch; }
bool FrameShape::has_rows() const noexcept { return !node_->content.rows.empty(); }
const unw_dyn_region_info_t* FrameShape::regions() const noexcept { return node_->content.regions.first(); }
std::size_t FrameShape::row_count() const noexcept { return node_->content.rows.size(); }
ShapeRow FrameShape::row(std::size_t i) const noexcept {
  return {node_->content.rows.offset(i), node_->content.rows.row(i)};
}
CodeOffset FrameShape::row_offset(std::size_t i) const noexcept { return node_->content.rows.offset(i); }
std::uint64_t FrameShape::min_size() const noexcept { return node_->content.min_size; }
std::span<const Finding> FrameShape::warnings() const noexcept { return node_->warnings; }
std::size_t FrameShape::users() const noexcept { return node_->references.load(std::memory_order_relaxed); }
std::size_t FrameShape::bytes() const noexcept { return node_->bytes(); }
std::string FrameShape::directives_text() const { return regions_text(regions(), arch()); }

FrameShapeStatistics frame_shape_statistics() noexcept { return ShapePool::statistics(); }

}  // namespace jitunwind
